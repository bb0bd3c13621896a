"""Buckets for checkpoints and datasets, and teams' queues of work items."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from capacity.catalog.data_files import Record
from capacity.values.names import AWS_KEY, GCP_KEY, Name

LEASE_MARGIN_SECONDS = 30
"""How much longer than a worker's grace its lease must be: for the last write, and for clocks that differ."""


class Storage(Record):
    """The platform's buckets, in its own region.

    `checkpoint_days` after which a checkpoint is deleted. `location` is the region of the buckets; default: the cluster's, and another is
    refused. `encryption_key` is a key of one's own, also of the work queues; default: the cloud's.
    """

    checkpoint_days: Annotated[int, Field(ge=1, le=3650)] = 30
    location: str | None = None


class GkeStorage(Storage):
    """Buckets of Cloud Storage and queues of Pub/Sub. `encryption_key` is a name of Cloud KMS."""

    encryption_key: Annotated[str, Field(pattern=GCP_KEY)] | None = None


class EksStorage(Storage):
    """Buckets of S3 and queues of SQS. `encryption_key` is the ARN of a KMS key."""

    encryption_key: Annotated[str, Field(pattern=AWS_KEY)] | None = None


class WorkQueue(Record):
    """A team's queue of work items (Pub/Sub, SQS), with a dead-letter queue.

    `lease_seconds` (10 to 600) is how long a worker has an item before somebody else gets it: longer than a worker's last grace.
    `max_attempts` (5 to 100) before an item is put aside; an interruption counts as one.
    """

    name: Name = "work"
    lease_seconds: Annotated[int, Field(ge=10, le=600)] = 300
    max_attempts: Annotated[int, Field(ge=5, le=100)] = 20
