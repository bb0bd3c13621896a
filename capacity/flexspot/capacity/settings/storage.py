"""Storage for checkpoints and datasets, and teams' queues of work items."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from flexspot.capacity.catalog.data_files import DescribedRecord
from flexspot.capacity.values.names import AWS_KEY, GCP_KEY, Name, Zone

LEASE_MARGIN_SECONDS = 30
"""Seconds by which a worker's lease must exceed its grace period: for the last write, and for clock differences."""


class StorageSettings(DescribedRecord):
    """The platform's buckets, in its region."""

    checkpoint_days: Annotated[int, Field(ge=1, le=3650)] = 30
    """Days after which a checkpoint is deleted. Applies to buckets, not to file systems."""

    location: str | None = None
    """Region of the buckets. Default: the cluster's region; any other is rejected."""


class GkeStorage(StorageSettings):
    """Cloud Storage buckets and Pub/Sub queues."""

    encryption_key: Annotated[str, Field(pattern=GCP_KEY)] | None = None
    """Name of a Cloud KMS key in the region, for buckets and work queues. Default: Google's own keys."""


class StorageKind(StrEnum):
    """The storage behind workloads' volumes on EKS.

    S3 is a bucket. EFS is a file system in which programs can write, rename and lock files. LUSTRE is an FSx for Lustre file system: fast,
    in one zone, backed by the datasets bucket.
    """

    S3 = "s3"
    EFS = "efs"
    LUSTRE = "lustre"


EFS_TEAMS = 190
"""Maximum teams of an EFS file system. A policy may have 20,000 characters (API reference, PutFileSystemPolicy), and each team's access
point takes some 90 of them."""

IdleDays = Literal[0, 1, 7, 14, 30, 60, 90, 180, 270, 365]
"""Days of EFS's lifecycle rules (EFS API reference, LifecyclePolicy, TransitionToIA). 0: no rule."""


class Efs(DescribedRecord):
    """The EFS file systems, one each for checkpoints and datasets where they use EFS."""

    infrequent_access_days: IdleDays = 30
    """Days after which an unread file moves to Infrequent Access, which is cheaper to store and more expensive to read; the first read
    moves it back. 0: files never move."""

    provisioned_mibps: Annotated[int, Field(ge=1, le=3414)] | None = None
    """Provisioned throughput in MiB/s, paid by the month whether used or not. Default: elastic throughput, which follows the load and is
    paid by the data read and written."""

    deletion_protection: bool | None = None
    """While this is true, a file system can be neither destroyed nor replaced. Default: true for datasets; for checkpoints only in
    production."""


class LustreDeployment(StrEnum):
    """Durability of a Lustre file system when one of its servers fails; the names are AWS's.

    PERSISTENT_2 keeps two copies in its zone and replaces the server; AWS does not offer it in every region. SCRATCH_2 loses the files on
    that server.
    """

    PERSISTENT_2 = "PERSISTENT_2"
    SCRATCH_2 = "SCRATCH_2"


LUSTRE_LEAST_GIB, LUSTRE_STEP_GIB = 1200, 2400
"""Size of the smallest Lustre file system, and the unit of all others (FSx API reference, CreateFileSystem, StorageCapacity: SSD)."""


def _lustre_size(gib: int) -> int:
    if gib != LUSTRE_LEAST_GIB and (gib <= 0 or gib % LUSTRE_STEP_GIB):
        raise ValueError(f"is not a size of Lustre; use {LUSTRE_LEAST_GIB}, {LUSTRE_STEP_GIB} or a multiple of {LUSTRE_STEP_GIB}")
    return gib


class Lustre(DescribedRecord):
    """The FSx for Lustre file system, where datasets use Lustre."""

    capacity_gib: Annotated[int, Field(ge=LUSTRE_LEAST_GIB), AfterValidator(_lustre_size)] = LUSTRE_LEAST_GIB
    """Size in GiB, paid by the month whether used or not: 1200, 2400 or a multiple of 2400. It grows in place; a smaller size replaces
    it. Bucket contents beyond this size cannot be read."""

    deployment: LustreDeployment = LustreDeployment.PERSISTENT_2
    """`PERSISTENT_2`, or `SCRATCH_2`, which loses files when one of its servers fails. The files remain in the bucket, but to read them
    again you must recreate the file system."""

    throughput_mbps_per_tib: Literal[125, 250, 500, 1000] | None = None
    """Throughput in MB/s per TiB of size; the price of `PERSISTENT_2` depends on it. `SCRATCH_2` has 200, and rejects this setting.
    Default: 125."""

    zone: Zone | None = None
    """Zone of the file system. Nodes in other zones can also use it, but pay for cross-zone traffic and lose access when its zone fails.
    Default: the first of `zones`."""

    deletion_protection: bool | None = None
    """While this is true, the file system can be neither destroyed nor replaced. Its files are also in the bucket. Default: true only in
    production."""

    @model_validator(mode="after")
    def _only_persistent_storage_has_throughput(self) -> Self:
        if self.deployment is LustreDeployment.SCRATCH_2 and self.throughput_mbps_per_tib is not None:
            raise ValueError("has throughput_mbps_per_tib with SCRATCH_2, which does not support it; leave it out, or use PERSISTENT_2")
        return self

    @property
    def bought_mbps_per_tib(self) -> int | None:
        """Throughput bought with each TiB. None if the deployment does not sell throughput."""
        return None if self.deployment is LustreDeployment.SCRATCH_2 else self.throughput_mbps_per_tib or LUSTRE_MBPS_PER_TIB


LUSTRE_MBPS_PER_TIB = 125
"""Default throughput of PERSISTENT_2 in MB/s per TiB: its minimum (FSx API reference, PerUnitStorageThroughput)."""


class EksStorage(StorageSettings):
    """S3 buckets, EFS and Lustre file systems, and SQS queues."""

    checkpoints: Literal[StorageKind.S3, StorageKind.EFS] = StorageKind.S3
    """Storage for workloads' checkpoint folders: `s3` or `efs`. The bucket exists either way. After a change the new storage is empty,
    and only pods that start afterwards mount it; nothing is copied. `lustre` is not available, because it cannot isolate teams' folders
    from each other."""

    datasets: StorageKind = StorageKind.S3
    """Storage for workloads' datasets: `s3`, `efs` or `lustre`. `efs` starts empty; `lustre` shows the datasets of the bucket."""

    efs: Efs = Efs()
    """The EFS file systems."""

    lustre: Lustre = Lustre()
    """The FSx for Lustre file system."""

    encryption_key: Annotated[str, Field(pattern=AWS_KEY)] | None = None
    """ARN of a KMS key in the region, for buckets, file systems and work queues. The key of a file system cannot change: a different key
    would replace it, which `deletion_protection` prevents. For `lustre`, the key policy must let FSx read the bucket. Default: the
    services' own keys."""

    @property
    def file_systems(self) -> dict[str, StorageKind]:
        """File systems that workloads mount instead of a bucket, by purpose: the name of the setting, which is also the claim's name."""
        kinds: dict[str, StorageKind] = {"checkpoints": self.checkpoints, "datasets": self.datasets}
        return {purpose: kind for purpose, kind in kinds.items() if kind is not StorageKind.S3}

    @property
    def in_efs(self) -> tuple[str, ...]:
        """Purposes whose files are in EFS."""
        return tuple(purpose for purpose, kind in self.file_systems.items() if kind is StorageKind.EFS)

    @property
    def has_efs(self) -> bool:
        """True if any files are in EFS."""
        return bool(self.in_efs)

    @property
    def has_lustre(self) -> bool:
        """True if any files are in Lustre."""
        return StorageKind.LUSTRE in self.file_systems.values()


class WorkQueueSettings(DescribedRecord):
    """A team's queue of work items (Pub/Sub or SQS), with a dead-letter queue."""

    name: Name = "work"
    """The queue's name."""

    lease_seconds: Annotated[int, Field(ge=10, le=600)] = 300
    """Seconds that a worker holds an item before another worker gets it; must exceed the worker's termination grace period."""

    max_attempts: Annotated[int, Field(ge=5, le=100)] = 20
    """Attempts before an item moves to the dead-letter queue; an interruption counts as one."""
