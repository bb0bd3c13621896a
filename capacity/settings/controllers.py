"""The platform's own controllers: what each copy asks for, which is also the most that it gets of memory, and its version."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from capacity.catalog.data_files import DescribedRecord
from capacity.values.names import CHART_VERSION, IMAGE_REPOSITORY
from capacity.values.quantities import mib_quantity, milli_quantity

Milli = Annotated[int, Field(ge=10, le=64_000)]
Mib = Annotated[int, Field(ge=32, le=262_144)]
Copies = Annotated[int, Field(ge=1, le=10)]
ChartVersion = Annotated[str, Field(pattern=CHART_VERSION)]


class ControllerSize(DescribedRecord):
    """The size of a controller's pods."""

    cpu_milli: Milli
    """Thousandths of a vCPU that each copy asks for."""

    memory_mib: Mib
    """Memory that each copy asks for, and the most that it gets, in MiB."""

    @property
    def cpu(self) -> str:
        """Its vCPU as Kubernetes writes it."""
        return milli_quantity(self.cpu_milli)

    @property
    def memory(self) -> str:
        """Its memory as Kubernetes writes it."""
        return mib_quantity(self.memory_mib)


class KueueSize(ControllerSize):
    """Kueue, whose caches hold every Job, pod template and Workload of all teams."""

    replicas: Copies = 2
    """Copies, of which one leads and all answer webhooks."""

    cpu_milli: Milli = 500
    """Thousandths of a vCPU that each copy asks for."""

    memory_mib: Mib = 1024
    """Memory of each copy, in MiB; its chart's own is half of it."""

    version: ChartVersion | None = None
    """Version of its chart. Default: the one that the platform is written for (`flexspot versions list`)."""


class JobSetSize(ControllerSize):
    """JobSet's controller, which makes the Jobs of JobSets."""

    replicas: Copies = 2
    """Copies, of which one leads and all answer webhooks."""

    cpu_milli: Milli = 100
    """Thousandths of a vCPU that each copy asks for; its chart's own is 500."""

    memory_mib: Mib = 256
    """Memory of each copy, in MiB; its chart's own request is half of it. More for thousands of JobSets."""

    version: ChartVersion | None = None
    """Version of its chart. Default: the one that the platform's JobSets are rendered for (`flexspot versions list`)."""


class JobSet(JobSetSize):
    """JobSet, and whether the platform brings it."""

    install: bool = False
    """Whether it is installed. `jobset` of a job of several nodes needs it, or one that the cluster has already; Kueue admits the JobSets
    of either."""


class KarpenterSize(ControllerSize):
    """Karpenter, whose memory grows with nodes and pods."""

    replicas: Copies = 2
    """Copies, of which one decides; no two share a node, so at most as many as `cluster.system_pool` has nodes."""

    cpu_milli: Milli = 1000
    """Thousandths of a vCPU of each copy, and the most that it gets."""

    memory_mib: Mib = 1024
    """Memory of each copy, in MiB; some GiB for hundreds of nodes."""

    version: ChartVersion | None = None
    """Version of its chart and of the chart of its definitions; it must work with `cluster.version`. Default: the one that the platform is
    written for (`flexspot versions list`)."""


class KubeStateMetricsSize(ControllerSize):
    """kube-state-metrics, of which there is one."""

    cpu_milli: Milli = 100
    """Thousandths of a vCPU that it asks for."""

    memory_mib: Mib = 512
    """Its memory, in MiB; more for tens of thousands of pods."""


class LoadBalancerControllerSize(ControllerSize):
    """AWS's load balancer controller, which makes load balancers of Ingresses, and of Services that ask for them."""

    replicas: Copies = 2
    """Copies, of which one leads and all answer webhooks."""

    cpu_milli: Milli = 100
    """Thousandths of a vCPU that each copy asks for."""

    memory_mib: Mib = 256
    """Memory of each copy, in MiB; more for hundreds of Ingresses."""

    version: ChartVersion | None = None
    """Version of its chart. Its role has the policy of the version that the platform is written for, which is the default
    (`flexspot versions list`)."""


class LoadBalancerController(LoadBalancerControllerSize):
    """AWS's load balancer controller, and whether there is one."""

    install: bool = False
    """Whether it is installed. Without it a Service of type LoadBalancer gets a classic load balancer, if any, and an Ingress none."""


class DevicePlugin(DescribedRecord):
    """What runs on every node with accelerators, asks for little and has no size to set."""

    version: ChartVersion | None = None
    """Version of its chart. Default: the one that the platform is written for (`flexspot versions list`)."""


class EfaDevicePlugin(DevicePlugin):
    """AWS's device plugin for EFA, and where its image comes from."""

    image: Annotated[str, Field(pattern=IMAGE_REPOSITORY)] | None = None
    """The repository of its image, without a tag. Default: the chart's, which is in us-west-2 of the partition aws: other partitions, and
    nodes that reach no other region, need one of their own."""


class Controllers(DescribedRecord):
    """The sizes and versions of the platform's controllers. Together with the cloud's own pods they must fit on the nodes of
    `cluster.system_pool`.
    """

    kueue: KueueSize = KueueSize()
    """Kueue, unless the cluster has its own."""

    jobset: JobSet = JobSet()
    """JobSet, for jobs of several nodes that begin anew together."""

    kube_state_metrics: KubeStateMetricsSize = KubeStateMetricsSize()
    """kube-state-metrics, unless the cluster has its own."""


class EksControllers(Controllers):
    """The sizes and versions of the platform's controllers on EKS, Karpenter among them."""

    karpenter: KarpenterSize = KarpenterSize()
    """Karpenter."""

    load_balancer_controller: LoadBalancerController = LoadBalancerController()
    """AWS's load balancer controller, for services that are reached from outside of the cluster."""

    nvidia_device_plugin: DevicePlugin = DevicePlugin()
    """NVIDIA's device plugin, on AL2023; Bottlerocket has its own."""

    neuron_device_plugin: DevicePlugin = DevicePlugin()
    """AWS's device plugin for Trainium and Inferentia, where a pool has such machines."""

    efa_device_plugin: EfaDevicePlugin = EfaDevicePlugin()
    """AWS's device plugin for EFA, where a pool has `efa`."""

    dcgm_exporter: DevicePlugin = DevicePlugin()
    """NVIDIA's DCGM exporter, unless `measurement.dcgm_exporter` is false."""
