"""What holds checkpoints and datasets, and teams' queues of work items."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from capacity.catalog.data_files import DescribedRecord
from capacity.values.names import AWS_KEY, GCP_KEY, Name

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
    """What the volumes of workloads are made of on EKS. S3 is a bucket, EFS a file system that programs write, rename and lock files in."""

    S3 = "s3"
    EFS = "efs"


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


class EksStorage(Storage):
    """Buckets of S3, file systems of EFS, and queues of SQS."""

    checkpoints: StorageKind = StorageKind.S3
    """What workloads' checkpoint folders are in: `s3` or `efs`. The bucket is there either way. Another kind begins empty, and is mounted
    by pods that start after it; nothing is copied."""

    datasets: StorageKind = StorageKind.S3
    """What workloads' datasets are in, likewise."""

    efs: Efs = Efs()
    """The file systems of EFS."""

    encryption_key: Annotated[str, Field(pattern=AWS_KEY)] | None = None
    """The ARN of a KMS key of the region, for buckets, file systems and work queues; default: the services' own keys. A file system's key
    never changes: another one would replace it, which `deletion_protection` refuses."""

    @property
    def file_systems(self) -> dict[str, StorageKind]:
        """What is in no bucket, by purpose: the name of the setting, which is the claim's too."""
        kinds = {"checkpoints": self.checkpoints, "datasets": self.datasets}
        return {purpose: kind for purpose, kind in kinds.items() if kind is not StorageKind.S3}

    @property
    def has_efs(self) -> bool:
        """Whether anything is in EFS."""
        return StorageKind.EFS in self.file_systems.values()


class WorkQueue(DescribedRecord):
    """A team's queue of work items (Pub/Sub, SQS), with a dead-letter queue."""

    name: Name = "work"
    """The queue's name."""

    lease_seconds: Annotated[int, Field(ge=10, le=600)] = 300
    """Seconds that a worker has an item before somebody else gets it: more than a worker's last grace."""

    max_attempts: Annotated[int, Field(ge=5, le=100)] = 20
    """Attempts before an item is put aside; an interruption counts as one."""
