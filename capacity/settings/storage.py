"""What holds checkpoints and datasets, and teams' queues of work items."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from capacity.catalog.data_files import DescribedRecord
from capacity.values.names import AWS_KEY, GCP_KEY, Name, Zone

LEASE_MARGIN_SECONDS = 30
"""How much longer than a worker's grace its lease must be: for the last write, and for clocks that differ."""


class Storage(DescribedRecord):
    """The platform's buckets, in its own region."""

    checkpoint_days: Annotated[int, Field(ge=1, le=3650)] = 30
    """Days after which a checkpoint is deleted. Buckets do that, file systems do not."""

    location: str | None = None
    """The region of the buckets; default: the cluster's, and another is refused."""


class GkeStorage(Storage):
    """Buckets of Cloud Storage and queues of Pub/Sub."""

    encryption_key: Annotated[str, Field(pattern=GCP_KEY)] | None = None
    """The name of a Cloud KMS key of the region, for buckets and work queues; default: Google's own keys."""


class StorageKind(StrEnum):
    """What the volumes of workloads are made of on EKS.

    S3 is a bucket, EFS a file system that programs write, rename and lock files in, LUSTRE one of FSx for Lustre: fast, in one zone, over
    the bucket of datasets.
    """

    S3 = "s3"
    EFS = "efs"
    LUSTRE = "lustre"


EFS_TEAMS = 190
"""EFS takes a policy of 20,000 characters (API reference, PutFileSystemPolicy), and each team's access point takes some 90 of them."""

IdleDays = Literal[0, 1, 7, 14, 30, 60, 90, 180, 270, 365]
"""None, and the days that EFS's lifecycle rules know (EFS API reference, LifecyclePolicy, TransitionToIA)."""


class Efs(DescribedRecord):
    """The file systems of EFS, one for checkpoints and one for datasets where they are asked for."""

    infrequent_access_days: IdleDays = 30
    """Days after which a file that nobody reads moves to Infrequent Access, which is cheaper to keep and dearer to read, and from which its
    first read takes it back; 0 leaves files where they are."""

    provisioned_mibps: Annotated[int, Field(ge=1, le=3414)] | None = None
    """Throughput in MiB/s that is paid for by the month, used or not. Default: elastic, which follows the work and is paid for by what is
    read and written."""

    deletion_protection: bool | None = None
    """Whether a file system can be neither destroyed nor replaced until this is false; default: true for datasets, and in production for
    checkpoints too."""


class LustreDeployment(StrEnum):
    """What becomes of a file system of Lustre when one of its servers fails, by AWS's names.

    PERSISTENT_2 keeps two copies in its zone and replaces the server; AWS does not have it in every region. SCRATCH_2 loses the files of
    that server.
    """

    PERSISTENT_2 = "PERSISTENT_2"
    SCRATCH_2 = "SCRATCH_2"


LUSTRE_LEAST_GIB, LUSTRE_STEP_GIB = 1200, 2400
"""The smallest file system of Lustre, and the steps of all others (FSx API reference, CreateFileSystem, StorageCapacity: SSD)."""


def _of_lustres_sizes(gib: int) -> int:
    if gib != LUSTRE_LEAST_GIB and (gib <= 0 or gib % LUSTRE_STEP_GIB):
        raise ValueError(f"is no size that Lustre has; use {LUSTRE_LEAST_GIB}, {LUSTRE_STEP_GIB} or a multiple of {LUSTRE_STEP_GIB}")
    return gib


class Lustre(DescribedRecord):
    """The file system of FSx for Lustre, where datasets are in one."""

    capacity_gib: Annotated[int, Field(ge=LUSTRE_LEAST_GIB), AfterValidator(_of_lustres_sizes)] = LUSTRE_LEAST_GIB
    """Its size in GiB, which is paid for by the month, filled or not: 1200, 2400 or a multiple of 2400. It grows in place, and is made
    anew where it shrinks. What the bucket has beyond that cannot be read."""

    deployment: LustreDeployment = LustreDeployment.PERSISTENT_2
    """`PERSISTENT_2`, or `SCRATCH_2`, which loses files when a server of it fails; they are in the bucket still, and the file system has to
    be made anew to have them again."""

    throughput_mbps_per_tib: Literal[125, 250, 500, 1000] | None = None
    """Throughput in MB/s for each TiB of its size, which the price of `PERSISTENT_2` follows; default: 125. `SCRATCH_2` has 200 and takes
    none."""

    zone: Zone | None = None
    """The zone in which it is; nodes of other zones reach it too, for the price of traffic between zones and not while its zone is down.
    Default: the first of `zones`."""

    deletion_protection: bool | None = None
    """Whether it can be neither destroyed nor replaced until this is false; default: true in production. Its files are the bucket's."""

    @model_validator(mode="after")
    def _throughput_is_bought_with_persistent_storage_alone(self) -> Self:
        if self.deployment is LustreDeployment.SCRATCH_2 and self.throughput_mbps_per_tib is not None:
            raise ValueError("has throughput_mbps_per_tib with SCRATCH_2, which takes none; leave it out, or use PERSISTENT_2")
        return self

    @property
    def bought_mbps_per_tib(self) -> int | None:
        """The throughput that is bought with each TiB; None where none can be."""
        return None if self.deployment is LustreDeployment.SCRATCH_2 else self.throughput_mbps_per_tib or LUSTRE_MBPS_PER_TIB


LUSTRE_MBPS_PER_TIB = 125
"""What PERSISTENT_2 has where nobody says more: the least that it takes (FSx API reference, PerUnitStorageThroughput)."""


class EksStorage(Storage):
    """Buckets of S3, file systems of EFS and Lustre, and queues of SQS."""

    checkpoints: Literal[StorageKind.S3, StorageKind.EFS] = StorageKind.S3
    """What workloads' checkpoint folders are in: `s3` or `efs`. The bucket is there either way. Another kind begins empty, and is mounted
    by pods that start after it; nothing is copied. Not `lustre`, which has nothing that keeps a team's folder from the others."""

    datasets: StorageKind = StorageKind.S3
    """What workloads' datasets are in: `s3`, `efs` or `lustre`. In `efs` they begin empty; in `lustre` they are those of the bucket."""

    efs: Efs = Efs()
    """The file systems of EFS."""

    lustre: Lustre = Lustre()
    """The file system of FSx for Lustre."""

    encryption_key: Annotated[str, Field(pattern=AWS_KEY)] | None = None
    """The ARN of a KMS key of the region, for buckets, file systems and work queues; default: the services' own keys. A file system's key
    never changes: another one would replace it, which `deletion_protection` refuses. Its policy must let FSx read a bucket for `lustre`."""

    @property
    def file_systems(self) -> dict[str, StorageKind]:
        """What is not mounted from a bucket, by purpose: the name of the setting, which is the claim's too."""
        kinds: dict[str, StorageKind] = {"checkpoints": self.checkpoints, "datasets": self.datasets}
        return {purpose: kind for purpose, kind in kinds.items() if kind is not StorageKind.S3}

    @property
    def in_efs(self) -> tuple[str, ...]:
        """The purposes whose files are in EFS."""
        return tuple(purpose for purpose, kind in self.file_systems.items() if kind is StorageKind.EFS)

    @property
    def has_efs(self) -> bool:
        """Whether anything is in EFS."""
        return bool(self.in_efs)

    @property
    def has_lustre(self) -> bool:
        """Whether anything is in Lustre."""
        return StorageKind.LUSTRE in self.file_systems.values()


class WorkQueue(DescribedRecord):
    """A team's queue of work items (Pub/Sub, SQS), with a dead-letter queue."""

    name: Name = "work"
    """The queue's name."""

    lease_seconds: Annotated[int, Field(ge=10, le=600)] = 300
    """Seconds that a worker has an item before somebody else gets it: more than a worker's last grace."""

    max_attempts: Annotated[int, Field(ge=5, le=100)] = 20
    """Attempts before an item is put aside; an interruption counts as one."""
