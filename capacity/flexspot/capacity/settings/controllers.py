"""Sizes and versions of the platform's own controllers. The memory of a replica is both its request and its limit."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from flexspot.capacity.catalog.data_files import DescribedRecord
from flexspot.capacity.values.names import CHART_VERSION, IMAGE_REPOSITORY
from flexspot.capacity.values.quantities import mib_quantity, milli_quantity

Milli = Annotated[int, Field(ge=10, le=64_000)]
Mib = Annotated[int, Field(ge=32, le=262_144)]
Copies = Annotated[int, Field(ge=1, le=10)]
ChartVersion = Annotated[str, Field(pattern=CHART_VERSION)]


class ControllerSize(DescribedRecord):
    """The size of a controller's pods."""

    cpu_milli: Milli
    """CPU request of each replica, in thousandths of a vCPU."""

    memory_mib: Mib
    """Memory request and limit of each replica, in MiB."""

    @property
    def cpu(self) -> str:
        """CPU request in Kubernetes notation."""
        return milli_quantity(self.cpu_milli)

    @property
    def memory(self) -> str:
        """Memory request and limit in Kubernetes notation."""
        return mib_quantity(self.memory_mib)


class KueueSize(ControllerSize):
    """Kueue, which caches every Job, pod template and Workload of all teams."""

    replicas: Copies = 2
    """Replicas; one leads, and all answer webhooks."""

    cpu_milli: Milli = 500
    """CPU request of each replica, in thousandths of a vCPU."""

    memory_mib: Mib = 1024
    """Memory of each replica, in MiB; the chart's own value is half of it."""

    version: ChartVersion | None = None
    """Chart version. Default: the version that the platform is written for (`flexspot versions list`)."""


class JobSetSize(ControllerSize):
    """The JobSet controller, which creates the Jobs of JobSets."""

    replicas: Copies = 2
    """Replicas; one leads, and all answer webhooks."""

    cpu_milli: Milli = 100
    """CPU request of each replica, in thousandths of a vCPU; the chart's own value is 500."""

    memory_mib: Mib = 256
    """Memory of each replica, in MiB; the chart's own request is half of it. Thousands of JobSets need more."""

    version: ChartVersion | None = None
    """Chart version. Default: the version that the platform's JobSets are rendered for (`flexspot versions list`)."""


class JobSet(JobSetSize):
    """The JobSet controller, and a switch to install it."""

    install: bool = False
    """Install it. A multi-node job with `jobset` needs it, or an existing JobSet on the cluster; Kueue admits the JobSets of either."""


class KarpenterSize(ControllerSize):
    """Karpenter, whose memory use grows with nodes and pods."""

    replicas: Copies = 2
    """Replicas, of which one is active. No two share a node, so at most as many as `cluster.system_pool` has nodes."""

    cpu_milli: Milli = 1000
    """CPU request and limit of each replica, in thousandths of a vCPU."""

    memory_mib: Mib = 1024
    """Memory of each replica, in MiB; hundreds of nodes need several GiB."""

    version: ChartVersion | None = None
    """Version of the Karpenter chart and of its CRD chart; it must support `cluster.version`. Default: the version that the platform is
    written for (`flexspot versions list`)."""


class KubeStateMetricsSize(ControllerSize):
    """kube-state-metrics, which runs as a single replica."""

    cpu_milli: Milli = 100
    """CPU request, in thousandths of a vCPU."""

    memory_mib: Mib = 512
    """Memory, in MiB; tens of thousands of pods need more."""


class LoadBalancerControllerSize(ControllerSize):
    """The AWS Load Balancer Controller, which creates load balancers for Ingresses, and for Services that request one."""

    replicas: Copies = 2
    """Replicas; one leads, and all answer webhooks."""

    cpu_milli: Milli = 100
    """CPU request of each replica, in thousandths of a vCPU."""

    memory_mib: Mib = 256
    """Memory of each replica, in MiB; hundreds of Ingresses need more."""

    version: ChartVersion | None = None
    """Chart version. The controller's IAM policy is that of the version that the platform is written for, which is the default
    (`flexspot versions list`)."""


class LoadBalancerControllerSettings(LoadBalancerControllerSize):
    """The AWS Load Balancer Controller, and a switch to install it."""

    install: bool = False
    """Install it. Without it, a Service of type LoadBalancer gets a classic load balancer at most, and an Ingress gets none."""


class DevicePlugin(DescribedRecord):
    """A component that runs on every node with accelerators; it needs few resources and has no size settings."""

    version: ChartVersion | None = None
    """Chart version. Default: the version that the platform is written for (`flexspot versions list`)."""


class EfaDevicePlugin(DevicePlugin):
    """AWS's device plugin for EFA, and the source of its image."""

    image: Annotated[str, Field(pattern=IMAGE_REPOSITORY)] | None = None
    """The image repository, without a tag. Default: the chart's, in us-west-2 of the aws partition. Other partitions, and nodes that
    cannot reach other regions, need their own."""


class Controllers(DescribedRecord):
    """The sizes and versions of the platform's controllers.

    Together with the cloud's own pods they must fit on the nodes of `cluster.system_pool`.
    """

    kueue: KueueSize = KueueSize()
    """Kueue, unless the cluster already has one."""

    jobset: JobSet = JobSet()
    """JobSet, for multi-node jobs whose pods restart together."""

    kube_state_metrics: KubeStateMetricsSize = KubeStateMetricsSize()
    """kube-state-metrics, unless the cluster already has one."""


class EksControllers(Controllers):
    """The sizes and versions of the platform's controllers on EKS, including Karpenter."""

    karpenter: KarpenterSize = KarpenterSize()
    """Karpenter."""

    load_balancer_controller: LoadBalancerControllerSettings = LoadBalancerControllerSettings()
    """The AWS Load Balancer Controller, for services that are reachable from outside the cluster."""

    nvidia_device_plugin: DevicePlugin = DevicePlugin()
    """NVIDIA's device plugin, on AL2023; Bottlerocket includes its own."""

    neuron_device_plugin: DevicePlugin = DevicePlugin()
    """AWS's device plugin for Trainium and Inferentia, if a pool has such machines."""

    efa_device_plugin: EfaDevicePlugin = EfaDevicePlugin()
    """AWS's device plugin for EFA, if a pool sets `efa`."""

    dcgm_exporter: DevicePlugin = DevicePlugin()
    """NVIDIA's DCGM exporter, unless `measurement.dcgm_exporter` is false."""
