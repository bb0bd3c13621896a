"""The settings of one stack: a model for each place where a platform runs."""

# A record is frozen, so what narrows a field of its parent is safe; the checker does not know that of pydantic's models.
# pyright: reportIncompatibleVariableOverride=false

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from capacity.catalog.data_files import Record
from capacity.catalog.platform import Platform
from capacity.settings.cluster import EksCluster, GkeCluster
from capacity.settings.network import ControlPlane, EksNetwork, GkeNetwork
from capacity.settings.pools import EksPool, GkePool, LocalPool, PoolSettings
from capacity.settings.queueing import Admission, ClassSettings, Queueing
from capacity.settings.spending import Budget, EksMeasurement, GkeMeasurement, GpuQuota, Observability
from capacity.settings.storage import EksStorage, GkeStorage
from capacity.settings.teams import CohortSettings, TeamSettings
from capacity.values.names import AWS_ACCOUNT, AWS_REGION, GCP_PROJECT, GCP_REGION, Name, Zone

Zones = Annotated[tuple[Zone, ...], Field(min_length=1)]


class PlatformSettings(Record):
    """The value of `flexspot:platform` in a stack file: what every platform has.

    `environment` and `owner` are on every resource. `cohort` is the root of the cohort tree. `classes` changes or adds workload classes.
    `prices_file` is a file of one's own prices, beside the stack file, that go before the shipped ones.
    """

    cloud: Platform
    environment: Name
    owner: Name
    cohort: Name = "platform"
    cohorts: tuple[CohortSettings, ...] = ()
    pools: Annotated[tuple[PoolSettings, ...], Field(min_length=1)]
    classes: dict[Name, ClassSettings] = Field(default_factory=dict)
    teams: Annotated[tuple[TeamSettings, ...], Field(min_length=1)]
    queueing: Queueing = Queueing()
    admission: Admission = Admission()
    budget: Budget | None = None
    prices_file: str | None = None
    observability: Observability = Observability()


class LocalSettings(PlatformSettings):
    """A platform on the local control plane. Its fake nodes are those of EKS in us-east-1."""

    cloud: Literal[Platform.LOCAL]
    pools: Annotated[tuple[LocalPool, ...], Field(min_length=1)]


class GkeSettings(PlatformSettings):
    """A platform on GKE. `project` is the project's id. `gpu_quotas` are what the project may use in the region, by accelerator."""

    cloud: Literal[Platform.GKE]
    project: Annotated[str, Field(pattern=GCP_PROJECT)]
    region: Annotated[str, Field(pattern=GCP_REGION)]
    zones: Zones
    network: GkeNetwork = GkeNetwork()
    control_plane: ControlPlane = ControlPlane()
    cluster: GkeCluster = GkeCluster()
    storage: GkeStorage = GkeStorage()
    measurement: GkeMeasurement = GkeMeasurement()
    pools: Annotated[tuple[GkePool, ...], Field(min_length=1)]
    gpu_quotas: dict[str, GpuQuota] = Field(default_factory=dict)


class EksSettings(PlatformSettings):
    """A platform on EKS. `account` is the number of the AWS account: with credentials of another one nothing is deployed."""

    cloud: Literal[Platform.EKS]
    account: Annotated[str, Field(pattern=AWS_ACCOUNT)]
    region: Annotated[str, Field(pattern=AWS_REGION)]
    zones: Zones
    network: EksNetwork = EksNetwork()
    control_plane: ControlPlane = ControlPlane()
    cluster: EksCluster
    storage: EksStorage = EksStorage()
    measurement: EksMeasurement = EksMeasurement()
    pools: Annotated[tuple[EksPool, ...], Field(min_length=1)]


MODELS: dict[Platform, type[PlatformSettings]] = {Platform.LOCAL: LocalSettings, Platform.GKE: GkeSettings, Platform.EKS: EksSettings}
"""The model of each platform's settings."""
