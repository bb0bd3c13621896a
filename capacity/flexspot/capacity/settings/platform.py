"""The settings of one stack: a model for each place where a platform runs; and what is asked of everything in an AWS account."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from flexspot.capacity.catalog.data_files import DescribedRecord
from flexspot.capacity.catalog.platform import Platform, PrometheusKind, default_services
from flexspot.capacity.settings.cluster import EksClusterSettings, GkeClusterSettings, OtherWork
from flexspot.capacity.settings.controllers import Controllers, EksControllers
from flexspot.capacity.settings.machines import DescribedEc2Machine, DescribedGkeMachine
from flexspot.capacity.settings.network import (
    CONTROL_PLANE_ZONES,
    Access,
    ControlPlane,
    EksNetworkSettings,
    GkeNetworkSettings,
    control_plane_ranges,
)
from flexspot.capacity.settings.pools import EksPool, GkePool, LocalPool, PoolSettings
from flexspot.capacity.settings.storage import EksStorage, GkeStorage
from flexspot.capacity.settings.teams import Admission, ClassSettings, CohortSettings, MonthlyUsd, Queueing, TeamSettings
from flexspot.capacity.values.names import (
    AWS_ACCOUNT,
    AWS_REGION,
    AWS_TAG_KEY,
    AWS_TAG_KEY_CHARACTERS,
    AWS_TAG_VALUE,
    AWS_TAG_VALUE_CHARACTERS,
    GCP_PROJECT,
    GCP_REGION,
    IAM_PATH,
    IAM_POLICY,
    LABEL_KEY,
    LABEL_VALUE,
    Name,
    Zone,
    is_production,
)


class OnUnknownPrices(StrEnum):
    """What happens to a preview or `up` when a budget holds for all known prices but unknown prices could exceed it.

    WARN reports it. REFUSE treats it as over budget.
    """

    WARN = "warn"
    REFUSE = "refuse"


class Budget(DescribedRecord):
    """The environment's budget."""

    monthly_usd: MonthlyUsd
    """Monthly budget in US dollars."""

    alert_percents: tuple[Annotated[int, Field(ge=1, le=200)], ...] = (50, 80, 100)
    """Percentages of the budget at which a warning is sent."""

    on_unknown_prices: OnUnknownPrices = OnUnknownPrices.WARN
    """What to do when this budget, or a team's, holds for all known prices but an unknown price (at most the on-demand price) could
    exceed it: `warn` in previews, or `refuse` them."""


class GpuQuota(DescribedRecord):
    """The cloud quota for one GPU type in the region."""

    preemptible: Annotated[int, Field(ge=0)] | None = None
    """GPUs for Spot, flex-start and queued capacity together. Default: not checked."""

    on_demand: Annotated[int, Field(ge=0)] | None = None
    """GPUs for on-demand capacity. Default: not checked."""


class Observability(DescribedRecord):
    """Metrics collection, and alert thresholds."""

    managed_prometheus: bool = True
    """Whether Google Cloud Managed Service for Prometheus is enabled on GKE."""

    idle_gpu_minutes: Annotated[int, Field(ge=5)] = 60
    """Minutes that an on-demand GPU may stay below 5 % utilisation before an alert fires."""

    queue_wait_minutes: Annotated[int, Field(ge=1)] = 60
    """Minutes that a job may wait before an alert fires."""

    min_spot_percent: Annotated[int, Field(ge=0, le=100)] = 40
    """Minimum percentage of running GPUs on Spot. An alert fires below it."""


LabelKey = Annotated[str, Field(pattern=LABEL_KEY)]
LabelValue = Annotated[str, Field(pattern=LABEL_VALUE)]


class Measurement(DescribedRecord):
    """Metrics for reports and dashboards."""

    kube_state_metrics: bool = True
    """Whether to install kube-state-metrics with the labels that reports need. Set to false if the cluster already has one, which then
    needs the argument given in docs/guides/chargeback.md."""

    prometheus: PrometheusKind
    """Which Prometheus scrapes it and evaluates the recording rules."""

    monitor_labels: dict[LabelKey, LabelValue] = Field(default_factory=dict)
    """With `operator`: the labels by which its Prometheus selects monitors and rules, such as `release: kube-prometheus-stack`. Default:
    none."""


class GkeMeasurement(Measurement):
    """Metrics on GKE, whose clusters have Google Cloud Managed Service for Prometheus."""

    prometheus: PrometheusKind = PrometheusKind.MANAGED
    """Which Prometheus scrapes kube-state-metrics and evaluates the recording rules. `managed`: Google's service. `operator`: the
    Prometheus Operator. `annotations`: any other Prometheus that discovers Services by prometheus.io/scrape."""


class EksMeasurement(Measurement):
    """Metrics on EKS. By default any Prometheus discovers the Services by their annotations."""

    dcgm_exporter: bool = True
    """Whether to run NVIDIA's DCGM exporter on GPU nodes. It reports GPU utilisation, which recording rules, reports and idle GPU alerts
    use. Set to false if the cluster already has one, such as the GPU operator's or the CloudWatch add-on's: only one exporter gets
    profiling metrics."""

    prometheus: Literal[PrometheusKind.OPERATOR, PrometheusKind.ANNOTATIONS] = PrometheusKind.ANNOTATIONS
    """Which Prometheus scrapes both exporters and evaluates the recording rules. `operator`: the Prometheus Operator. `annotations`: any
    other Prometheus that discovers Services by prometheus.io/scrape."""


SET_BY_THE_PLATFORM = ("Name", "cluster", "environment", "owner", "team", "workload-class")
"""Keys of tags that the platform sets itself."""

SET_BY_OTHERS = ("aws:", "ebs.csi.aws.com/", "eks:", "karpenter.k8s.aws/", "karpenter.sh/", "kubernetes.io/")
"""Beginnings of keys by which AWS, Karpenter, the EBS driver or the platform find and protect what is theirs."""

_MOST_TAGS = 35
"""AWS takes 50 for each resource; a node has up to eleven of the platform's, Karpenter's and the EBS driver's, and others may add some."""


def _own_tags(tags: dict[str, str]) -> dict[str, str]:
    """Tags that AWS takes beside the platform's. For IAM two keys are the same that differ in upper and lower case alone."""
    ours = {key.lower() for key in SET_BY_THE_PLATFORM}
    seen: set[str] = set()
    for key in tags:
        if key.lower() in ours or key.lower().startswith(SET_BY_OTHERS):
            raise ValueError(f"{key} is a tag that the platform, AWS, Karpenter or the EBS driver sets; leave it out")
        if key.lower() in seen:
            raise ValueError(f"{key} is there twice: IAM tells upper and lower case of a key not apart; leave one out")
        seen.add(key.lower())
    return tags


AwsTags = Annotated[
    dict[
        Annotated[str, Field(pattern=AWS_TAG_KEY, max_length=AWS_TAG_KEY_CHARACTERS)],
        Annotated[str, Field(pattern=AWS_TAG_VALUE, max_length=AWS_TAG_VALUE_CHARACTERS)],
    ],
    Field(max_length=_MOST_TAGS),
    AfterValidator(_own_tags),
]
"""Tags of one's own for AWS resources."""


class Iam(DescribedRecord):
    """The IAM path of the roles and policies that a stack creates, and the permissions boundary of the roles."""

    path: Annotated[str, Field(pattern=IAM_PATH, max_length=512)] = "/"
    """Path of the roles and of Karpenter's policies, such as /platform/. A different path replaces them."""

    permissions_boundary: Annotated[str, Field(pattern=IAM_POLICY)] | None = None
    """ARN of the permissions boundary that every role of the stack gets, where your organisation requires one. It must allow what each
    role needs. Default: none."""


Zones = Annotated[tuple[Zone, ...], Field(min_length=1)]


class ZoneMachines(StrEnum):
    """What to do about a zone or region where, according to the catalog, a pool's machine is not available.

    CHECKED: reject it, or warn if the zone's name means different zones in different accounts (the oldest AWS regions). UNCHECKED: nothing.
    """

    CHECKED = "checked"
    UNCHECKED = "unchecked"


class PlatformSettings(DescribedRecord):
    """The value of `flexspot:platform` in a stack file: the settings of every platform."""

    cloud: Platform
    """Where the platform runs."""

    environment: Name
    """Name of the environment, on every resource as a label or tag."""

    owner: Name
    """Who is responsible for the environment, on every resource as a label or tag."""

    cohort: Name = "platform"
    """Name of the root cohort."""

    cohorts: tuple[CohortSettings, ...] = ()
    """Departments or other groups of teams."""

    pools: Annotated[tuple[PoolSettings, ...], Field(min_length=1)]
    """Pools of GPU machines."""

    classes: dict[Name, ClassSettings] = Field(default_factory=dict)
    """Workload classes by name: changed fields of shipped classes, and your own classes."""

    teams: Annotated[tuple[TeamSettings, ...], Field(min_length=1)]
    """Teams, with their shares, limits and access."""

    queueing: Queueing = Queueing()
    """Settings of all queues."""

    admission: Admission = Admission()
    """What the API server rejects or warns about."""

    budget: Budget | None = None
    """The environment's spending limit. Default: no budget."""

    prices_file: str | None = None
    """A file beside the stack file with your own prices, which take precedence over the shipped ones. Default: none."""

    observability: Observability = Observability()
    """Alert thresholds."""

    @property
    def ownership(self) -> dict[str, str]:
        """Whose everything is. A key here reaches objects and nodes as a label, and what the cloud bills as its tag."""
        return {"environment": self.environment, "owner": self.owner}


class LocalSettings(PlatformSettings):
    """A platform on the local control plane. Its fake nodes imitate EKS nodes in us-east-1."""

    cloud: Literal[Platform.LOCAL]
    """The local control plane."""

    other_work: OtherWork = OtherWork()
    """Limits for work without GPUs, on fake nodes of EKS's general-purpose machines."""

    pools: Annotated[tuple[LocalPool, ...], Field(min_length=1)]
    """Pools of GPU machines."""


class GkeSettings(PlatformSettings):
    """A platform on GKE."""

    cloud: Literal[Platform.GKE]
    """Google Kubernetes Engine."""

    project: Annotated[str, Field(pattern=GCP_PROJECT)]
    """Id of the Google Cloud project."""

    region: Annotated[str, Field(pattern=GCP_REGION)]
    """The region, such as us-central1."""

    zones: Zones
    """Zones of the region in which nodes may start, by the cloud's own names."""

    zone_machines: ZoneMachines = ZoneMachines.CHECKED
    """`checked`: report zones where, according to the catalog, a pool's machine is not available. `unchecked`: do not check, for
    machines or zones newer than the catalog."""

    network: GkeNetworkSettings = GkeNetworkSettings()
    """The cluster's network."""

    control_plane: ControlPlane = ControlPlane()
    """Access to the API server."""

    cluster: GkeClusterSettings = GkeClusterSettings()
    """The cluster."""

    controllers: Controllers = Controllers()
    """Sizes and versions of the platform's controllers."""

    storage: GkeStorage = GkeStorage()
    """The platform's buckets."""

    measurement: GkeMeasurement = GkeMeasurement()
    """Which exporters report GPU metrics, and how Prometheus collects and records them."""

    machines: tuple[DescribedGkeMachine, ...] = ()
    """Compute Engine machines that are not in the catalog, for pools and the system pool."""

    pools: Annotated[tuple[GkePool, ...], Field(min_length=1)]
    """Pools of GPU machines."""

    gpu_quotas: dict[str, GpuQuota] = Field(default_factory=dict)
    """The project's GPU quotas in the region, by accelerator. Ceilings above a quota are rejected."""

    @property
    def cluster_location(self) -> str:
        """Where the cluster is, in the words of GKE's API: the region, or the zone of a zonal one."""
        return self.cluster.zone or self.region

    @property
    def access(self) -> Access:
        """From where the API server is reached."""
        makes_the_network = self.network.existing_network is None and self.cluster.existing is None
        return self.control_plane.access or (Access.DNS_IAM if makes_the_network else Access.PRIVATE)


class EksSettings(PlatformSettings):
    """A platform on EKS."""

    cloud: Literal[Platform.EKS]
    """Amazon Elastic Kubernetes Service."""

    tags: AwsTags = Field(default_factory=dict)
    """Your own tags on every AWS resource that supports tags, including machines and volumes, in addition to the platform's tags. A
    change causes drift and replaces Karpenter's nodes as their pools allow. Default: none."""

    iam: Iam = Iam()
    """IAM path and permissions boundary of the stack's roles."""

    account: Annotated[str, Field(pattern=AWS_ACCOUNT)]
    """The AWS account number, 12 digits in quotes. With credentials of another account, nothing is deployed."""

    region: Annotated[str, Field(pattern=AWS_REGION)]
    """The region, such as us-east-1."""

    zones: Zones
    """Zones of the region in which nodes may start: all by name, such as us-east-1a, or all by id, such as use1-az1. In the oldest
    regions a zone name means different zones in different accounts; an id does not."""

    zone_machines: ZoneMachines = ZoneMachines.CHECKED
    """`checked`: report zones where, according to the catalog, a pool's machine is not available. `unchecked`: do not check, for
    machines or zones newer than the catalog."""

    network: EksNetworkSettings = EksNetworkSettings()
    """The cluster's network."""

    control_plane: ControlPlane = ControlPlane()
    """Access to the API server."""

    cluster: EksClusterSettings
    """The cluster."""

    controllers: EksControllers = EksControllers()
    """Sizes and versions of the platform's controllers."""

    storage: EksStorage = EksStorage()
    """The platform's buckets and file systems."""

    measurement: EksMeasurement = EksMeasurement()
    """Which exporters report GPU metrics, and how Prometheus collects and records them."""

    machines: tuple[DescribedEc2Machine, ...] = ()
    """EC2 machines that are not in the catalog, for pools and the system pool."""

    pools: Annotated[tuple[EksPool, ...], Field(min_length=1)]
    """Pools of GPU machines."""

    @property
    def access(self) -> Access:
        """From where the API server is reached."""
        return self.control_plane.access or Access.PRIVATE

    @property
    def control_plane_zones(self) -> tuple[str, ...]:
        """The zones of the control plane's own addresses."""
        return self.network.control_plane_zones or self.zones[:CONTROL_PLANE_ZONES]

    @property
    def control_plane_cidrs(self) -> tuple[str, ...]:
        """The ranges of the control plane's own addresses, one for each of its zones."""
        return self.network.control_plane_cidrs or tuple(control_plane_ranges(self.network.vpc_cidr, len(self.control_plane_zones)))

    @property
    def interface_services(self) -> list[str]:
        """The services of AWS that get an interface endpoint, none in a VPC that is there already."""
        wanted = self.network.interface_endpoints
        if self.network.existing_vpc is not None or not (is_production(self.environment) if wanted is None else wanted):
            return []
        return default_services(self.region)


MODELS: dict[Platform, type[PlatformSettings]] = {Platform.LOCAL: LocalSettings, Platform.GKE: GkeSettings, Platform.EKS: EksSettings}
"""The model of each platform's settings."""
