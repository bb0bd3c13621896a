"""An SQS work queue whose messages survive the machines of the workers."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
import json
import re
from dataclasses import dataclass
from typing import NotRequired, TypedDict

import pulumi
from pulumi_aws import iam, sqs

from flexspot.capacity.settings.storage import LEASE_MARGIN_SECONDS
from flexspot.capacity.values.errors import SettingsProblem
from flexspot.components.cloud_names import check_aws_tags, check_kms_key, check_place, fitted
from flexspot.components.iam import VERSION, PolicyDocument, Statement, as_json
from flexspot.components.shared_args import publish, refuse


def queue_arn(partition: str, region: str, account: str, queue: str) -> str:
    """Return a queue's ARN, which is known before the queue exists."""
    return f"arn:{partition}:sqs:{region}:{account}:{queue}"


def tls_only(arn: str) -> PolicyDocument:
    """Return the policy of a queue that only answers over TLS.

    It allows nothing: permissions come from the roles. SQS has no condition key for the version of TLS, and only accepts 1.2 or later.
    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-security-best-practices.html
    """
    return {
        "Version": VERSION,
        "Statement": [
            {
                "Sid": "DenyHTTP",
                "Effect": "Deny",
                "Principal": "*",
                "Action": "sqs:*",
                "Resource": arn,
                "Condition": {"Bool": {"aws:SecureTransport": "false"}},
            }
        ],
    }


def worker_policy(arn: str, kms_key: str | None) -> PolicyDocument:
    """Return a worker's permissions: to receive, extend, return and delete tasks, but not to send them or to empty or change the queue.

    https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonsqs.html. With a customer managed key, a consumer needs
    kms:Decrypt, here only through SQS: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-key-management.html
    """
    statements = [
        Statement(
            Sid="Work",
            Effect="Allow",
            Action=[
                "sqs:ReceiveMessage",
                "sqs:ChangeMessageVisibility",
                "sqs:DeleteMessage",
                "sqs:GetQueueAttributes",
                "sqs:GetQueueUrl",
            ],
            Resource=arn,
        )
    ]
    if kms_key is not None:
        through_sqs = f"sqs.{arn.split(':')[3]}.amazonaws.com"
        statements.append(
            Statement(
                Sid="ReadMessages",
                Effect="Allow",
                Action="kms:Decrypt",
                Resource=kms_key,
                # The buckets may have the same key. In China the services' names end with .cn.
                Condition={"StringEquals": {"kms:ViaService": [through_sqs, f"{through_sqs}.cn"]}},
            )
        )
    return {"Version": VERSION, "Statement": statements}


QUEUE_CHARACTERS = 80
MOST_LEASE_SECONDS = 12 * 60 * 60

DEAD_LETTER_DAYS = 14
"""Longest time that SQS keeps a message, from when it was sent."""

_USUAL_LEASE_SECONDS = 300
_USUAL_RETENTION_DAYS = 7
_USUAL_ATTEMPTS = 20

_DEAD_LETTER = "-dead-letter"
_QUEUE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


class SqsWorkQueueArgs(TypedDict):
    """Arguments of SqsWorkQueue."""

    queue: str
    """Name of the queue. Above 80 characters it is cut, with a hash of the whole. Dead letters go to the same name with -dead-letter."""

    worker_role_name: pulumi.Input[str]
    """Name of the workers' role: an S3TeamAccess's `role_name`. It gets a policy for this queue."""

    account: str
    """The account of the queue and of the role: 12 digits."""

    region: str
    """The region of the queue, such as us-east-1."""

    grace_seconds: int
    """Seconds that a worker continues after an interruption warning, at most 120 on EC2 Spot."""

    tags: dict[str, str]
    """Tags of both queues."""

    partition: NotRequired[str | None]
    """The partition of the account: aws, aws-cn or aws-us-gov. Default: aws."""

    lease_seconds: NotRequired[int | None]
    """Seconds that a worker leases a received message (SQS: visibility timeout), up to 43,200, and at least 30 more than the grace period.

    Default: 300, or the grace period and 30 if that is more."""

    retention_days: NotRequired[int | None]
    """Days that a message waits for a worker, 1 to 13. Default: 7."""

    max_attempts: NotRequired[int | None]
    """Receives after which a message goes to the dead-letter queue, 2 to 1,000. Default: 20, because an interruption counts as one."""

    kms_key: NotRequired[pulumi.Input[str] | None]
    """ARN of the key that encrypts the messages. Its key policy must leave permissions to IAM. Default: SQS's own key."""


@dataclass(frozen=True)
class WorkQueueShape:
    """SqsWorkQueueArgs with their defaults, and the names built from them."""

    queue_name: str
    queue_arn: str
    dead_letter_name: str
    dead_letter_arn: str
    lease_seconds: int
    retention_days: int
    max_attempts: int


def work_queue_shape(args: SqsWorkQueueArgs) -> WorkQueueShape:
    """Return the shape that the arguments describe, without checking it."""
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
    """Raise ValueError for values that SQS would reject, and for a lease that would not outlast the grace period."""
    owner = f"SqsWorkQueue {name}"
    check_place(f"{owner}:", args["account"], args.get("partition") or "aws", args["region"])
    if not _QUEUE.fullmatch(args["queue"]):
        form = "must be letters, digits, - and _, beginning with a letter or digit"
        refuse(owner, SettingsProblem("queue", repr(args["queue"]), form, "respell it"))
    most_grace = MOST_LEASE_SECONDS - LEASE_MARGIN_SECONDS
    if not 0 <= (grace := args["grace_seconds"]) <= most_grace:
        bounds = f"must be 0 to {most_grace}, because the lease must be longer"
        refuse(owner, SettingsProblem("grace_seconds", str(grace), bounds, "give the workers' grace period"))
    ranges = {
        "lease_seconds": (shape.lease_seconds, 1, MOST_LEASE_SECONDS),
        "retention_days": (shape.retention_days, 1, DEAD_LETTER_DAYS - 1),
        "max_attempts": (shape.max_attempts, 2, 1000),
    }
    for argument, (value, least, most) in ranges.items():
        if not least <= value <= most:
            refuse(owner, SettingsProblem(argument, str(value), f"must be {least} to {most}", "choose a value in that range"))
    if (lease := shape.lease_seconds) < (least := grace + LEASE_MARGIN_SECONDS):
        problem = f"is too short for grace_seconds {grace}: a task would be received again while the interrupted worker still writes"
        refuse(owner, SettingsProblem("lease_seconds", str(lease), problem, f"give at least {least}"))
    check_kms_key(owner, args.get("kms_key"))
    check_aws_tags(owner, args["tags"])


LONG_POLL_SECONDS = 20
"""Longest time that SQS waits for a message. An idle worker then polls three times a minute."""

_DAY_SECONDS = 24 * 60 * 60
_POLICY_NAME_CHARACTERS = 128


class SqsWorkQueue(pulumi.ComponentResource):
    """A queue for tasks, a dead-letter queue for tasks that fail repeatedly, and a worker's permissions on the first.

    A worker deletes a task when its result is stored. An interrupted worker does not, and another gets the task after the lease. The lease
    must therefore outlast the grace period: otherwise the task would be received again while the interrupted worker still writes its
    result. **A task that may take longer must extend its lease** with ChangeMessageVisibility while it runs, up to 12 hours after it was
    received. A worker that gets SIGTERM sets the visibility of tasks that it will not finish to 0, which returns them at once, and may exit
    with 0: the queue, not the Job, remembers the task.

    SQS delivers at least once: a task may be done twice, so write results under a name that the task determines. The worker cannot send
    tasks. Their sender needs sqs:SendMessage on `queue_arn` (and, with a key, kms:GenerateDataKey and kms:Decrypt on it) by a separate
    policy. The worker's permissions are in its role, not in the queue's policy: that would refer to the role by an id, which a recreated
    role of the same name does not have.

    A message is deleted 14 days after it was sent, in the dead-letter queue as well: SQS counts from the first sending, so a message that
    waited in the queue for its 7 days leaves 7 days to inspect it.
    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/setting-up-dead-letter-queue-retention.html

    Raises ValueError for a name, account, region, lease, retention or number of attempts that SQS rejects, a lease that does not outlast
    the grace period, a key without its ARN, and tags that AWS rejects. The queues are tested against moto, not against a live account.
    """

    queue_url: pulumi.Output[str]
    """The queue's URL, known once plain HTTP is rejected and failed tasks have a dead-letter queue."""

    queue_name: pulumi.Output[str]
    """The queue's name, known at the same time."""

    queue_arn: pulumi.Output[str]
    """The queue's ARN, for the policy of the sender of tasks, known at the same time."""

    dead_letter_url: pulumi.Output[str]
    """URL of the dead-letter queue, for people to inspect."""

    def __init__(self, name: str, args: SqsWorkQueueArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        shape = work_queue_shape(args)
        check_work_queue(name, args, shape)
        super().__init__("flexspot:index:SqsWorkQueue", name, {**args}, opts)
        child = pulumi.ResourceOptions(parent=self)
        region, kms_key = args["region"], args.get("kms_key")
        dead_letters = sqs.Queue(
            f"{name}-dead-letters",
            name=shape.dead_letter_name,
            region=region,
            message_retention_seconds=DEAD_LETTER_DAYS * _DAY_SECONDS,
            receive_wait_time_seconds=LONG_POLL_SECONDS,
            sqs_managed_sse_enabled=True if kms_key is None else None,
            kms_master_key_id=kms_key,
            tags=args["tags"],
            opts=child,
        )
        queue = sqs.Queue(
            f"{name}-queue",
            name=shape.queue_name,
            region=region,
            visibility_timeout_seconds=shape.lease_seconds,
            message_retention_seconds=shape.retention_days * _DAY_SECONDS,
            receive_wait_time_seconds=LONG_POLL_SECONDS,
            redrive_policy=_compact({"deadLetterTargetArn": shape.dead_letter_arn, "maxReceiveCount": shape.max_attempts}),
            sqs_managed_sse_enabled=True if kms_key is None else None,
            kms_master_key_id=kms_key,
            tags=args["tags"],
            # The redrive policy names the dead-letter queue, which SQS checks at once.
            opts=pulumi.ResourceOptions(parent=self, depends_on=[dead_letters]),
        )
        policies = [
            sqs.QueuePolicy(f"{name}-{part}-policy", queue_url=each.id, region=region, policy=as_json(tls_only(arn)), opts=child)
            for part, each, arn in (
                ("dead-letters", dead_letters, shape.dead_letter_arn),
                ("queue", queue, shape.queue_arn),
            )
        ]
        sqs.RedriveAllowPolicy(
            f"{name}-redrive-allow-policy",
            queue_url=dead_letters.id,
            region=region,
            redrive_allow_policy=_compact({"redrivePermission": "byQueue", "sourceQueueArns": [shape.queue_arn]}),
            opts=pulumi.ResourceOptions(parent=self, depends_on=[queue]),
        )
        iam.RolePolicy(
            f"{name}-worker",
            name=fitted(f"queue-{shape.queue_name}", _POLICY_NAME_CHARACTERS),
            role=args["worker_role_name"],
            policy=_worker_policy_text(shape.queue_arn, kms_key),
            opts=child,
        )
        known = pulumi.Output.all(queue.id, queue.name, *(policy.id for policy in policies))
        self.queue_url = known.apply(lambda values: str(values[0]))
        self.queue_name = known.apply(lambda values: str(values[1]))
        self.queue_arn = known.apply(lambda _: shape.queue_arn)
        self.dead_letter_url = dead_letters.id.apply(str)
        publish(self)


def _compact(policy: dict[str, object]) -> str:
    return json.dumps(policy, separators=(",", ":"))


def _worker_policy_text(arn: str, kms_key: pulumi.Input[str] | None) -> pulumi.Input[str]:
    if kms_key is None or isinstance(kms_key, str):
        return as_json(worker_policy(arn, kms_key))
    return pulumi.Output.from_input(kms_key).apply(lambda key: as_json(worker_policy(arn, key)))
