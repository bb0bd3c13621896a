"""Buckets for checkpoints and datasets, and teams' queues of work items."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from capacity.catalog.data_files import DescribedRecord
from capacity.values.names import AWS_KEY, GCP_KEY, Name

LEASE_MARGIN_SECONDS = 30
"""How much longer than a worker's grace its lease must be: for the last write, and for clocks that differ."""


class Storage(DescribedRecord):
    """The platform's buckets, in its own region."""

    checkpoint_days: Annotated[int, Field(ge=1, le=3650)] = 30
    """Days after which a checkpoint is deleted."""

    location: str | None = None
    """The region of the buckets; default: the cluster's, and another is refused."""


class GkeStorage(Storage):
    """Buckets of Cloud Storage and queues of Pub/Sub."""

    encryption_key: Annotated[str, Field(pattern=GCP_KEY)] | None = None
    """The name of a Cloud KMS key of the region, for buckets and work queues; default: Google's own keys."""


class EksStorage(Storage):
    """Buckets of S3 and queues of SQS."""

    encryption_key: Annotated[str, Field(pattern=AWS_KEY)] | None = None
    """The ARN of a KMS key of the region, for buckets and work queues; default: the services' own keys."""


class WorkQueue(DescribedRecord):
    """A team's queue of work items (Pub/Sub, SQS), with a dead-letter queue."""

    name: Name = "work"
    """The queue's name."""

    lease_seconds: Annotated[int, Field(ge=10, le=600)] = 300
    """Seconds that a worker has an item before somebody else gets it: more than a worker's last grace."""

    max_attempts: Annotated[int, Field(ge=5, le=100)] = 20
    """Attempts before an item is put aside; an interruption counts as one."""
