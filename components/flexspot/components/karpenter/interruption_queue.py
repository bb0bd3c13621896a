"""Interruption notices of AWS: Karpenter's queue, and the Node Termination Handler for node groups without Karpenter."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
import json
from typing import NotRequired, TypedDict

import pulumi
from pulumi_aws import cloudwatch, sqs

from flexspot.capacity.values.errors import SettingsProblem
from flexspot.components.cloud_names import check_cluster_name, check_place, queue_name, rule_name
from flexspot.components.iam import VERSION, PolicyDocument, as_json
from flexspot.components.in_cluster import chart_release
from flexspot.components.shared_args import publish, refuse

RETENTION_SECONDS = 300
"""Retention in Karpenter's template. A warning comes at most two minutes ahead, so an older message is about a machine that is gone."""

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
    """Arguments of InterruptionQueue. All are plain, so that a preview shows the policy in full."""

    cluster: str
    """The cluster's name, 1 to 100 characters. The queue has the same name. Above 80 characters it is cut, with a hash of the whole."""

    account: str
    """Id of the cluster's account: 12 digits, in quotes."""

    region: str
    """The cluster's region, such as us-east-1. Everything is created there, regardless of the provider's region."""

    tags: dict[str, str]
    """Tags of the queue and the rules."""

    partition: NotRequired[str]
    """Partition of `region`: aws, aws-cn or aws-us-gov. Default: aws."""


class InterruptionQueue(pulumi.ComponentResource):
    """An SQS queue, and five EventBridge rules that send it the events that Karpenter needs about its machines.

    Without it Karpenter notices a Spot interruption only when the machine is gone, and the two minutes in which jobs could save their work
    are lost. The rules match the events of all machines in the account and region, because EventBridge does not know clusters. Karpenter
    drops events of other machines. Rebalance recommendations only become events of the node; Karpenter does not drain for them.

    Messages are encrypted with SQS's own key (with a KMS key EventBridge would need a grant on it), and plain HTTP is denied.

    Raises ValueError for a name, account, partition or region that AWS would reject, and a region of another partition. The path from rule
    to queue is tested against moto, not against a live account.
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
                    # Messages sent before AWS may write to the queue would be lost.
                    opts=pulumi.ResourceOptions(parent=self, depends_on=[policy]),
                )
            )
        self.queue_name = pulumi.Output.all(queue.name, policy.id, *(target.id for target in targets)).apply(lambda known: known[0])
        self.queue_arn = queue.arn
        self.queue_url = queue.url
        publish(self)


def queue_policy(queue_arn: str) -> PolicyDocument:
    """Return the queue's resource policy, as in Karpenter v1.14's template, which has no condition on the source of messages."""
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
    """Return the event pattern of each rule, by the part of its name that says what it is for."""
    return {event: {"source": [source], "detail-type": [detail_type]} for event, (source, detail_type) in EVENTS.items()}


CHART = "oci://public.ecr.aws/aws-ec2/helm/aws-node-termination-handler"
HANDLER_VERSION = "0.27.1"
"""Chart version with the handler's version 1.25.1.

Source: config/helm/aws-node-termination-handler/Chart.yaml of aws/aws-node-termination-handler.
"""

RULE = "termination-handler-beside-karpenter"

SPOT_NODES = {"eks.amazonaws.com/capacityType": "SPOT"}
"""The label that EKS puts on Spot nodes of managed node groups."""


class NodeTerminationHandlerArgs(TypedDict):
    """Arguments of NodeTerminationHandler."""

    karpenter_queue: NotRequired[str | None]
    """Name of Karpenter's interruption queue. The handler is rejected if there is one. Default: the cluster has no Karpenter."""

    node_selector: NotRequired[dict[str, str]]
    """Labels of the nodes to watch, at least one. Default: Spot nodes of EKS managed node groups."""

    drain_on_rebalance: NotRequired[bool]
    """If true, a node is also drained when AWS only recommends moving away from it. Default: False."""


class NodeTerminationHandler(pulumi.ComponentResource):
    """A DaemonSet that watches each node's metadata service for interruptions and drains the node, for node groups without Karpenter.

    Managed node groups drain Spot nodes by themselves. This is for self-managed groups, and for draining on a rebalance recommendation or
    before scheduled maintenance. Together with Karpenter both would drain the same nodes without coordination, and Karpenter's
    documentation says to remove it.

    It reads the metadata service, not a queue, so it needs no rules, no queue and no AWS permissions. It runs on the host's network, so a
    hop limit of 1 does not stop it.

    Raises ValueError if there is a queue of Karpenter, under the name of the policy's rule, and for an empty selector. The values are those
    of the chart's templates. The release has not been installed in a live cluster.
    """

    version: pulumi.Output[str]
    """The installed version of the chart."""

    def __init__(self, name: str, args: NodeTerminationHandlerArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        where, node_selector = f"NodeTerminationHandler {name}", args.get("node_selector", SPOT_NODES)
        if (queue := args.get("karpenter_queue")) is not None:
            conflict = "must be None, because Karpenter drains its nodes itself and both would drain the same ones"
            refuse(f"{RULE}: {where}", SettingsProblem("karpenter_queue", repr(queue), conflict, "leave the handler out"))
        if not node_selector:
            problem = "is empty, so the handler would run on all nodes"
            remedy = "name a label of the interruptible nodes, or leave node_selector out for Spot nodes"
            refuse(where, SettingsProblem("node_selector", str(node_selector), problem, remedy))
        super().__init__("flexspot:index:NodeTerminationHandler", name, {**args, "node_selector": node_selector}, opts)
        drain_on_rebalance = args.get("drain_on_rebalance", False)
        release = chart_release(
            f"{name}-release",
            CHART,
            HANDLER_VERSION,
            {
                "targetNodeOs": "linux",
                "enableSqsTerminationDraining": False,
                "enableSpotInterruptionDraining": True,
                "enableScheduledEventDraining": True,
                "enableRebalanceMonitoring": False,
                "enableRebalanceDraining": drain_on_rebalance,
                "useHostNetwork": True,
                # Kubernetes no longer has PodSecurityPolicy.
                "rbac": {"pspEnabled": False},
                "nodeSelector": node_selector,
                # GPU nodes and nodes of one class have taints, and are the ones that matter.
                "tolerations": [{"operator": "Exists"}],
            },
            pulumi.ResourceOptions(parent=self),
        )
        self.version = release.version.apply(lambda version: version or HANDLER_VERSION)
        publish(self)
