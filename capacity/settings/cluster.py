"""The cluster itself: its version, its system nodes, how it is protected."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from capacity.catalog.data_files import Record
from capacity.values.names import AMI_ALIAS, DOMAIN, EKS_CLUSTER, EKS_VERSION, GKE_VERSION, IAM_ROLE, TIME_OF_DAY, Name


class SystemPool(Record):
    """The nodes of the controllers, without GPUs and never Spot. `machine` is a name of the catalog; ceilings are in nodes."""

    machine: str
    min_nodes: Annotated[int, Field(ge=1, le=100)] = 2
    max_nodes: Annotated[int, Field(ge=1, le=100)] = 4

    @model_validator(mode="after")
    def _room_between(self) -> Self:
        if self.min_nodes > self.max_nodes:
            raise ValueError("min_nodes is above max_nodes")
        return self


class Maintenance(Record):
    """When GKE may upgrade: every day from `start_utc` for `hours` (4 to 24)."""

    start_utc: Annotated[str, Field(pattern=TIME_OF_DAY)] = "02:00"
    hours: Annotated[int, Field(ge=4, le=24)] = 4


class OtherWork(Record):
    """Room for work without GPUs, which the autoscaler makes nodes for (node auto-provisioning, Karpenter): its ceiling in all."""

    max_vcpu: Annotated[int, Field(ge=0, le=10_000)] = 64
    max_memory_gib: Annotated[int, Field(ge=0, le=40_000)] = 256


class GkeMode(StrEnum):
    """STANDARD has node pools of ours. On AUTOPILOT all nodes are GKE's, and a pool is a shape that pods may ask for.

    On AUTOPILOT only Kueue, ResourceQuota and project quota cap spend.
    """

    STANDARD = "standard"
    AUTOPILOT = "autopilot"


class ReleaseChannel(StrEnum):
    """GKE's release channels, as GKE means them."""

    RAPID = "rapid"
    REGULAR = "regular"
    STABLE = "stable"


class GkeCluster(Record):
    """A GKE cluster. `name`: default is the environment's. `deletion_protection`: default is true in production alone.

    `min_version` is the least control-plane version, `1.35.0-gke.1171000` or `1.35`; default: what the channel gives.
    `groups_domain` is the Google Workspace domain whose groups teams name as submitters and viewers; default: Kubernetes knows no group.
    With `mode: autopilot`, `system_pool` and `other_work` are not used. `existing` names a cluster of the project and region that is there
    already; then of the other fields `mode` alone is used.
    """

    name: Name | None = None
    mode: GkeMode = GkeMode.STANDARD
    release_channel: ReleaseChannel = ReleaseChannel.REGULAR
    min_version: Annotated[str, Field(pattern=GKE_VERSION)] | None = None
    deletion_protection: bool | None = None
    system_pool: SystemPool = SystemPool(machine="e2-standard-4")
    maintenance: Maintenance = Maintenance()
    other_work: OtherWork = OtherWork()
    groups_domain: Annotated[str, Field(pattern=DOMAIN)] | None = None
    existing: Name | None = None


class Support(StrEnum):
    """How long AWS supports the cluster's version. EXTENDED costs six times as much an hour once STANDARD has ended."""

    STANDARD = "standard"
    EXTENDED = "extended"


LogDays = Literal[1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653]
"""The periods for which CloudWatch keeps logs. https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutRetentionPolicy.html"""


class EksCluster(Record):
    """An EKS cluster. `name`, `deletion_protection`, `existing`: as for GKE.

    `version` is the Kubernetes version. `ami` is a pinned alias, `al2023@v20250807` or `bottlerocket@1.40.0`: with `@latest`
    every release of an AMI replaces the nodes, so it is refused in production. `admin_roles` are the roles of IAM that administer it;
    default: whoever deploys it first. `log_days` is how long the control plane's logs are kept, of the periods that CloudWatch has.
    `create_spot_role` makes the account's role for Spot instances, which one stack of an account may do, if nobody has.
    """

    name: Annotated[str, Field(pattern=EKS_CLUSTER)] | None = None
    version: Annotated[str, Field(pattern=EKS_VERSION)]
    ami: Annotated[str, Field(pattern=AMI_ALIAS)]
    support: Support = Support.STANDARD
    deletion_protection: bool | None = None
    system_pool: SystemPool = SystemPool(machine="m6i.large")
    other_work: OtherWork = OtherWork()
    admin_roles: tuple[Annotated[str, Field(pattern=IAM_ROLE)], ...] = ()
    log_days: LogDays = 90
    create_spot_role: bool = False
    existing: Annotated[str, Field(pattern=EKS_CLUSTER)] | None = None
