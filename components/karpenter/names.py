"""Names of what Karpenter has in AWS, each within AWS's limit for it."""

from __future__ import annotations

from components.eks.names import ROLE_NAME_LENGTH
from components.fitted_name import fitted

POLICY_NAME_CHARACTERS = 128
RULE_NAME_CHARACTERS = 64
QUEUE_NAME_CHARACTERS = 80
"""Limits of managed policies, EventBridge rules and SQS queues, as their API references state them."""

NAMESPACE = "kube-system"
SERVICE_ACCOUNT = "karpenter"
"""Where the controller runs and as whom: the release puts it there, and its pod identity is bound to it."""


def node_role_name(cluster: str) -> str:
    """The name of the role of Karpenter's nodes, which their EC2NodeClass and the controller's permission to pass it name."""
    return fitted(f"KarpenterNodeRole-{cluster}", ROLE_NAME_LENGTH)


def controller_role_name(cluster: str) -> str:
    """The name of the controller's role."""
    return fitted(f"KarpenterControllerRole-{cluster}", ROLE_NAME_LENGTH)


def controller_policy_name(policy: str, cluster: str) -> str:
    """The name of one of the controller's managed policies, such as that of NodeLifecycle; as Karpenter's own template names them."""
    return fitted(f"KarpenterController{policy}Policy-{cluster}", POLICY_NAME_CHARACTERS)


def queue_name(cluster: str) -> str:
    """The name of the interruption queue: the cluster's."""
    return fitted(cluster, QUEUE_NAME_CHARACTERS)


def rule_name(cluster: str, event: str) -> str:
    """The name of the rule that sends one kind of event, such as rebalance, to the queue."""
    return fitted(f"{cluster}-{event}", RULE_NAME_CHARACTERS)
