"""The arguments of SqsWorkQueue, the same with their defaults filled in, and what is refused."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types.
import re
from dataclasses import dataclass
from typing import NotRequired, TypedDict

import pulumi

from capacity.settings.storage import LEASE_MARGIN_SECONDS
from components.eks.names import check_place
from components.fitted_name import fitted
from components.storage.aws_inputs import check_aws_tags, check_kms_key
from components.storage.sqs_queue_policy import queue_arn

QUEUE_CHARACTERS = 80
MOST_LEASE_SECONDS = 12 * 60 * 60

DEAD_LETTER_DAYS = 14
"""The most that SQS keeps a message, from when it was sent."""

_USUAL_LEASE_SECONDS = 300
_USUAL_RETENTION_DAYS = 7
_USUAL_ATTEMPTS = 20

_DEAD_LETTER = "-dead-letter"
_QUEUE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


class SqsWorkQueueArgs(TypedDict):
    """Arguments of SqsWorkQueue."""

    queue: str
    """Name of the queue; above 80 characters it is cut, with a hash of the whole. What is given up goes to the name and -dead-letter."""

    worker_role_name: pulumi.Input[str]
    """Name of the role of those who work: an S3TeamAccess's `role_name`. It gets a policy of its own for this queue."""

    account: str
    """The account of the queue and of the role: 12 digits."""

    region: str
    """The region of the queue, such as us-east-1."""

    grace_seconds: int
    """How long a worker goes on after the warning of an interruption, in seconds; at most 120 on EC2 Spot."""

    tags: dict[str, str]
    """Tags of both queues."""

    partition: NotRequired[str | None]
    """The partition of the account: aws, aws-cn or aws-us-gov. Default: aws."""

    lease_seconds: NotRequired[int | None]
    """How long a received message is the worker's (SQS: visibility timeout), in seconds; to 43,200, over the grace period by 30 at least.

    Default: 300, or the grace period and 30 where that is more.
    """

    retention_days: NotRequired[int | None]
    """For how many days a message waits for a worker, 1 to 13. Default: 7."""

    max_attempts: NotRequired[int | None]
    """After how many receptions a message is given up, 2 to 1,000. Default: 20, as an interruption counts as one."""

    kms_key: NotRequired[pulumi.Input[str] | None]
    """ARN of the key that encrypts the messages; its own policy must leave permissions to IAM. Default: a key of SQS's."""


@dataclass(frozen=True)
class WorkQueueShape:
    """SqsWorkQueueArgs with their defaults, and the names made of them."""

    queue_name: str
    queue_arn: str
    dead_letter_name: str
    dead_letter_arn: str
    lease_seconds: int
    retention_days: int
    max_attempts: int


def work_queue_shape(args: SqsWorkQueueArgs) -> WorkQueueShape:
    """The shape that the arguments ask for, whether it can be had or not."""
    place = (args.get("partition") or "aws", args["region"], args["account"])
    queue_name = fitted(args["queue"], QUEUE_CHARACTERS)
    dead_letter_name = fitted(args["queue"], QUEUE_CHARACTERS - len(_DEAD_LETTER)) + _DEAD_LETTER
    return WorkQueueShape(
        queue_name=queue_name,
        queue_arn=queue_arn(*place, queue_name),
        dead_letter_name=dead_letter_name,
        dead_letter_arn=queue_arn(*place, dead_letter_name),
        lease_seconds=_or(args.get("lease_seconds"), max(_USUAL_LEASE_SECONDS, args["grace_seconds"] + LEASE_MARGIN_SECONDS)),
        retention_days=_or(args.get("retention_days"), _USUAL_RETENTION_DAYS),
        max_attempts=_or(args.get("max_attempts"), _USUAL_ATTEMPTS),
    )


def _or(value: int | None, default: int) -> int:
    return default if value is None else value


def check_work_queue(name: str, args: SqsWorkQueueArgs, shape: WorkQueueShape) -> None:
    """Raises ValueError for what SQS would refuse, and for a lease that would not outlast the grace period."""
    owner = f"SqsWorkQueue {name}"
    check_place(f"{owner}:", args["account"], args.get("partition") or "aws", args["region"])
    if not _QUEUE.fullmatch(args["queue"]):
        raise ValueError(
            f"{owner}: queue is {args['queue']!r}; a name has letters, digits, - and _, and begins with a letter or digit: respell it"
        )
    most_grace = MOST_LEASE_SECONDS - LEASE_MARGIN_SECONDS
    if not 0 <= args["grace_seconds"] <= most_grace:
        raise ValueError(
            f"{owner}: grace_seconds is {args['grace_seconds']}; a lease can outlast 0 to {most_grace}: give the workers' grace period"
        )
    ranges = {
        "lease_seconds": (shape.lease_seconds, 1, MOST_LEASE_SECONDS),
        "retention_days": (shape.retention_days, 1, DEAD_LETTER_DAYS - 1),
        "max_attempts": (shape.max_attempts, 2, 1000),
    }
    for argument, (value, least, most) in ranges.items():
        if not least <= value <= most:
            raise ValueError(f"{owner}: {argument} is {value}; {least} to {most} can be had: choose a value in between")
    least_lease = args["grace_seconds"] + LEASE_MARGIN_SECONDS
    if shape.lease_seconds < least_lease:
        raise ValueError(
            f"{owner}: lease_seconds is {shape.lease_seconds} with grace_seconds {args['grace_seconds']}; a task would be received "
            f"again while the interrupted worker still writes: give at least {least_lease}"
        )
    check_kms_key(owner, args.get("kms_key"))
    check_aws_tags(owner, args["tags"])
