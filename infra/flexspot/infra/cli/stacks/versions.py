"""`flexspot versions` and `flexspot images`: the version of each part of an EKS stack, and releases of node images."""

from __future__ import annotations

import importlib
import re
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer
from rich.markup import escape
from rich.text import Text

from flexspot.capacity.catalog.data_files import Source
from flexspot.capacity.catalog.node_images import FAMILIES, ImageFile, ImageRelease, as_yaml, release_order
from flexspot.capacity.catalog.versions import Addon, auto_mode, shipped_versions, version_order
from flexspot.capacity.plan.build import build_plan, image_book_of, price_book_of
from flexspot.capacity.plan.versions import version_plan
from flexspot.capacity.settings.platform import EksSettings
from flexspot.capacity.settings.stack_file import read_stack_file
from flexspot.capacity.values.errors import ExitCode, ExplainedError, SettingsError
from flexspot.infra.cli.command_line import Stack, bad_usage, of_stack, option, write_whole
from flexspot.infra.cli.console import err, out, show
from flexspot.infra.loading import library
from flexspot.infra.price_lists import refused
from flexspot.infra.project import project_here

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flexspot.capacity.catalog.node_images import ImageBook
    from flexspot.capacity.plan.versions import VersionPlan


Stacks = Annotated[list[str] | None, option("--stack -s", "An EKS stack. Repeatable. Default: all.")]


def list_known(stacks: Stacks = None) -> None:
    """List the known image releases for each stack's Kubernetes version, newest first."""
    rows: list[tuple[Text | str, ...]] = []
    for stack, settings in eks_stacks(stacks).items():
        cluster = settings.cluster
        if not cluster.has_own_image:
            rows.append((stack, cluster.version, Text("AWS's own to choose, in Auto Mode", "dim"), ""))
            continue
        book = image_book_of(settings, project_here().stacks, f"Pulumi.{stack}.yaml")
        fitting = book.with_images_for(cluster.image.partition("@")[0], cluster.version)
        colour = "green" if cluster.version in book.versions_of(cluster.image) else "red"
        rows.append((stack, cluster.version, Text(cluster.image, colour), ", ".join(reversed(fitting)) or "none"))
    show("", ("stack", "Kubernetes", "written", "known releases, the newest first"), rows)


def refresh_images(
    stacks: Stacks = None,
    file: Annotated[Path | None, option("--file", "The file to write. Default: node-images.yaml next to the stacks.")] = None,
    versions: Annotated[
        list[str] | None,
        option("--kubernetes", "A Kubernetes version, such as 1.35. Repeatable. Default: those of the stacks and the next."),
    ] = None,
    dry_run: Annotated[bool, option("--dry-run", "Show what AWS lists; write nothing.")] = False,
) -> None:
    """Ask AWS for its image releases, as Karpenter does, and write them to the file that stacks name as cluster.images_file.

    Needs AWS credentials, found as the aws command finds them, with ssm:GetParametersByPath. The parameters are public and free.
    """
    project, settings = project_here(), eks_stacks(stacks)
    asked = sorted({*(versions or _kubernetes_versions(settings.values()))}, key=release_order)
    region = next(iter(settings.values())).region
    path = file or project.stacks / "node-images.yaml"
    aws = AwsImages(region)
    found, neuron = aws.releases(asked), aws.neuron(asked)
    if not any(found.values()):
        problem = f"--kubernetes: AWS lists no image for {', '.join(asked)} in {region}."
        raise ExplainedError(problem, "check --kubernetes. The file was not changed.")
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
    _show_releases(after, asked)
    if dry_run:
        out.print(f"{escape(str(path))} is unchanged.")
        return
    write_whole(path, as_yaml(after))
    out.print(f"{escape(str(path))} has {len(after.al2023)} releases of AL2023 and {len(after.bottlerocket)} of Bottlerocket.")
    for stack, each in settings.items():
        if each.cluster.images_file is None:
            written = project.shown(project.stack_file(stack))
            out.print(f"to use it, write into {written} below cluster:  images_file: {escape(path.name)}")


def eks_stacks(names: list[str] | None) -> dict[str, EksSettings]:
    """Return the settings of EKS stacks. Raises ExplainedError.

    Their plans are not built, because the caller may be looking for an image that is not known yet.
    """
    found: dict[str, EksSettings] = {}
    project = project_here()
    for name in names or project.stack_names():
        settings = of_stack(name, read_stack_file)
        if isinstance(settings, EksSettings):
            found[name] = settings
        elif names:
            raise bad_usage(
                f"stack {name} is not on EKS.",
                "name a stack with cloud: eks; on GKE, `cluster.release_channel` determines images and add-ons.",
            )
    if not found:
        raise bad_usage("the project has no stack on EKS.", f"create one in {project.shown(project.stacks)} first.")
    return found


def _kubernetes_versions(stacks: Iterable[EksSettings]) -> list[str]:
    """Return each stack's version and the next one, to which it would be upgraded."""
    written = {each.cluster.version for each in stacks}
    return [*written, *(f"1.{int(version.partition('.')[2]) + 1}" for version in written)]


class AwsImages:
    """Releases listed in AWS's public parameters, where Karpenter looks up aliases.

    A release counts if it has an x86 image without a GPU driver and one with NVIDIA's. GPU pools and other work share the alias, and
    Karpenter reports no error for a missing image. Sources: pkg/providers/amifamily/al2023.go and bottlerocket.go of
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
        """Return releases by family. Each has its Kubernetes versions with the patch of the kubelet. Raises ExplainedError."""
        found: dict[str, dict[str, dict[str, int | None]]] = {family: defaultdict(dict) for family in self.ROOTS}
        for version in versions:
            err.print(f"asking AWS in {self._region} for images of Kubernetes {version}")
            for family, listed in (("al2023", self._al2023(version)), ("bottlerocket", self._bottlerocket(version))):
                for release, patch in listed.items():
                    found[family][release][version] = patch
        return found

    def neuron(self, versions: list[str]) -> dict[str, set[str]]:
        """Return by Kubernetes version the AL2023 releases that have an image with Neuron's driver. Raises ExplainedError."""
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
        return refused("AWS", "images", error, "log in as for the AWS CLI, with the permission ssm:GetParametersByPath.")


def _show_releases(file: ImageFile, versions: list[str]) -> None:
    rows: list[tuple[str, ...]] = []
    for family in ("al2023", "bottlerocket"):
        for version in versions:
            names = [each.release for each in getattr(file, family) if version in each.kubernetes]
            rows.append((family, version, str(len(names)), names[0] if names else "", names[-1] if names else ""))
    show("what AWS lists", ("family", "Kubernetes", "releases", "oldest", "newest"), rows)


CHOSEN_BY_EKS = "EKS's default"


def list_versions(stack: Stack) -> None:
    """Show which version of each part a stack gets, in the order of an upgrade. Asks no cloud."""
    settings, images = _of(stack)
    parts = _parts(version_plan(settings, images), settings)
    show(f"stack {stack}", ("part", "version"), [(part, version or Text(CHOSEN_BY_EKS, "dim")) for part, version in parts.items()])


def upgrade(
    stack: Stack,
    to: Annotated[str, option("--to", "The next Kubernetes version, such as 1.36.")],
    ami: Annotated[str | None, option("--ami", "The node image for it, such as al2023@v20260903. Default: the stack's own.")] = None,
) -> None:
    """Show what another Kubernetes version would change in a stack, and what would break (exit code 1). Changes nothing."""
    settings, images = _of(stack)
    if settings.cluster.existing is not None:
        raise ExplainedError(f"stack {stack} uses an existing cluster, which Flexspot does not upgrade.", "upgrade it where it is created.")
    # EKS upgrades a control plane by one minor version at a time, and never downgrades it.
    now, (major, minor) = settings.cluster.version, version_order(settings.cluster.version)
    if to != f"{major}.{minor + 1}":
        remedy = f"use --to {major}.{minor + 1}; each further version needs a separate `up`."
        raise bad_usage(f"--to: EKS upgrades {now} only to {major}.{minor + 1}, not to {to}.", remedy)
    cluster = settings.cluster.model_copy(update={"version": to} | ({"ami": ami} if ami else {}))
    raised = settings.model_copy(update={"cluster": cluster})
    before, after = version_plan(settings, images), version_plan(raised, images)
    _show_changes(_parts(before, settings), _parts(after, settings))
    source = f"Pulumi.{stack}.yaml"
    try:
        build_plan(raised, source, price_book_of(raised, project_here().stacks, source), images)
    except SettingsError as error:
        for problem in error.problems:
            out.print(f"[red]refused[/] {escape(str(problem))}")
        raise typer.Exit(ExitCode.UNMET) from error
    out.print(f"stack {stack} can be upgraded to {to}; docs/guides/eks.md has the steps.")


def _parts(plan: VersionPlan, settings: EksSettings) -> dict[str, str]:
    """Return the parts of a plan that the stack has.

    Drivers are included if the stack mounts their volumes. In Auto Mode, the parts that it brings itself are left out.
    """
    wanted = {
        Addon.EFS_DRIVER: settings.storage.has_efs,
        Addon.LUSTRE_DRIVER: settings.storage.has_lustre,
        Addon.METRICS_SERVER: settings.cluster.addons.metrics_server,
    }
    missing = {addon.value for addon, installed in wanted.items() if not installed}
    if not settings.cluster.has_own_image:
        missing |= {*auto_mode().addons, "system nodes"}
    parts = {part: version for part, version in plan.parts().items() if part not in missing}
    if settings.measurement.kube_state_metrics:
        parts["image kube-state-metrics"] = shipped_versions().kube_state_metrics.version
    return parts


def _of(stack: str) -> tuple[EksSettings, ImageBook]:
    settings = eks_stacks([stack])[stack]
    return settings, image_book_of(settings, project_here().stacks, f"Pulumi.{stack}.yaml")


def _show_changes(before: dict[str, str], then: dict[str, str]) -> None:
    """Print what another version changes. A part stays as it is if EKS chooses its version, or if the new plan names none."""
    changed = {part: version for part, version in before.items() if then[part] != version or not version}
    rows = [(part, version or CHOSEN_BY_EKS, then[part] or Text("as it is", "dim")) for part, version in changed.items()]
    show("what changes, in this order", ("part", "now", "then"), rows)
