"""An SQS work queue whose messages survive the machines of the workers."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types.
import json

import pulumi
from pulumi_aws import iam, sqs

from components.fitted_name import fitted
from components.iam_document import as_json
from components.storage.sqs_queue_policy import tls_only, worker_policy
from components.storage.sqs_work_queue_args import DEAD_LETTER_DAYS, SqsWorkQueueArgs, check_work_queue, work_queue_shape

LONG_POLL_SECONDS = 20
"""The most that SQS waits for a message: an idle worker asks three times a minute."""

_DAY_SECONDS = 24 * 60 * 60
_POLICY_NAME_CHARACTERS = 128


class SqsWorkQueue(pulumi.ComponentResource):
    """A queue for tasks, a queue for tasks that fail again and again, and what a worker may do with the first.

    A worker deletes a task when its result is stored. One that is interrupted does not, and the task is another's after the lease. So the
    lease must outlast the grace period: were it shorter, the task would be received again while the interrupted worker still writes its
    result. **A task that may take longer must extend its lease** with ChangeMessageVisibility while it runs, to 12 hours from when it was
    received. A worker that is told to stop sets the visibility of what it will not finish to 0, which gives it back at once, and may exit
    with 0: the queue, not the Job, remembers the task.

    SQS delivers at least once: a task may be done twice, so results are written under a name that the task determines. The worker cannot
    send: whoever fills the queue needs sqs:SendMessage on `queue_arn` (and, with a key, kms:GenerateDataKey and kms:Decrypt on it) by a
    policy of its own. The worker's permissions are in its role, not in the queue's policy: that would name the role by an id, which
    another role of the same name does not have.

    A message is deleted 14 days after it was sent, in the dead-letter queue as well: SQS counts from the first sending, so what waited in
    the queue for its 7 days leaves 7 to look at it.
    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/setting-up-dead-letter-queue-retention.html

    Raises ValueError for a name, account, region, lease, retention or number of attempts that SQS refuses, a lease that does not outlast
    the grace period, a key without its ARN, and tags that AWS refuses. The queues are tested against moto, not against a live account.
    """

    queue_url: pulumi.Output[str]
    """Where tasks are sent and received, known once plain HTTP is refused and tasks that fail have a place to go."""

    queue_name: pulumi.Output[str]
    """The queue's name, known likewise."""

    queue_arn: pulumi.Output[str]
    """The queue's ARN, for the policy of whoever sends tasks; known likewise."""

    dead_letter_url: pulumi.Output[str]
    """What people look at."""

    def __init__(self, name: str, args: SqsWorkQueueArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        shape = work_queue_shape(args)
        check_work_queue(name, args, shape)
        super().__init__("flexspot:index:SqsWorkQueue", name, {**args}, opts)
        child = pulumi.ResourceOptions(parent=self)
        region, kms_key = args["region"], args.get("kms_key")
        given_up = sqs.Queue(
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
            # Its redrive policy names the other, which SQS asks for at once.
            opts=pulumi.ResourceOptions(parent=self, depends_on=[given_up]),
        )
        policies = [
            sqs.QueuePolicy(f"{name}-{part}-policy", queue_url=each.id, region=region, policy=as_json(tls_only(arn)), opts=child)
            for part, each, arn in (
                ("dead-letters", given_up, shape.dead_letter_arn),
                ("queue", queue, shape.queue_arn),
            )
        ]
        sqs.RedriveAllowPolicy(
            f"{name}-redrive-allow-policy",
            queue_url=given_up.id,
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
        self.dead_letter_url = given_up.id.apply(str)
        self.register_outputs(
            {
                "queue_url": self.queue_url,
                "queue_name": self.queue_name,
                "queue_arn": self.queue_arn,
                "dead_letter_url": self.dead_letter_url,
            }
        )


def _compact(policy: dict[str, object]) -> str:
    return json.dumps(policy, separators=(",", ":"))


def _worker_policy_text(arn: str, kms_key: pulumi.Input[str] | None) -> pulumi.Input[str]:
    if kms_key is None or isinstance(kms_key, str):
        return as_json(worker_policy(arn, kms_key))
    return pulumi.Output.from_input(kms_key).apply(lambda key: as_json(worker_policy(arn, key)))
