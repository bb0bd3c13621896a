"""Resources with content that a run deletes: clusters, networks, GPU pools, buckets, teams' storage. Deleting them needs permission.

The engine says "replace" of a route table and of a bucket alike. The resources here are deleted only on purpose. A cloud does not delete a
bucket with files in it: its error becomes the bucket's name and a remedy.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from flexspot.capacity.values.errors import ExitCode, ExplainedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pulumi.automation import EngineEvent
    from pulumi.automation.events import StepEventMetadata


class HeldKind(StrEnum):
    """Kind of content that is lost with a resource."""

    CLUSTER = "cluster"
    NETWORK = "network"
    POOL = "pool"
    BUCKET = "bucket"
    FILE_SYSTEM = "file-system"
    TEAM_STORAGE = "team-storage"


@dataclass(frozen=True)
class _Kind:
    """A type of resources with content."""

    held: HeldKind
    called: str
    """The resource's name in messages and permissions."""
    with_it: str = ""
    """Content that is deleted with it, for messages."""
    inside: str = ""
    """Type of the component that the resource must be in. Empty for any."""


_KINDS = {
    "aws:eks/cluster:Cluster": _Kind(HeldKind.CLUSTER, "cluster", "with everything that runs on it and all volumes that it created"),
    "gcp:container/cluster:Cluster": _Kind(HeldKind.CLUSTER, "cluster", "with everything that runs on it and all volumes that it created"),
    # Deleting the chart of the definitions deletes the definitions, and with them all objects of their kinds.
    "kubernetes:helm.sh/v3:Release": _Kind(
        HeldKind.POOL, "chart", "and with its definitions all pools, with their nodes", "flexspot:index:KarpenterController"
    ),
    "aws:ec2/vpc:Vpc": _Kind(HeldKind.NETWORK, "VPC"),
    "aws:ec2/subnet:Subnet": _Kind(HeldKind.NETWORK, "subnet"),
    "gcp:compute/network:Network": _Kind(HeldKind.NETWORK, "network"),
    "gcp:compute/subnetwork:Subnetwork": _Kind(HeldKind.NETWORK, "subnetwork"),
    "gcp:container/nodePool:NodePool": _Kind(HeldKind.POOL, "pool", "with its nodes and what runs on them"),
    "kubernetes:karpenter.sh/v1:NodePool": _Kind(HeldKind.POOL, "pool", "with its nodes and what runs on them"),
    "aws:s3/bucket:Bucket": _Kind(HeldKind.BUCKET, "bucket", "with everything in it"),
    "gcp:storage/bucket:Bucket": _Kind(HeldKind.BUCKET, "bucket", "with everything in it"),
    "aws:efs/fileSystem:FileSystem": _Kind(HeldKind.FILE_SYSTEM, "file system", "with everything in it"),
    "aws:fsx/lustreFileSystem:LustreFileSystem": _Kind(HeldKind.FILE_SYSTEM, "file system", "with everything in it"),
    "kubernetes:core/v1:Namespace": _Kind(HeldKind.TEAM_STORAGE, "namespace", "with everything in it", "flexspot:index:Team"),
    "kubernetes:core/v1:PersistentVolumeClaim": _Kind(HeldKind.TEAM_STORAGE, "volume claim"),
    "gcp:storage/managedFolder:ManagedFolder": _Kind(HeldKind.TEAM_STORAGE, "folder", "with everything in it"),
    # Karpenter's own queue contains nothing that lasts.
    "aws:sqs/queue:Queue": _Kind(HeldKind.TEAM_STORAGE, "work queue", "with the items in it", "flexspot:index:SqsWorkQueue"),
    "gcp:pubsub/topic:Topic": _Kind(HeldKind.TEAM_STORAGE, "topic", "with the items in it", "flexspot:index:PubsubWorkQueue"),
    "gcp:pubsub/subscription:Subscription": _Kind(
        HeldKind.TEAM_STORAGE, "subscription", "with the items in it", "flexspot:index:PubsubWorkQueue"
    ),
}

_WHOLE = frozenset(
    {
        "aws:eks/cluster:Cluster",
        "aws:ec2/vpc:Vpc",
        "gcp:compute/network:Network",
        "gcp:container/cluster:Cluster",
        "kubernetes:helm.sh/v3:Release",
    }
)
"""Resources that users never remove by editing the stack file. Deleting one needs confirmation, like replacing it."""

_GKE_POOL = "gcp:container/nodePool:NodePool"
_GPUS = "nodeConfig.guestAccelerators"
_BEHIND = {
    "nodeConfig.spot": "capacity_type",
    "nodeConfig.flexStart": "capacity_type",
    "queuedProvisioning": "capacity_type",
    "nodeConfig.maxRunDuration": "max_run_hours",
    "nodeConfig.reservationAffinity": "reservation",
    f"{_GPUS}.gpuDriverInstallationConfig": "gpu_driver",
    f"{_GPUS}.gpuSharingConfig": "gpu_sharing",
    f"{_GPUS}.gpuPartitionSize": "mig_partition",
    f"{_GPUS}.count": "gpus_per_node",
    f"{_GPUS}.type": "machine",
    "nodeConfig.secondaryBootDisks": "secondary_boot_disk_images",
    "nodeConfig.ephemeralStorageLocalSsdConfig": "local_ssd_disks or machine",
    "nodeConfig.bootDiskKmsKey": "boot_disk_kms_key",
    "nodeConfig.confidentialNodes": "confidential_nodes",
    "placementPolicy": "compact_placement",
    "maxPodsPerNode": "network.max_pods_per_node",
    "project": "project",
    "cluster": "cluster.name or cluster.existing",
    "location": "region or cluster.zone",
}
"""Settings, most of them a pool's own, whose change replaces a node pool of GKE, by the path of the provider's input."""

_OPTION = "--allow-replace"
_LISTED = 12


def held(urn_type: str) -> HeldKind | None:
    """Return the kind of content that is lost with a resource.

    `urn_type` includes the parents' types (`A$B$C`). None if nothing is lost.
    """
    kind = _kind(urn_type)
    return None if kind is None else kind.held


def _kind(urn_type: str) -> _Kind | None:
    around, _, own = urn_type.rpartition("$")
    kind = _KINDS.get(own)
    return kind if kind is not None and (not kind.inside or kind.inside in around.split("$")) else None


@dataclass(frozen=True)
class Loss:
    """One resource that is deleted."""

    urn_type: str
    name: str
    replaced: bool
    """True if another one replaces it."""
    protected: bool = False
    """True if the cloud refuses its deletion, as deployed."""
    settings: tuple[str, ...] = ()
    """Settings whose change causes the replacement, as far as they are known."""

    @property
    def held(self) -> HeldKind:
        """Kind of its content."""
        return _KINDS[self._own].held

    @property
    def permission(self) -> str:
        """The permission that allows its deletion: KIND=NAME."""
        return f"{_KINDS[self._own].called.replace(' ', '-')}={self.name}"

    @property
    def words(self) -> str:
        """The deletion for a person, in one line."""
        kind = _KINDS[self._own]
        done = "is deleted and created again" if self.replaced else "is deleted"
        lost = f" {done}" + (f", {kind.with_it}" if kind.with_it else "")
        verb = "changes" if len(self.settings) == 1 else "change"
        return f"{kind.called} {self.name}{lost}" + (f", because {', '.join(self.settings)} {verb}" if self.settings else "")

    @property
    def needs_permission(self) -> bool:
        """True if its deletion needs permission in production. Removing a pool or a team from the stack file is permission enough."""
        return self.replaced or self.held in {HeldKind.BUCKET, HeldKind.FILE_SYSTEM} or self._own in _WHOLE

    @property
    def _own(self) -> str:
        return self.urn_type.rpartition("$")[2]


@dataclass
class Losses:
    """Collects the resources that would be deleted, from the events of a preview."""

    _found: dict[str, Loss] = field(default_factory=dict[str, Loss])

    @property
    def found(self) -> list[Loss]:
        """Resources that would be deleted, the cluster first."""
        return in_order(self._found.values())

    def hear(self, event: EngineEvent) -> None:
        """Record one event."""
        if event.resource_pre_event is None:
            return
        step = event.resource_pre_event.metadata
        op = str(getattr(step.op, "value", step.op))
        if op not in {"replace", "delete-replaced", "delete"} or step.old is None:
            return
        before = self._found.get(step.urn)
        replaced = op != "delete" or (before is not None and before.replaced)
        found = loss_of(step.urn, step.old.inputs or {}, replaced=replaced, paths=_replacing(step))
        if found is not None:
            # Only one step of a replacement names its reasons.
            self._found[step.urn] = replace(found, settings=found.settings or (before.settings if before else ()))


def loss_of(urn: str, inputs: Mapping[str, Any], *, replaced: bool, paths: Iterable[str] = ()) -> Loss | None:
    """Return the loss of a resource that was deployed with `inputs`. None if nothing is lost.

    `paths` are the inputs that it is replaced for.
    """
    urn_type = urn.split("::")[2]
    if _kind(urn_type) is None:
        return None
    return Loss(urn_type, _name(inputs, urn), replaced, inputs.get("deletionProtection") is True, _settings_behind(urn_type, paths))


def _settings_behind(urn_type: str, paths: Iterable[str]) -> tuple[str, ...]:
    """Return the settings that replace a node pool of GKE. Empty for other resources, and if the provider gives no reasons."""
    if not urn_type.endswith(_GKE_POOL):
        return ()
    plain = [re.sub(r"\[\d+\]", "", path) for path in paths]
    return tuple(dict.fromkeys(name for begin, name in _BEHIND.items() for path in plain if f"{path}.".startswith(f"{begin}.")))


def _replacing(step: StepEventMetadata) -> list[str]:
    return [path for path, each in (step.detailed_diff or {}).items() if str(each.diff_kind.value).endswith("-replace")]


def _name(inputs: Mapping[str, Any], urn: str) -> str:
    """Return the name by which a person knows a resource."""
    metadata: Mapping[str, Any] = inputs.get("metadata") or {}
    if metadata.get("name"):
        return "/".join(str(metadata[key]) for key in ("namespace", "name") if metadata.get(key))
    tags: Mapping[str, Any] = inputs.get("tags") or {}
    return str(inputs.get("name") or inputs.get("bucket") or tags.get("Name") or urn.rpartition("::")[2])


def in_order(losses: Iterable[Loss]) -> list[Loss]:
    """Sort losses: the cluster first, then by kind and name."""
    order = list(HeldKind)
    return sorted(losses, key=lambda each: (order.index(each.held), each.name))


def summary_lines(losses: Iterable[Loss]) -> list[str]:
    """Return the losses as lines, at most a dozen."""
    lines = [each.words for each in losses]
    return lines if len(lines) <= _LISTED else [*lines[:_LISTED], f"and {len(lines) - _LISTED} more"]


def check_permissions(allowed: Iterable[str]) -> None:
    """Raise ExplainedError (bad usage) for a permission that fits nothing: not KIND=NAME, or of an unknown kind."""
    kinds = sorted({each.called.replace(" ", "-") for each in _KINDS.values()})
    for written in allowed:
        kind, given, name = written.partition("=")
        if not given or not name or kind not in kinds:
            remedy = f"write KIND=NAME as the refusal shows it. KIND is one of {', '.join(kinds)}."
            raise ExplainedError(
                f"{_OPTION}: {written} names nothing that can be replaced or deleted.", remedy, exit_code=ExitCode.BAD_USAGE
            )


def refusal(losses: Iterable[Loss], allowed: Iterable[str], *, production: bool) -> ExplainedError | None:
    """Return an error for losses without permission, or None if the run may start.

    `allowed` are permissions as in `Loss.permission`. That of a cluster covers everything on it. The deletion of a cluster that is
    protected as deployed is always refused: the cloud would refuse it too, after everything around the cluster is gone.
    """
    found, given = list(losses), set(allowed)
    if kept := [each for each in found if each.protected]:
        return ExplainedError(
            "this would delete a cluster whose deletion protection is on. Nothing was changed.",
            "undo the change; or, if it is intended, first run `up` with `cluster.deletion_protection: false` as the only change.",
            evidence=tuple(summary_lines(kept)),
        )
    whole = any(each.held is HeldKind.CLUSTER and each.permission in given for each in found)
    on_it = {HeldKind.POOL, HeldKind.TEAM_STORAGE}
    missing = [each for each in found if each.needs_permission and each.permission not in given and not (whole and each.held in on_it)]
    if production and missing:
        # The cluster's permission covers everything on it.
        needed = [each for each in missing if each.held not in on_it] or missing
        options = " ".join(f"{_OPTION} {each.permission}" for each in needed[:_LISTED])
        return ExplainedError(
            "this would replace or delete resources of a production stack without --allow-replace. Nothing was changed.",
            f"undo the change; or, if it is intended, run the same command with {options}",
            evidence=tuple(summary_lines(missing)),
        )
    return None


_GOOGLE = re.compile(r"Error trying to delete bucket (\S+) containing objects without `force_destroy` set to true")
"""Error message of Google's provider 9.29, which looks into the bucket itself. Found in two public logs (read on 2026-11-25)."""

_AWS = re.compile(r"deleting S3 Bucket \(([^)]+)\):[^*]*?BucketNotEmpty")
"""Error message of AWS's provider, before the API's own. Found in public logs too, on several lines (read on 2026-11-25)."""

# It deletes folders and older versions too, and keeps the bucket: cloud.google.com/sdk/gcloud/reference/storage/rm, read on 2026-11-25.
_EMPTIED_ON_GOOGLE = "gcloud storage rm --recursive 'gs://{name}/*'"
_EMPTIED_ON_AWS = 'the button "Empty" of bucket {name} in the S3 console, which takes older versions, too'


def filled_buckets_remedy(text: str) -> str | None:
    """Return a remedy for a run that failed because buckets are not empty. None if `text`, the engine's output, names none."""
    google, aws = (list(dict.fromkeys(pattern.findall(text))) for pattern in (_GOOGLE, _AWS))
    if not google and not aws:
        return None
    names = ", ".join([*google, *aws])
    ways = [_EMPTIED_ON_GOOGLE.format(name=name) for name in google] + [_EMPTIED_ON_AWS.format(name=name) for name in aws]
    return (
        f"there are files in {names}, and Flexspot deletes none but checkpoints outside of production: copy away what is still needed, "
        f"empty it ({'; '.join(ways)}), and run the same command again: it continues where this one stopped."
    )
