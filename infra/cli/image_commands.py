"""`flexspot images`: the releases of the nodes' images on EKS, those that are known and those that AWS lists today."""

from __future__ import annotations

import importlib
import re
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path  # noqa: TC003 -- typer reads the annotations
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer
from rich.markup import escape
from rich.table import Table

from capacity.values.errors import ExitCode, ExplainedError
from infra.cli.command_line import command_group
from infra.cli.console import err, out, show_table
from infra.cli.price_refresh import refused, write_whole
from infra.optional_libraries import library
from infra.project import project_here

if TYPE_CHECKING:
    from collections.abc import Iterable

    from capacity.catalog.node_images import ImageFile
    from capacity.settings.platform import EksSettings

app = command_group("Releases of the node images on EKS.")

Stacks = Annotated[list[str] | None, typer.Option("--stack", "-s", help="An EKS stack. Repeatable. Default: all.")]


@app.callback()
def images() -> None:
    """Releases of the node images on EKS."""


@app.command("list")
def list_known(stacks: Stacks = None) -> None:
    """List the known image releases for each stack's Kubernetes version, newest first."""
    from capacity.plan.build import image_book_of  # noqa: PLC0415

    table = Table()
    for heading in ("stack", "Kubernetes", "written", "known releases, the newest first"):
        table.add_column(heading, overflow="fold")
    for stack, settings in eks_stacks(stacks).items():
        cluster = settings.cluster
        if not cluster.has_own_image:
            table.add_row(stack, cluster.version, "[dim]AWS's own to choose, in Auto Mode[/]", "")
            continue
        book = image_book_of(settings, project_here().stacks, f"Pulumi.{stack}.yaml")
        fitting = book.with_images_for(cluster.image.partition("@")[0], cluster.version)
        colour = "green" if cluster.version in book.versions_of(cluster.image) else "red"
        table.add_row(stack, cluster.version, f"[{colour}]{escape(cluster.image)}[/]", ", ".join(reversed(fitting)) or "none")
    show_table(table)


@app.command()
def refresh(
    stacks: Stacks = None,
    file: Annotated[Path | None, typer.Option("--file", help="The file to write. Default: node-images.yaml beside the stacks.")] = None,
    versions: Annotated[
        list[str] | None,
        typer.Option("--kubernetes", help="A Kubernetes version, such as 1.35. Repeatable. Default: those of the stacks and the next."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what AWS lists; write nothing.")] = False,
) -> None:
    """Ask AWS for its image releases, as Karpenter does, and write them to the file that stacks name as cluster.images_file.

    Needs AWS credentials, found as the aws command finds them, with ssm:GetParametersByPath. The parameters are public and free.
    """
    from capacity.catalog.data_files import Source  # noqa: PLC0415
    from capacity.catalog.node_images import FAMILIES, ImageFile, ImageRelease, as_yaml, release_order  # noqa: PLC0415

    project, settings = project_here(), eks_stacks(stacks)
    asked = sorted({*(versions or _versions(settings.values()))}, key=release_order)
    region = next(iter(settings.values())).region
    path = file or project.stacks / "node-images.yaml"
    aws = AwsImages(region)
    found, neuron = aws.releases(asked), aws.neuron(asked)
    if not any(found.values()):
        told = f"AWS lists no image for Kubernetes {', '.join(asked)} in {region}."
        raise ExplainedError(told, "check --kubernetes; what the file had is as it was.")
    today = datetime.now(UTC).date()
    name = f"aws-ssm-{today.isoformat()}"
    citation = (
        f"AWS Systems Manager, public parameters of {region} below {', '.join(AwsImages.ROOTS.values())}: standard, NVIDIA and Neuron"
    )
    after = ImageFile(
        sources={name: Source(citation=citation, as_of=today, verified=True)},
        **{
            family: tuple(
                ImageRelease(
                    release=release,
                    source=name,
                    kubernetes=found[family][release],
                    neuron={version: release in neuron[version] for version in found[family][release]} if family == "al2023" else {},
                )
                for release in sorted(found[family], key=release_order)
            )
            for family in FAMILIES
        },
    )
    _show(after, asked)
    if dry_run:
        out.print(f"{escape(str(path))} is as it was.")
        return
    write_whole(path, as_yaml(after))
    out.print(f"{escape(str(path))} has {len(after.al2023)} releases of AL2023 and {len(after.bottlerocket)} of Bottlerocket.")
    for stack, each in settings.items():
        if each.cluster.images_file is None:
            written = project.shown(project.stack_file(stack))
            out.print(f"to use it, write into {written} below cluster:  images_file: {escape(path.name)}")


def eks_stacks(names: list[str] | None) -> dict[str, EksSettings]:
    """The settings of EKS stacks. Their plan is not made: an image that is not known is why one asks. Raises ExplainedError."""
    from capacity.settings.platform import EksSettings  # noqa: PLC0415
    from capacity.settings.stack_file import read_stack_file  # noqa: PLC0415
    from capacity.values.errors import SettingsError  # noqa: PLC0415

    found: dict[str, EksSettings] = {}
    project = project_here()
    for name in names or project.stack_names():
        path = project.stack_file(name)
        try:
            settings = read_stack_file(path)
        except SettingsError as error:
            told = tuple(map(str, error.problems))
            remedy = "fix each line above, then run again."
            raise ExplainedError(f"{project.shown(path)} cannot be used.", remedy, exit_code=ExitCode.BAD_USAGE, evidence=told) from error
        if isinstance(settings, EksSettings):
            found[name] = settings
        elif names:
            raise ExplainedError(
                f"stack {name} is not on EKS.",
                "name a stack with cloud: eks; on GKE images and add-ons come with `cluster.release_channel`.",
                exit_code=ExitCode.BAD_USAGE,
            )
    if not found:
        raise ExplainedError(
            "there is no stack on EKS.", f"create one in {project.shown(project.stacks)} first.", exit_code=ExitCode.BAD_USAGE
        )
    return found


def _versions(stacks: Iterable[EksSettings]) -> list[str]:
    """The version of each stack, and the next, to which it would be raised."""
    written = {each.cluster.version for each in stacks}
    return [*written, *(f"1.{int(version.partition('.')[2]) + 1}" for version in written)]


class AwsImages:
    """The releases that AWS lists in the public parameters in which Karpenter looks aliases up.

    A release counts where it has an image without a GPU driver and one with NVIDIA's, both for x86: other work and GPU pools share the
    alias, and of a missing one Karpenter says nothing. Sources: pkg/providers/amifamily/al2023.go and bottlerocket.go of
    github.com/aws/karpenter-provider-aws.
    """

    ROOTS: ClassVar[dict[str, str]] = {"al2023": "/aws/service/eks/optimized-ami", "bottlerocket": "/aws/service/bottlerocket"}

    def __init__(self, region: str) -> None:
        boto3: Any = library("boto3", "prices-aws")
        exceptions = importlib.import_module("botocore.exceptions")
        self._errors: tuple[type[Exception], ...] = (exceptions.BotoCoreError, exceptions.ClientError)
        self._region = region
        try:
            self._client: Any = boto3.client("ssm", region_name=region)
        except self._errors as error:
            raise self._refused(error) from None

    def releases(self, versions: list[str]) -> dict[str, dict[str, dict[str, int | None]]]:
        """Of each family the releases, of each the versions with the patch of the kubelet. Raises ExplainedError."""
        found: dict[str, dict[str, dict[str, int | None]]] = {family: defaultdict(dict) for family in self.ROOTS}
        for version in versions:
            err.print(f"asking AWS in {self._region} for images of Kubernetes {version}")
            for family, listed in (("al2023", self._al2023(version)), ("bottlerocket", self._bottlerocket(version))):
                for release, patch in listed.items():
                    found[family][release][version] = patch
        return found

    def neuron(self, versions: list[str]) -> dict[str, set[str]]:
        """Of each version the releases of AL2023 that have the image with Neuron's driver. Raises ExplainedError."""
        return {version: set(self._variant(version, "neuron")) for version in versions}

    def _al2023(self, version: str) -> dict[str, int | None]:
        gpus = self._variant(version, "nvidia")
        return {release: patch for release, patch in self._variant(version, "standard").items() if release in gpus}

    def _variant(self, version: str, variant: str) -> dict[str, int | None]:
        image = re.compile(rf"amazon-eks-node-al2023-x86_64-{variant}-{re.escape(version)}-(v\d{{8}})/(\w+)")
        releases: dict[str, int | None] = {}
        for name, value in self._parameters(f"{self.ROOTS['al2023']}/{version}/amazon-linux-2023/x86_64/{variant}"):
            if (known := image.search(name)) and known[2] == "image_id":
                releases.setdefault(known[1], None)
            elif known and known[2] == "release_version" and (patch := re.match(rf"{re.escape(version)}\.(\d+)-", value)):
                releases[known[1]] = int(patch[1])
        return releases

    def _bottlerocket(self, version: str) -> dict[str, int | None]:
        image = re.compile(r"/x86_64/(\d+\.\d+\.\d+)/image_id$")
        standard, nvidia = (
            {
                found[1]
                for name, _ in self._parameters(f"{self.ROOTS['bottlerocket']}/aws-k8s-{version}{variant}/x86_64")
                if (found := image.search(name))
            }
            for variant in ("", "-nvidia")
        )
        return dict.fromkeys(standard & nvidia)

    def _parameters(self, path: str) -> list[tuple[str, str]]:
        try:
            pages = self._client.get_paginator("get_parameters_by_path").paginate(Path=path, Recursive=True)
            return [(each["Name"], each["Value"]) for page in pages for each in page["Parameters"]]
        except self._errors as error:
            raise self._refused(error) from None

    @staticmethod
    def _refused(error: Exception) -> ExplainedError:
        return refused("AWS", "images", error, "log in as for the aws command; ssm:GetParametersByPath is needed.")


def _show(file: ImageFile, versions: list[str]) -> None:
    table = Table(title="what AWS lists", title_justify="left")
    for heading in ("family", "Kubernetes", "releases", "oldest", "newest"):
        table.add_column(heading, overflow="fold")
    for family in ("al2023", "bottlerocket"):
        for version in versions:
            names = [each.release for each in getattr(file, family) if version in each.kubernetes]
            table.add_row(family, version, str(len(names)), names[0] if names else "", names[-1] if names else "")
    show_table(table)
