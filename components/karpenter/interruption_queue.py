"""The queue through which AWS tells Karpenter that it takes machines back."""

import json
from typing import NotRequired, TypedDict

import pulumi
from pulumi_aws import cloudwatch, sqs

from components.aws_names import check_cluster_name, check_place, queue_name, rule_name
from components.iam import VERSION, Document, as_json

RETENTION_SECONDS = 300
"""Of Karpenter's template: a warning is two minutes ahead at most, so an older message is of a machine that is gone."""

TARGET_ID = "KarpenterInterruptionQueueTarget"

EVENTS: dict[str, tuple[str, str]] = {
    "scheduled-change": ("aws.health", "AWS Health Event"),
    "spot-interruption": ("aws.ec2", "EC2 Spot Instance Interruption Warning"),
    "rebalance": ("aws.ec2", "EC2 Instance Rebalance Recommendation"),
    "instance-state-change": ("aws.ec2", "EC2 Instance State-change Notification"),
    "capacity-reservation-interruption": ("aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning"),
}
"""Source and detail-type of the five kinds of event that Karpenter v1.14 reads (pkg/controllers/interruption/messages)."""


class InterruptionQueueArgs(TypedDict):
    """Arguments of InterruptionQueue; all are plain, so that a preview shows the policy whole."""

    cluster: str
    """The cluster's name, 1 to 100 characters; the queue's is the same, above 80 cut with a hash of the whole."""

    account: str
    """The id of the cluster's account: 12 digits, in quotes."""

    region: str
    """The cluster's region, such as us-east-1; all is made there whatever the provider's own region is."""

    tags: dict[str, str]
    """Tags of the queue and the rules."""

    partition: NotRequired[str]
    """aws, aws-cn or aws-us-gov; the one that `region` is in. Default: aws."""


class InterruptionQueue(pulumi.ComponentResource):
    """An SQS queue, and five EventBridge rules that put into it what Karpenter must know of its machines.

    Without it Karpenter learns of a Spot interruption when the machine is gone, and two minutes in which jobs could save their work are
    lost. The rules match the events of all machines of the account and region, as EventBridge knows no cluster: Karpenter drops those of
    machines that are not its own. Rebalance recommendations only become events of the node; Karpenter drains on none of them.

    Messages are encrypted by SQS's own key (with a KMS key EventBridge would need a grant on it), and plain HTTP is denied.

    Raises ValueError for a name, account, partition or region that AWS would refuse, and a region of another partition. The path from
    rule to queue is tested against moto, not against a live account.
    """

    queue_name: pulumi.Output[str]
    """The queue's name for Karpenter's setting, known once AWS may write to it and the rules send to it."""

    queue_arn: pulumi.Output[str]
    """The queue's ARN."""

    queue_url: pulumi.Output[str]
    """The queue's URL."""

    def __init__(self, name: str, args: InterruptionQueueArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        where = f"InterruptionQueue {name}:"
        partition = args.get("partition", "aws")
        check_cluster_name(where, args["cluster"])
        check_place(where, args["account"], partition, args["region"])
        super().__init__("flexspot:index:InterruptionQueue", name, {**args, "partition": partition}, opts)
        child = pulumi.ResourceOptions(parent=self)
        plain_name = queue_name(args["cluster"])
        queue = sqs.Queue(
            f"{name}-queue",
            name=plain_name,
            region=args["region"],
            message_retention_seconds=RETENTION_SECONDS,
            sqs_managed_sse_enabled=True,
            tags=args["tags"],
            opts=child,
        )
        arn = f"arn:{partition}:sqs:{args['region']}:{args['account']}:{plain_name}"
        policy = sqs.QueuePolicy(f"{name}-policy", queue_url=queue.id, region=args["region"], policy=as_json(queue_policy(arn)), opts=child)
        targets: list[cloudwatch.EventTarget] = []
        for event, pattern in event_patterns().items():
            rule = cloudwatch.EventRule(
                f"{name}-{event}-rule",
                name=rule_name(args["cluster"], event),
                region=args["region"],
                description=f"{' and '.join(pattern['detail-type'])} for Karpenter in {args['cluster']}",
                event_pattern=json.dumps(pattern, separators=(",", ":")),
                tags=args["tags"],
                opts=child,
            )
            targets.append(
                cloudwatch.EventTarget(
                    f"{name}-{event}-target",
                    rule=rule.name,
                    region=args["region"],
                    arn=queue.arn,
                    target_id=TARGET_ID,
                    # What is sent before AWS may write to the queue would be lost.
                    opts=pulumi.ResourceOptions(parent=self, depends_on=[policy]),
                )
            )
        self.queue_name = pulumi.Output.all(queue.name, policy.id, *(target.id for target in targets)).apply(lambda known: known[0])
        self.queue_arn = queue.arn
        self.queue_url = queue.url
        self.register_outputs({"queue_name": self.queue_name, "queue_arn": self.queue_arn, "queue_url": self.queue_url})


def queue_policy(queue_arn: str) -> Document:
    """Who may write to the queue, as in Karpenter v1.14's template, which has no condition on the source of what is sent."""
    return {
        "Version": VERSION,
        "Id": "EC2InterruptionPolicy",
        "Statement": [
            {
                "Effect": "Allow",
                "Principal": {"Service": ["events.amazonaws.com", "sqs.amazonaws.com"]},
                "Action": "sqs:SendMessage",
                "Resource": queue_arn,
            },
            {
                "Sid": "DenyHTTP",
                "Effect": "Deny",
                "Principal": "*",
                "Action": "sqs:*",
                "Resource": queue_arn,
                "Condition": {"Bool": {"aws:SecureTransport": "false"}},
            },
        ],
    }


def event_patterns() -> dict[str, dict[str, list[str]]]:
    """What each rule matches, by the part of its name that says what it is for."""
    return {event: {"source": [source], "detail-type": [detail_type]} for event, (source, detail_type) in EVENTS.items()}
