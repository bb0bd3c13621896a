"""The settings of one stack: a model for each place where a platform runs."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from capacity.catalog.data_files import DescribedRecord
from capacity.catalog.platform import Platform, default_services
from capacity.settings.aws import AwsTags, Iam
from capacity.settings.cluster import EksCluster, GkeCluster
from capacity.settings.controllers import Controllers, EksControllers
from capacity.settings.machines import DescribedEc2Machine, DescribedGkeMachine
from capacity.settings.network import CONTROL_PLANE_ZONES, Access, ControlPlane, EksNetwork, GkeNetwork, control_plane_ranges
from capacity.settings.pools import EksPool, GkePool, LocalPool, PoolSettings
from capacity.settings.spending import Budget, EksMeasurement, GkeMeasurement, GpuQuota, Observability
from capacity.settings.storage import EksStorage, GkeStorage
from capacity.settings.teams import Admission, ClassSettings, CohortSettings, Queueing, TeamSettings
from capacity.values.names import AWS_ACCOUNT, AWS_REGION, GCP_PROJECT, GCP_REGION, Name, Zone, is_production

Zones = Annotated[tuple[Zone, ...], Field(min_length=1)]


class ZoneMachines(StrEnum):
    """What is done about a zone or region that does not offer a pool's machine as far as the catalog knows.

    CHECKED: it is refused, or warned of where a zone's name means another zone in each account (the oldest regions of AWS). UNCHECKED:
    nothing.
    """

    CHECKED = "checked"
    UNCHECKED = "unchecked"


class PlatformSettings(DescribedRecord):
    """The value of `flexspot:platform` in a stack file: what every platform has."""

    cloud: Platform
    """Where the platform runs."""

    environment: Name
    """The environment, on every resource."""

    owner: Name
    """Who answers for it, on every resource."""

    cohort: Name = "platform"
    """The root of the cohort tree."""

    cohorts: tuple[CohortSettings, ...] = ()
    """Departments or other groups of teams."""

    pools: Annotated[tuple[PoolSettings, ...], Field(min_length=1)]
    """Pools of GPU machines."""

    classes: dict[Name, ClassSettings] = Field(default_factory=dict)
    """Workload classes: fields of shipped ones that are different here, and classes of one's own, by name."""

    teams: Annotated[tuple[TeamSettings, ...], Field(min_length=1)]
    """Teams, and what is theirs."""

    queueing: Queueing = Queueing()
    """The queues as a whole."""

    admission: Admission = Admission()
    """What the API server itself refuses, or warns of."""

    budget: Budget | None = None
    """What the environment may spend; default: no budget."""

    prices_file: str | None = None
    """A file of one's own prices, beside the stack file, that go before the shipped ones; default: none."""

    observability: Observability = Observability()
    """The thresholds at which alerts fire."""

    @property
    def ownership(self) -> dict[str, str]:
        """Whose everything is. A key here reaches objects and nodes as a label, and what the cloud bills as its tag."""
        return {"environment": self.environment, "owner": self.owner}


class LocalSettings(PlatformSettings):
    """A platform on the local control plane. Its fake nodes are those of EKS in us-east-1."""

    cloud: Literal[Platform.LOCAL]
    """The local control plane."""

    pools: Annotated[tuple[LocalPool, ...], Field(min_length=1)]
    """Pools of GPU machines."""


class GkeSettings(PlatformSettings):
    """A platform on GKE."""

    cloud: Literal[Platform.GKE]
    """Google Kubernetes Engine."""

    project: Annotated[str, Field(pattern=GCP_PROJECT)]
    """The id of the Google Cloud project."""

    region: Annotated[str, Field(pattern=GCP_REGION)]
    """The region, such as us-central1."""

    zones: Zones
    """Zones of the region in which nodes may start, in the cloud's own names."""

    zone_machines: ZoneMachines = ZoneMachines.CHECKED
    """Whether zones without a pool's machine are told: `checked` by what the catalog knows, or `unchecked`, for what is newer than that."""

    network: GkeNetwork = GkeNetwork()
    """The cluster's network."""

    control_plane: ControlPlane = ControlPlane()
    """Who reaches the API server, and from where."""

    cluster: GkeCluster = GkeCluster()
    """The cluster."""

    controllers: Controllers = Controllers()
    """How large the platform's own controllers are, and which version of each."""

    storage: GkeStorage = GkeStorage()
    """The platform's buckets."""

    measurement: GkeMeasurement = GkeMeasurement()
    """What tells Prometheus of GPUs, and what it records."""

    machines: tuple[DescribedGkeMachine, ...] = ()
    """Machines of Compute Engine that the catalog does not know, for pools and the system pool."""

    pools: Annotated[tuple[GkePool, ...], Field(min_length=1)]
    """Pools of GPU machines."""

    gpu_quotas: dict[str, GpuQuota] = Field(default_factory=dict)
    """GPUs that the project may use in the region, by accelerator; ceilings above them are refused."""

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
    """Tags of one's own on everything in AWS that takes tags, machines and volumes among them, beside those that the platform sets: a
    change is drift, and replaces Karpenter's nodes as their pools allow. Default: none."""

    iam: Iam = Iam()
    """Where the stack's IAM roles are, and what bounds them."""

    account: Annotated[str, Field(pattern=AWS_ACCOUNT)]
    """The number of the AWS account, 12 digits in quotes: with credentials of another one nothing is deployed."""

    region: Annotated[str, Field(pattern=AWS_REGION)]
    """The region, such as us-east-1."""

    zones: Zones
    """Zones of the region in which nodes may start: all by name, such as us-east-1a, or all by id, such as use1-az1. In the oldest regions
    a name is another zone in each account, and an id is not."""

    zone_machines: ZoneMachines = ZoneMachines.CHECKED
    """Whether zones without a pool's machine are told: `checked` by what the catalog knows, or `unchecked`, for what is newer than that."""

    network: EksNetwork = EksNetwork()
    """The cluster's network."""

    control_plane: ControlPlane = ControlPlane()
    """Who reaches the API server, and from where."""

    cluster: EksCluster
    """The cluster."""

    controllers: EksControllers = EksControllers()
    """How large the platform's own controllers are, and which version of each."""

    storage: EksStorage = EksStorage()
    """The platform's buckets."""

    measurement: EksMeasurement = EksMeasurement()
    """What tells Prometheus of GPUs, and what it records."""

    machines: tuple[DescribedEc2Machine, ...] = ()
    """Machines of EC2 that the catalog does not know, for pools and the system pool."""

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
