"""Karpenter itself, by its charts."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types.
from typing import Any, NotRequired, TypedDict

import pulumi
from pulumi_kubernetes.helm.v3 import Release, ReleaseArgs

from capacity.catalog.node_labels import KARPENTER_POOL_LABEL
from components.aws_names import NAMESPACE, SERVICE_ACCOUNT
from components.eks.system_nodes import CRITICAL_ADDONS, SYSTEM_LABEL

CHART = "oci://public.ecr.aws/karpenter/karpenter"
CRD_CHART = "oci://public.ecr.aws/karpenter/karpenter-crd"
VERSION = "1.14.1"

TIMEOUT_SECONDS = 600


class KarpenterControllerArgs(TypedDict):
    """Arguments of KarpenterController."""

    cluster_name: pulumi.Input[str]
    """The cluster's name, known when it exists."""

    cluster_endpoint: pulumi.Input[str]
    """The URL of the cluster's API server, which new nodes connect to."""

    queue_name: pulumi.Input[str]
    """The name of the interruption queue: an output of InterruptionQueue, for which the release waits."""

    replicas: NotRequired[int]
    """Copies, of which one decides; at least 1, and at most as many as there are system nodes, as no two share one. Default: 2."""

    cpu: NotRequired[str]
    """CPU of each copy, requested and the most, as Kubernetes writes it. Default: 1."""

    memory: NotRequired[str]
    """Memory of each copy, requested and the most, as Kubernetes writes it; some GiB for hundreds of nodes. Default: 1Gi."""

    zonal_shift: NotRequired[bool]
    """Whether no node is launched in a zone that AWS or somebody shifts traffic away from. Default: False.

    The controller ends at once if the cluster is not enabled for zonal shift or its service is out of reach: it is for clusters that have
    both.
    """

    spot_to_spot_consolidation: NotRequired[bool]
    """Whether Spot nodes are replaced by cheaper Spot nodes, an alpha feature. Default: False.

    Each move interrupts what runs there, and the price that is saved is often the one of machines that are taken back sooner.
    """


class KarpenterController(pulumi.ComponentResource):
    """Karpenter 1.14.1 from its released charts: first the one of its CRDs, because Helm never upgrades those inside another chart.

    The charts come from the registry, not from the Go module of the same version, whose copies are stamped 1.13.0 and name that image.

    It runs on the system nodes alone, as the service account that KarpenterControllerIdentity binds (make this depend on it, and on the
    system nodes): on nodes of its own it could remove the node that it runs on. Feature gates are written out, so that an upgrade of the
    chart changes none: only reserved capacity is on, as upstream has it.

    Raises ValueError for less than one copy. The values are checked against the chart's own; no release was made in a live cluster.
    """

    version: pulumi.Output[str]
    """The version that is installed, known when its CRDs and its controller are there: what makes NodePools waits for it."""

    def __init__(self, name: str, args: KarpenterControllerArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        replicas = args.get("replicas", 2)
        if replicas < 1:
            raise ValueError(f"KarpenterController {name}: replicas is {replicas}; allowed is at least 1; leave it out for 2")
        super().__init__("flexspot:index:KarpenterController", name, {**args}, opts)
        crds = _release(f"{name}-crds", "karpenter-crd", CRD_CHART, {}, pulumi.ResourceOptions(parent=self))
        controller = _release(
            f"{name}-release", "karpenter", CHART, chart_values(args), pulumi.ResourceOptions(parent=self, depends_on=[crds])
        )
        self.version = pulumi.Output.all(controller.version, crds.id, controller.id).apply(lambda known: known[0] or VERSION)
        self.register_outputs({"version": self.version})


def chart_values(args: KarpenterControllerArgs) -> dict[str, Any]:
    """What is said to the chart; all else is its own: images, ports, priority, the budget of disruptions, the spread over zones."""
    resources = {"cpu": args.get("cpu", "1"), "memory": args.get("memory", "1Gi")}
    return {
        "replicas": args.get("replicas", 2),
        "serviceAccount": {"create": True, "name": SERVICE_ACCOUNT},
        "nodeSelector": {"kubernetes.io/os": "linux", SYSTEM_LABEL: "true"},
        "tolerations": [{"key": CRITICAL_ADDONS, "operator": "Exists"}],
        # The chart's own, restated because all depends on it. The rule that no two copies share a node is left to the chart.
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": KARPENTER_POOL_LABEL, "operator": "DoesNotExist"}]}]
                }
            }
        },
        "controller": {"resources": {"requests": resources, "limits": resources}},
        "settings": {
            "clusterName": args["cluster_name"],
            "clusterEndpoint": args["cluster_endpoint"],
            "interruptionQueue": args["queue_name"],
            "enableZonalShift": args.get("zonal_shift", False),
            "featureGates": {
                "nodeRepair": False,
                "nodeOverlay": False,
                "reservedCapacity": True,
                "spotToSpotConsolidation": args.get("spot_to_spot_consolidation", False),
                "staticCapacity": False,
                "capacityBuffer": False,
            },
        },
    }


def _release(name: str, release: str, chart: str, values: dict[str, Any], opts: pulumi.ResourceOptions) -> Release:
    return Release(
        name,
        ReleaseArgs(
            chart=chart,
            version=VERSION,
            name=release,
            namespace=NAMESPACE,
            # A release that fails half-way is taken back, so that the next try begins clean.
            atomic=True,
            timeout=TIMEOUT_SECONDS,
            # Those of the first release, which the second one's chart may hold as well.
            skip_crds=release == "karpenter",
            values=values,
        ),
        opts,
    )
