"""The releases of EKS-optimized images, and for which versions of Kubernetes each has images."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Self

import yaml
from pydantic import Field, model_validator

from flexspot.capacity.catalog.data_files import Record, SourcedFile, read_records
from flexspot.capacity.values.names import EKS_VERSION

FAMILIES = ("al2023", "bottlerocket")
"""The families of images that an alias may name."""

RELEASES = {"al2023": re.compile(r"v\d{8}"), "bottlerocket": re.compile(r"\d+\.\d+\.\d+")}
"""How each family writes a release."""


class ImageRelease(Record):
    """A release of a family's images."""

    release: str
    source: str
    kubernetes: dict[Annotated[str, Field(pattern=EKS_VERSION)], Annotated[int, Field(ge=0)] | None]
    """The versions of Kubernetes that it has images for, with the patch of the kubelet in them; None: the patch was not read."""
    neuron: dict[Annotated[str, Field(pattern=EKS_VERSION)], bool] = Field(default_factory=dict)
    """Of AL2023 the versions for which it has an image with the driver of Neuron devices, or has none. What is not here was not read."""


class ImageFile(SourcedFile):
    """A file of releases, of each family the oldest first."""

    al2023: tuple[ImageRelease, ...] = ()
    bottlerocket: tuple[ImageRelease, ...] = ()

    @model_validator(mode="after")
    def _each_release_once_in_order(self) -> Self:
        for family in FAMILIES:
            releases: tuple[ImageRelease, ...] = getattr(self, family)
            names = [each.release for each in releases]
            if wrong := [name for name in names if not RELEASES[family].fullmatch(name)]:
                raise ValueError(f"{family} has {wrong[0]}, which is not how it writes a release")
            if names != sorted(set(names), key=release_order):
                raise ValueError(f"{family} has a release twice, or its releases are not in order, the oldest first")
            if strange := next((each for each in releases if not each.neuron.keys() <= each.kubernetes.keys()), None):
                raise ValueError(f"{family}@{strange.release} says of Neuron what it has no image for")
        return self


def release_order(release: str) -> tuple[int, ...]:
    """What releases of a family are sorted by."""
    return tuple(int(part) for part in re.findall(r"\d+", release))


@dataclass(frozen=True)
class ImageBook:
    """The releases that are known, of all files: the shipped one and one of one's own."""

    files: tuple[ImageFile, ...]

    def versions_of(self, alias: str) -> list[str]:
        """The versions of Kubernetes that an alias such as al2023@v20260903 has images for; none for a release that is not known.

        For Bottlerocket a v before the release is left out, as Karpenter does (pkg/providers/amifamily/bottlerocket.go); AL2023's belongs
        to the name of the image.
        """
        family, _, release = alias.partition("@")
        wanted = release.removeprefix("v") if family == "bottlerocket" else release
        found = {version for each in self._releases(family) if each.release == wanted for version in each.kubernetes}
        return sorted(found, key=release_order)

    def with_images_for(self, family: str, version: str) -> list[str]:
        """The aliases of a family that have images for a version of Kubernetes, the oldest first."""
        fitting = {each.release for each in self._releases(family) if version in each.kubernetes}
        return [f"{family}@{release}" for release in sorted(fitting, key=release_order)]

    def has_neuron_image(self, alias: str, version: str) -> bool | None:
        """Whether a release has an image for nodes with Neuron devices. None: that was not read.

        Bottlerocket's is its image without a GPU's driver; AL2023 has one of its own, for x86 (pkg/providers/amifamily/bottlerocket.go
        and al2023.go of github.com/aws/karpenter-provider-aws, v1.14.1).
        """
        family, _, release = alias.partition("@")
        if family == "bottlerocket":
            return version in self.versions_of(alias)
        told = [each.neuron[version] for each in self._releases(family) if each.release == release and version in each.neuron]
        return any(told) if told else None

    def eks_release(self, alias: str, version: str) -> str | None:
        """What EKS calls the release of an alias for a version of Kubernetes in a node group, such as 1.35.7-20260903.

        None where that is not known: of AL2023 it has the patch of the kubelet, which was not read of every release; of Bottlerocket the
        first digits of a commit, which the alias does not tell.
        """
        family, _, release = alias.partition("@")
        patches = [each.kubernetes.get(version) for each in self._releases(family) if each.release == release]
        patch = next((each for each in patches if each is not None), None)
        return f"{version}.{patch}-{release.removeprefix('v')}" if family == "al2023" and patch is not None else None

    def versions(self, family: str) -> list[str]:
        """The versions of Kubernetes that some release of a family has images for."""
        return sorted({version for each in self._releases(family) for version in each.kubernetes}, key=release_order)

    def with_file(self, path: Path) -> ImageBook:
        """A book of these and of a file of one's own. Raises DataFileError for one that breaks the schema, FileNotFoundError."""
        return ImageBook((read_records(path, ImageFile), *self.files))

    def _releases(self, family: str) -> list[ImageRelease]:
        return [each for file in self.files if family in FAMILIES for each in getattr(file, family)]


@cache
def shipped_images() -> ImageBook:
    """The releases of the shipped file."""
    return ImageBook((read_records(Path(__file__).with_name("node_images.yaml"), ImageFile),))


_HEADER = "# Releases of the nodes' images, as AWS listed them; `flexspot images refresh` writes this file.\n"


def as_yaml(file: ImageFile) -> str:
    """The file as text, a release a line."""
    sources = yaml.safe_dump({"sources": {name: each.model_dump() for name, each in file.sources.items()}}, sort_keys=False, width=120)
    parts = [_HEADER, sources]
    for family in FAMILIES:
        releases: tuple[ImageRelease, ...] = getattr(file, family)
        rows = [
            yaml.safe_dump(each.model_dump(exclude_defaults=True), default_flow_style=True, sort_keys=False, width=10_000).strip()
            for each in releases
        ]
        parts += [f"{family}:\n", *(f"  - {row}\n" for row in rows)] if rows else []
    return "".join(parts)
