"""The settings of one stack: a model for each platform, and settings of everything in an AWS account."""

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
    """Result of a preview or `up` when a budget holds for all known prices but unknown prices could exceed it.

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
    """Action if this budget, or a team's, holds for all known prices but an unknown price (at most the on-demand price) could exceed it:
    `warn` in previews, or `refuse` them."""


class GpuQuota(DescribedRecord):
    """The cloud quota for one GPU type in the region."""

    preemptible: Annotated[int, Field(ge=0)] | None = None
    """GPUs for Spot, flex-start and queued capacity together. Default: not checked."""

    on_demand: Annotated[int, Field(ge=0)] | None = None
    """GPUs for on-demand capacity. Default: not checked."""


class Observability(DescribedRecord):
    """Metrics collection, and alert thresholds."""

    managed_prometheus: bool = True
    """Enable Google Cloud Managed Service for Prometheus on GKE."""

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
    """Install kube-state-metrics with the labels that reports need. Set to false if the cluster already has one, which then needs the
    argument given in docs/guides/chargeback.md."""

    prometheus: PrometheusKind
    """Prometheus that scrapes it and evaluates the recording rules."""

    monitor_labels: dict[LabelKey, LabelValue] = Field(default_factory=dict)
    """With `operator`: the labels by which its Prometheus selects monitors and rules, such as `release: kube-prometheus-stack`. Default:
    none."""


class GkeMeasurement(Measurement):
    """Metrics on GKE, whose clusters have Google Cloud Managed Service for Prometheus."""

    prometheus: PrometheusKind = PrometheusKind.MANAGED
    """Prometheus that scrapes kube-state-metrics and evaluates the recording rules. `managed`: Google's service. `operator`: the
    Prometheus Operator. `annotations`: any other Prometheus that discovers Services by prometheus.io/scrape."""


class EksMeasurement(Measurement):
    """Metrics on EKS. By default any Prometheus discovers the Services by their annotations."""

    dcgm_exporter: bool = True
    """Run NVIDIA's DCGM exporter on GPU nodes. It reports GPU utilisation, which recording rules, reports and idle GPU alerts use. Set
    to false if the cluster already has one, such as the GPU operator's or the CloudWatch add-on's: only one exporter gets profiling
    metrics."""

    prometheus: Literal[PrometheusKind.OPERATOR, PrometheusKind.ANNOTATIONS] = PrometheusKind.ANNOTATIONS
    """Prometheus that scrapes both exporters and evaluates the recording rules. `operator`: the Prometheus Operator. `annotations`: any
    other Prometheus that discovers Services by prometheus.io/scrape."""


SET_BY_THE_PLATFORM = ("Name", "cluster", "environment", "owner", "team", "workload-class")
"""Keys of tags that the platform sets itself."""

SET_BY_OTHERS = ("aws:", "ebs.csi.aws.com/", "eks:", "karpenter.k8s.aws/", "karpenter.sh/", "kubernetes.io/")
"""Prefixes of the tag keys by which AWS, Karpenter, the EBS driver or the platform find and protect their resources."""

_MOST_TAGS = 35
"""Maximum number of tags of one's own. AWS accepts 50 for each resource; a node has up to eleven of the platform's, Karpenter's and the
EBS driver's, and others may add some."""


def _own_tags(tags: dict[str, str]) -> dict[str, str]:
    """Return the tags. Raises ValueError for keys that others set, and for keys that differ only in case, which IAM treats as the same."""
    ours = {key.lower() for key in SET_BY_THE_PLATFORM}
    seen: set[str] = set()
    for key in tags:
        if key.lower() in ours or key.lower().startswith(SET_BY_OTHERS):
            raise ValueError(f"{key} is a tag that the platform, AWS, Karpenter or the EBS driver sets; leave it out")
        if key.lower() in seen:
            raise ValueError(f"{key} is listed twice: IAM does not distinguish upper and lower case of a key; leave one out")
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
"""Tags for AWS resources, in addition to those that the platform sets."""


class Iam(DescribedRecord):
    """The IAM path of the roles and policies that a stack creates, and the permissions boundary of the roles."""

    path: Annotated[str, Field(pattern=IAM_PATH, max_length=512)] = "/"
    """Path of the roles and of Karpenter's policies, such as /platform/. A different path replaces them."""

    permissions_boundary: Annotated[str, Field(pattern=IAM_POLICY)] | None = None
    """ARN of the permissions boundary that every role of the stack gets, where your organisation requires one. It must allow what each
    role needs. Default: none."""


Zones = Annotated[tuple[Zone, ...], Field(min_length=1)]


class ZoneMachines(StrEnum):
    """Check of zones and regions where, according to the catalog, a pool's machine is not available.

    CHECKED: reject them, or warn if the zone's name means different zones in different accounts (the oldest AWS regions). UNCHECKED:
    nothing.
    """

    CHECKED = "checked"
    UNCHECKED = "unchecked"


class PlatformSettings(DescribedRecord):
    """The value of `flexspot:platform` in a stack file: the settings of every platform."""

    cloud: Platform
    """The platform: GKE, EKS or the local control plane."""

    environment: Name
    """Name of the environment, on every resource as a label or tag."""

    owner: Name
    """Person or team responsible for the environment, on every resource as a label or tag."""

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
    """Admission rules of the API server."""

    budget: Budget | None = None
    """The environment's spending limit. Default: no budget."""

    prices_file: str | None = None
    """A file in the stack file's folder with your own prices, which take precedence over the shipped ones. Default: none."""

    observability: Observability = Observability()
    """Alert thresholds."""

    @property
    def ownership(self) -> dict[str, str]:
        """Owner labels of everything. Each key is a label of objects and nodes, and a tag of what the cloud bills."""
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
    """Exporters of GPU metrics, and how Prometheus collects and records them."""

    machines: tuple[DescribedGkeMachine, ...] = ()
    """Compute Engine machines that are not in the catalog, for pools and the system pool."""

    pools: Annotated[tuple[GkePool, ...], Field(min_length=1)]
    """Pools of GPU machines."""

    gpu_quotas: dict[str, GpuQuota] = Field(default_factory=dict)
    """The project's GPU quotas in the region, by accelerator. Ceilings above a quota are rejected."""

    @property
    def cluster_location(self) -> str:
        """Location of the cluster in GKE's API: the region, or the zone of a zonal cluster."""
        return self.cluster.zone or self.region

    @property
    def access(self) -> Access:
        """Access to the API server, as set or by default."""
        creates_network = self.network.existing_network is None and self.cluster.existing is None
        return self.control_plane.access or (Access.DNS_IAM if creates_network else Access.PRIVATE)


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
    """Exporters of GPU metrics, and how Prometheus collects and records them."""

    machines: tuple[DescribedEc2Machine, ...] = ()
    """EC2 machines that are not in the catalog, for pools and the system pool."""

    pools: Annotated[tuple[EksPool, ...], Field(min_length=1)]
    """Pools of GPU machines."""

    @property
    def access(self) -> Access:
        """Access to the API server, as set or by default."""
        return self.control_plane.access or Access.PRIVATE

    @property
    def control_plane_zones(self) -> tuple[str, ...]:
        """Zones of the control plane's own addresses."""
        return self.network.control_plane_zones or self.zones[:CONTROL_PLANE_ZONES]

    @property
    def control_plane_cidrs(self) -> tuple[str, ...]:
        """Ranges of the control plane's own addresses, one for each of its zones."""
        return self.network.control_plane_cidrs or tuple(control_plane_ranges(self.network.vpc_cidr, len(self.control_plane_zones)))

    @property
    def interface_services(self) -> list[str]:
        """AWS services that get an interface endpoint. An existing VPC gets none."""
        wanted = self.network.interface_endpoints
        if self.network.existing_vpc is not None or not (is_production(self.environment) if wanted is None else wanted):
            return []
        return default_services(self.region)


MODELS: dict[Platform, type[PlatformSettings]] = {Platform.LOCAL: LocalSettings, Platform.GKE: GkeSettings, Platform.EKS: EksSettings}
"""The model of each platform's settings."""
