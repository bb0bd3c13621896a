"""The releases of EKS-optimized images, with the Kubernetes versions that each supports."""

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
"""Image families that an alias may name."""

RELEASES = {"al2023": re.compile(r"v\d{8}"), "bottlerocket": re.compile(r"\d+\.\d+\.\d+")}
"""Pattern of each family's releases."""


class ImageRelease(Record):
    """A release of a family's images."""

    release: str
    source: str
    kubernetes: dict[Annotated[str, Field(pattern=EKS_VERSION)], Annotated[int, Field(ge=0)] | None]
    """Supported Kubernetes versions, with the kubelet's patch. None: the patch was not read."""
    neuron: dict[Annotated[str, Field(pattern=EKS_VERSION)], bool] = Field(default_factory=dict)
    """Kubernetes versions of AL2023 for which an image with the Neuron driver exists (true) or does not (false). Others were not read."""


class ImageFile(SourcedFile):
    """A file of releases, the oldest first in each family."""

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
                raise ValueError(f"{family} has a release twice, or its releases are out of order; list the oldest first")
            if strange := next((each for each in releases if not each.neuron.keys() <= each.kubernetes.keys()), None):
                raise ValueError(f"{family}@{strange.release} says of Neuron what it has no image for")
        return self


def release_order(release: str) -> tuple[int, ...]:
    """Return the sort key of a release within its family."""
    return tuple(int(part) for part in re.findall(r"\d+", release))


@dataclass(frozen=True)
class ImageBook:
    """All known releases, of the shipped file and the user's own."""

    files: tuple[ImageFile, ...]

    def versions_of(self, alias: str) -> list[str]:
        """Return the Kubernetes versions of an alias such as al2023@v20260903. Empty for an unknown release.

        A v before a Bottlerocket release is ignored, as Karpenter does (pkg/providers/amifamily/bottlerocket.go). In AL2023 it belongs to
        the name of the image.
        """
        family, _, release = alias.partition("@")
        wanted = release.removeprefix("v") if family == "bottlerocket" else release
        found = {version for each in self._releases(family) if each.release == wanted for version in each.kubernetes}
        return sorted(found, key=release_order)

    def with_images_for(self, family: str, version: str) -> list[str]:
        """Return the aliases of a family that have images for a Kubernetes version, the oldest first."""
        fitting = {each.release for each in self._releases(family) if version in each.kubernetes}
        return [f"{family}@{release}" for release in sorted(fitting, key=release_order)]

    def has_neuron_image(self, alias: str, version: str) -> bool | None:
        """Return whether a release has an image for nodes with Neuron devices. None if that was not read.

        Bottlerocket uses its image without a GPU driver. AL2023 has a separate one, for x86 (pkg/providers/amifamily/bottlerocket.go and
        al2023.go of github.com/aws/karpenter-provider-aws, v1.14.1).
        """
        family, _, release = alias.partition("@")
        if family == "bottlerocket":
            return version in self.versions_of(alias)
        answers = [each.neuron[version] for each in self._releases(family) if each.release == release and version in each.neuron]
        return any(answers) if answers else None

    def eks_release(self, alias: str, version: str) -> str | None:
        """Return EKS's release name of an alias in a node group, such as 1.35.7-20260903.

        None if it is not known. AL2023's name contains the kubelet's patch, which was not read for every release. Bottlerocket's contains
        the first digits of a commit, which the alias lacks.
        """
        family, _, release = alias.partition("@")
        patches = [each.kubernetes.get(version) for each in self._releases(family) if each.release == release]
        patch = next((each for each in patches if each is not None), None)
        return f"{version}.{patch}-{release.removeprefix('v')}" if family == "al2023" and patch is not None else None

    def versions(self, family: str) -> list[str]:
        """Return the Kubernetes versions that some release of a family has images for."""
        return sorted({version for each in self._releases(family) for version in each.kubernetes}, key=release_order)

    def with_file(self, path: Path) -> ImageBook:
        """Return a book of these releases and those of another file. Raises DataFileError for a broken schema, and FileNotFoundError."""
        return ImageBook((read_records(path, ImageFile), *self.files))

    def _releases(self, family: str) -> list[ImageRelease]:
        return [each for file in self.files if family in FAMILIES for each in getattr(file, family)]


@cache
def shipped_images() -> ImageBook:
    """Return the releases of the shipped file."""
    return ImageBook((read_records(Path(__file__).with_name("node_images.yaml"), ImageFile),))


_HEADER = "# Releases of the nodes' images, as AWS listed them; `flexspot images refresh` writes this file.\n"


def as_yaml(file: ImageFile) -> str:
    """Return the file as text, one release a line."""
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
