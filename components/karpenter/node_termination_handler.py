"""AWS's Node Termination Handler, for clusters without Karpenter."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types.
from typing import NotRequired, TypedDict

import pulumi
from pulumi_kubernetes.helm.v3 import Release, ReleaseArgs

from components.aws_names import NAMESPACE

CHART = "oci://public.ecr.aws/aws-ec2/helm/aws-node-termination-handler"
VERSION = "0.27.1"
"""With the handler's version 1.25.1. Source: config/helm/aws-node-termination-handler/Chart.yaml of aws/aws-node-termination-handler."""

RULE = "termination-handler-beside-karpenter"

SPOT_NODES = {"eks.amazonaws.com/capacityType": "SPOT"}
"""The label that EKS puts on Spot nodes of managed node groups."""


class NodeTerminationHandlerArgs(TypedDict):
    """Arguments of NodeTerminationHandler."""

    karpenter_queue: str | None
    """The name of Karpenter's interruption queue, None where the cluster has no Karpenter: beside one the handler is refused."""

    node_selector: NotRequired[dict[str, str]]
    """Labels of the nodes that it watches; at least one. Default: Spot nodes of EKS managed node groups."""

    drain_on_rebalance: NotRequired[bool]
    """Whether a node is drained when AWS only recommends to move away from it. Default: False, the node is left alone."""


class NodeTerminationHandler(pulumi.ComponentResource):
    """A DaemonSet that asks a node's own metadata service for its interruption and drains the node, for node groups without Karpenter.

    Managed node groups drain Spot nodes by themselves; it is for self-managed groups, and for those who want to drain on a rebalance
    recommendation or before scheduled maintenance. Beside Karpenter it drains what Karpenter drains as well, one without knowing of the
    other, and Karpenter's documentation says to remove it.

    It reads the metadata service, not a queue: that needs no rules, no queue and no permissions in AWS. It runs on the host's network, so
    a hop limit of 1 does not stop it.

    Raises ValueError beside Karpenter's queue, under the name of the policy's rule, and for a selector without labels. The values are
    those of the chart's templates; no release was made in a live cluster.
    """

    version: pulumi.Output[str]
    """The chart's version that is installed."""

    def __init__(self, name: str, args: NodeTerminationHandlerArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        node_selector = args.get("node_selector", SPOT_NODES)
        if args["karpenter_queue"] is not None:
            raise ValueError(
                f"{RULE}: NodeTerminationHandler {name} has karpenter_queue {args['karpenter_queue']!r}; allowed is None: Karpenter drains "
                "its nodes itself, and both would drain the same ones; leave the handler out"
            )
        if not node_selector:
            raise ValueError(
                f"NodeTerminationHandler {name}: node_selector is {node_selector}; allowed is at least one label, or it would run on all "
                "nodes; name a label of the nodes that AWS may take back, or leave it out"
            )
        super().__init__("flexspot:index:NodeTerminationHandler", name, {**args, "node_selector": node_selector}, opts)
        drain_on_rebalance = args.get("drain_on_rebalance", False)
        release = Release(
            f"{name}-release",
            ReleaseArgs(
                chart=CHART,
                version=VERSION,
                name="aws-node-termination-handler",
                namespace=NAMESPACE,
                atomic=True,
                timeout=600,
                values={
                    "targetNodeOs": "linux",
                    "enableSqsTerminationDraining": False,
                    "enableSpotInterruptionDraining": True,
                    "enableScheduledEventDraining": True,
                    "enableRebalanceMonitoring": False,
                    "enableRebalanceDraining": drain_on_rebalance,
                    "useHostNetwork": True,
                    # PodSecurityPolicy is gone from Kubernetes.
                    "rbac": {"pspEnabled": False},
                    "nodeSelector": node_selector,
                    # GPU nodes and nodes of one class are tainted, and are those that matter.
                    "tolerations": [{"operator": "Exists"}],
                },
            ),
            pulumi.ResourceOptions(parent=self),
        )
        self.version = release.version.apply(lambda version: version or VERSION)
        self.register_outputs({"version": self.version})
