"""Kueue and JobSet from their charts, and GKE's admission check for queued capacity."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
from typing import Any, NotRequired, TypedDict

import pulumi
import yaml
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from flexspot.capacity.catalog.node_labels import GPU_RESOURCE
from flexspot.capacity.catalog.versions import Chart, shipped_versions
from flexspot.capacity.plan.kueue_configuration import NAMESPACE, ONE_BOOT, PodsReady, kueue_configuration
from flexspot.capacity.settings.controllers import JobSetSize, KueueSize
from flexspot.capacity.values.errors import SettingsProblem
from flexspot.capacity.values.quantities import milli_quantity
from flexspot.components.in_cluster import chart_release
from flexspot.components.kueue.queues import API_VERSION
from flexspot.components.shared_args import ControllerArgs, checked_options, publish, refuse


class PodsReadyArgs(TypedDict):
    """Time limits for admitted jobs that do not have all their pods, and their retries.

    See flexspot/capacity/plan/kueue_configuration.py.
    """

    timeout_seconds: int
    """Seconds from admission, 60 or more. It must fit the slowest capacity of all queues, because Kueue has one value per cluster."""

    recovery_seconds: int
    """Seconds from the loss of a pod, 60 or more."""

    requeues: int
    """Number of requeues, 0 or more. After that the Workload is deactivated and its Job stays suspended."""


class KueueControllerArgs(ControllerArgs):
    """Arguments of KueueController. Sizes and their defaults are those of `controllers.kueue` in the settings."""

    existing: NotRequired[bool]
    """True if the cluster already has Kueue, with v1beta2 and fair sharing on. Then nothing is installed. Default: false."""

    pods_ready: NotRequired[PodsReadyArgs]
    """Time limits of jobs that wait for their nodes. Default: 45 minutes, 30 minutes once they have run, 10 requeues."""

    cpu_milli: NotRequired[int]
    """CPU request of each replica, in thousandths of a vCPU. The limit is 2 vCPU, or the request if larger. Default: 500."""

    memory_mib: NotRequired[int]
    """Memory request and limit of each replica, in MiB. Default: 1024."""


def checked_pods_ready(name: str, args: KueueControllerArgs) -> PodsReady:
    """Return the time limits. Raises ValueError for those out of bounds."""
    if "pods_ready" not in args:
        return ONE_BOOT
    where, times = f"KueueController {name}", args["pods_ready"]
    for field in ("timeout_seconds", "recovery_seconds"):
        if times[field] < 60:  # noqa: PLR2004 -- a minute
            refuse(where, SettingsProblem(f"pods_ready.{field}", str(times[field]), "no node boots in less than 60", "raise it"))
    if times["requeues"] < 0:
        refuse(where, SettingsProblem("pods_ready.requeues", str(times["requeues"]), "must be at least 0", "use 0 for none"))
    return PodsReady(times["timeout_seconds"], times["recovery_seconds"], times["requeues"])


CHART = "oci://registry.k8s.io/kueue/charts/kueue"
IMAGE = "registry.k8s.io/kueue/kueue"
_CPU_LIMIT = 2000


class KueueController(pulumi.ComponentResource):
    """Kueue from its released chart, with a complete explicit configuration. Nothing if the cluster already has one.

    Fair sharing is on, so weights count. Jobs wait for slow nodes, but not forever. Resources without a quota block nothing. See
    flexspot/capacity/plan/kueue_configuration.py, which also configures the lab's Kueue. Raises ValueError for counts and times out of
    bounds.
    """

    version: pulumi.Output[str]
    """The installed version. For an existing Kueue, the version that these queues are written for."""

    def __init__(self, name: str, args: KueueControllerArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        size, pods_ready = checked_options(f"KueueController {name}", KueueSize, args), checked_pods_ready(name, args)
        version = size.version or shipped_versions().chart(Chart.KUEUE).version
        super().__init__("flexspot:index:KueueController", name, {**args}, opts)
        self.version = pulumi.Output.from_input(version)
        if not args.get("existing", False):
            release = chart_release(
                f"{name}-release",
                CHART,
                version,
                _values(args, size, version, pods_ready),
                pulumi.ResourceOptions(parent=self),
                namespace=NAMESPACE,
                create_namespace=True,
            )
            self.version = release.version.apply(lambda known: known or version)
        publish(self)


def _replicas(args: ControllerArgs, size: KueueSize | JobSetSize) -> dict[str, Any]:
    """Return the number of replicas and their placement. If none answers the webhooks, jobs and queues cannot change."""
    placement = {"nodeSelector": args.get("node_selector"), "tolerations": args.get("tolerations")}
    return {
        "replicas": size.replicas,
        "podDisruptionBudget": {"enabled": size.replicas > 1, "minAvailable": 1},
        **{field: value for field, value in placement.items() if value},
    }


def _image(repository: str, version: str) -> dict[str, str]:
    """Return the released image. The chart in the source module names a moving image of the staging registry."""
    return {"repository": repository, "tag": f"v{version.removeprefix('v')}", "pullPolicy": "IfNotPresent"}


def _resources(size: KueueSize | JobSetSize) -> dict[str, Any]:
    """Return the requests and the chart's own cpu limit, which is explicit because Helm would keep it below a larger request."""
    most = milli_quantity(max(_CPU_LIMIT, size.cpu_milli))
    return {"requests": {"cpu": size.cpu, "memory": size.memory}, "limits": {"cpu": most, "memory": size.memory}}


def _values(args: KueueControllerArgs, size: KueueSize, version: str, pods_ready: PodsReady) -> dict[str, Any]:
    """Return the values of the chart: charts/kueue/values.yaml of Kueue 0.19.2."""
    return {
        "controllerManager": {
            **_replicas(args, size),
            "manager": {"image": _image(IMAGE, version), "resources": _resources(size)},
            "topologySpreadConstraints": [
                {
                    "maxSkew": 1,
                    "topologyKey": "kubernetes.io/hostname",
                    "whenUnsatisfiable": "ScheduleAnyway",
                    "labelSelector": {"matchLabels": {"control-plane": "controller-manager", "app.kubernetes.io/name": "kueue"}},
                }
            ],
        },
        "managerConfig": {"controllerManagerConfigYaml": yaml.safe_dump(kueue_configuration(pods_ready), sort_keys=False)},
    }


PROVISIONING_CLASS = "queued-provisioning.gke.io"
"""GKE's own class of ProvisioningRequest. https://docs.cloud.google.com/kubernetes-engine/docs/how-to/provisioningrequest"""

REQUEST_LABEL = "autoscaling.gke.io/provisioning-request"
"""Label of the nodes of a request. Its value is the name of the resize request (AI-Hypercomputer/xpk selects by it)."""


class DwsProvisioningArgs(TypedDict):
    """Arguments of DwsProvisioning."""

    name: str
    """Name of the AdmissionCheck, which queues use for the flavors of queued pools, and of its ProvisioningRequestConfig."""

    labels: dict[str, str]
    """Labels of every object."""


class DwsProvisioning(pulumi.ComponentResource):
    """The AdmissionCheck for queued capacity on GKE, with the parameters of Kueue's requests to GKE.

    Only for GKE: without the ProvisioningRequest API the check is inactive, and so is every queue that names it. A job's run time is in its
    annotation provreq.kueue.x-k8s.io/maxRunDurationSeconds. After the last retry its Workload is deactivated, and the Job stays suspended.
    """

    admission_check: pulumi.Output[str]
    """Name of the AdmissionCheck, known once it exists."""

    def __init__(self, name: str, args: DwsProvisioningArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("flexspot:index:DwsProvisioning", name, {**args}, opts)
        request = CustomResource(
            f"{name}-request",
            api_version=API_VERSION,
            kind="ProvisioningRequestConfig",
            metadata=ObjectMetaArgs(name=args["name"], labels=args["labels"]),
            spec={
                "provisioningClassName": PROVISIONING_CLASS,
                # A launcher pod without GPUs is not part of the request: it runs on other nodes.
                "managedResources": [GPU_RESOURCE],
                "retryStrategy": {"backoffLimitCount": 3, "backoffBaseSeconds": 60, "backoffMaxSeconds": 1800},
                # Without it the pods of two jobs would take each other's nodes.
                "podSetUpdates": {"nodeSelector": [{"key": REQUEST_LABEL, "valueFromProvisioningClassDetail": "ResizeRequestName"}]},
                # Pod sets that only differ in their command (a leader and its workers) are one request, which DWS provides or rejects as a
                # whole.
                "podSetMergePolicy": "IdenticalWorkloadSchedulingRequirements",
            },
            opts=pulumi.ResourceOptions(parent=self),
        )
        check = CustomResource(
            f"{name}-check",
            api_version=API_VERSION,
            kind="AdmissionCheck",
            metadata=ObjectMetaArgs(name=args["name"], labels=args["labels"]),
            spec={
                "controllerName": "kueue.x-k8s.io/provisioning-request",
                "parameters": {"apiGroup": "kueue.x-k8s.io", "kind": "ProvisioningRequestConfig", "name": args["name"]},
            },
            opts=pulumi.ResourceOptions(parent=self, depends_on=[request]),
        )
        self.admission_check = check.id.apply(lambda _: args["name"])
        publish(self)


JOBSET_NAMESPACE = "jobset-system"
JOBSET_CHART = "oci://registry.k8s.io/jobset/charts/jobset"
"""Source: charts/jobset/README.md of sigs.k8s.io/jobset v0.12.0."""

JOBSET_IMAGE = "registry.k8s.io/jobset/jobset"


class JobSetControllerArgs(ControllerArgs):
    """Arguments of JobSetController. Sizes and their defaults are those of `controllers.jobset` in the settings."""

    cpu_milli: NotRequired[int]
    """CPU request of each replica, in thousandths of a vCPU. The limit is 2 vCPU, or the request if larger. Default: 100."""

    memory_mib: NotRequired[int]
    """Memory request and limit of each replica, in MiB. Default: 256."""


class JobSetController(pulumi.ComponentResource):
    """JobSet from its released chart, with its CRD: once the CRD exists, Kueue admits JobSets as it admits Jobs.

    A running Kueue looks for the CRD every two minutes (0.19.2). Until it finds it, it admits the Jobs of a set individually.

    While no replica answers its webhooks, no JobSet and no pod of one can be created. Other pods are not affected. Helm keeps the CRD, and
    the JobSets with it, when the release is deleted. Raises ValueError for sizes out of bounds.
    """

    version: pulumi.Output[str]
    """The installed version."""

    def __init__(self, name: str, args: JobSetControllerArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        where = f"JobSetController {name}"
        size = checked_options(where, JobSetSize, args)
        version = size.version or shipped_versions().chart(Chart.JOBSET).version
        super().__init__("flexspot:index:JobSetController", name, {**args}, opts)
        release = chart_release(
            f"{name}-release",
            JOBSET_CHART,
            version,
            _jobset_values(args, size, version),
            pulumi.ResourceOptions(parent=self),
            namespace=JOBSET_NAMESPACE,
            create_namespace=True,
        )
        self.version = release.version.apply(lambda known: known or version)
        publish(self)


def _jobset_values(args: JobSetControllerArgs, size: JobSetSize, version: str) -> dict[str, Any]:
    """Return the values of the chart: charts/jobset/values.yaml of JobSet 0.12.0."""
    return {"image": _image(JOBSET_IMAGE, version), "controller": {**_replicas(args, size), "resources": _resources(size)}}
