"""Kueue itself, by its chart."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
from typing import Any, NotRequired, TypedDict

import pulumi
import yaml
from pulumi_kubernetes.helm.v3 import Release, ReleaseArgs

from capacity.plan.kueue_configuration import FRAMEWORKS, NAMESPACE, ONE_BOOT, PodsReady, kueue_configuration


class PodsReadyArgs(TypedDict):
    """How long an admitted job may be without all its pods, and how often it is tried again. See capacity/plan/kueue_configuration.py."""

    timeout_seconds: int
    """From the admission on; 60 or more. It must fit the slowest capacity of all queues: Kueue has one for the cluster."""

    recovery_seconds: int
    """From the loss of a pod on; 60 or more."""

    requeues: int
    """How often; 0 or more. Then the Workload is deactivated and its Job stays suspended."""


class KueueControllerArgs(TypedDict):
    """Arguments of KueueController."""

    existing: NotRequired[bool]
    """Whether the cluster has its Kueue already, of v1beta2 and with fair sharing on; then nothing is installed. Default: false."""

    frameworks: NotRequired[list[str]]
    """Kinds of work that Kueue admits, in its own names. Default: batch/job and the kinds of JobSet."""

    pods_ready: NotRequired[PodsReadyArgs]
    """How long jobs wait for their nodes. Default: 45 minutes, 30 minutes once they have run, 10 requeues."""

    replicas: NotRequired[int]
    """Pods of the controller, of which one leads and all answer webhooks; 1 or more. Default: 2, of which one is always kept."""

    node_selector: NotRequired[dict[str, str]]
    """Labels of the nodes for the controller. Default: none, any node."""

    tolerations: NotRequired[list[dict[str, str]]]
    """Taints of these nodes that it tolerates. Default: none."""


def checked_pods_ready(name: str, args: KueueControllerArgs) -> PodsReady:
    """The times, and nothing else of the arguments out of bounds: raises ValueError."""
    if args.get("replicas", 2) < 1:
        raise ValueError(f"KueueController {name}: replicas is {args.get('replicas')}; use 1 or more")
    if "frameworks" in args and not args["frameworks"]:
        raise ValueError(f"KueueController {name}: frameworks is empty, which Kueue takes for batch/job; name the kinds, or leave it out")
    if "pods_ready" not in args:
        return ONE_BOOT
    times = args["pods_ready"]
    for field in ("timeout_seconds", "recovery_seconds"):
        if times[field] < 60:  # noqa: PLR2004 -- a minute
            raise ValueError(f"KueueController {name}: pods_ready.{field} is {times[field]}; no node boots in less than 60")
    if times["requeues"] < 0:
        raise ValueError(f"KueueController {name}: pods_ready.requeues is {times['requeues']}; use 0 for none, or more")
    return PodsReady(times["timeout_seconds"], times["recovery_seconds"], times["requeues"])


CHART = "oci://registry.k8s.io/kueue/charts/kueue"
VERSION = "0.19.0"
IMAGE = "registry.k8s.io/kueue/kueue"


class KueueController(pulumi.ComponentResource):
    """Kueue 0.19.0 from its released chart, with a configuration that is written down whole; or none, where the cluster has one.

    Weights count (fair sharing is on), jobs wait for slow nodes and not for ever, and what is not covered by quota holds nobody up: see
    capacity/plan/kueue_configuration.py, which the lab's Kueue is configured by too. Raises ValueError for counts and times out of bounds.
    """

    version: pulumi.Output[str]
    """The version that is installed; of an existing one, the version that these queues are written for."""

    def __init__(self, name: str, args: KueueControllerArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        pods_ready = checked_pods_ready(name, args)
        super().__init__("flexspot:index:KueueController", name, {**args}, opts)
        self.version = pulumi.Output.from_input(VERSION)
        if not args.get("existing", False):
            release = Release(
                f"{name}-release",
                ReleaseArgs(
                    chart=CHART,
                    version=VERSION,
                    name="kueue",
                    namespace=NAMESPACE,
                    create_namespace=True,
                    # A release that fails half-way is taken back, so that the next try begins clean.
                    atomic=True,
                    timeout=600,
                    values=_values(args, pods_ready),
                ),
                pulumi.ResourceOptions(parent=self),
            )
            self.version = release.version.apply(lambda version: version or VERSION)
        self.register_outputs({"version": self.version})


def _values(args: KueueControllerArgs, pods_ready: PodsReady) -> dict[str, Any]:
    """Values of the chart: charts/kueue/values.yaml of Kueue 0.19.0."""
    replicas = args.get("replicas", 2)
    configuration = kueue_configuration(pods_ready, args.get("frameworks", FRAMEWORKS))
    placement = {"nodeSelector": args.get("node_selector"), "tolerations": args.get("tolerations")}
    return {
        "controllerManager": {
            # While no replica answers the webhooks, no job can be submitted and no queue be changed.
            "replicas": replicas,
            "podDisruptionBudget": {"enabled": replicas > 1, "minAvailable": 1},
            "manager": {
                # In the module the chart names a moving image of the staging registry. What runs is written here.
                "image": {"repository": IMAGE, "tag": f"v{VERSION}", "pullPolicy": "IfNotPresent"},
                # Twice the chart's 512Mi: the caches hold every Job, pod template and Workload of all teams.
                "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "1Gi"}},
            },
            "topologySpreadConstraints": [
                {
                    "maxSkew": 1,
                    "topologyKey": "kubernetes.io/hostname",
                    "whenUnsatisfiable": "ScheduleAnyway",
                    "labelSelector": {"matchLabels": {"control-plane": "controller-manager", "app.kubernetes.io/name": "kueue"}},
                }
            ],
            **{field: value for field, value in placement.items() if value},
        },
        "managerConfig": {"controllerManagerConfigYaml": yaml.safe_dump(configuration, sort_keys=False)},
    }
