"""The cluster itself: its version, its system nodes, how it is protected."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, ValidationError, model_validator

from capacity.catalog.data_files import DescribedRecord
from capacity.catalog.machines import Confidential
from capacity.catalog.versions import Addon
from capacity.settings.eks_nodes import EksNodes
from capacity.settings.gke_security import GkeSecurity
from capacity.settings.maintenance import Maintenance
from capacity.settings.pools import EksNodeDisk
from capacity.values.names import (
    ADDON_VERSION_OR_DEFAULT,
    AMI_ALIAS,
    AWS_KEY,
    DEPLOYMENT,
    DOMAIN,
    EKS_CLUSTER,
    EKS_VERSION,
    GKE_VERSION,
    IAM_ROLE,
    IAM_ROLE_NAME,
    Name,
    Zone,
)


class SystemPool(DescribedRecord):
    """The nodes of the controllers, without GPUs and never Spot."""

    machine: str
    """A machine of the catalog, without GPUs; on EKS with x86 processors."""

    min_nodes: Annotated[int, Field(ge=1, le=100)] = 2
    """Nodes that are always there."""

    max_nodes: Annotated[int, Field(ge=1, le=100)] = 4
    """Ceiling in nodes."""

    @model_validator(mode="after")
    def _room_between(self) -> Self:
        if self.min_nodes > self.max_nodes:
            raise ValueError("min_nodes is above max_nodes")
        return self


class GkeSystemPool(SystemPool):
    """The nodes of the controllers on GKE."""

    confidential_nodes: Confidential | None = None
    """How the memory of these nodes is encrypted: `sev`, `sev_snp` or `tdx`, of machines that have it. Default: not by the processor."""


class OtherWork(DescribedRecord):
    """Room for work without GPUs, which the autoscaler makes nodes for: node auto-provisioning on GKE, Karpenter on EKS.

    Three quarters are the teams', in queues called `cpu`. On Autopilot, and on a cluster of GKE's that is there already, it bounds these
    alone.
    """

    max_vcpu: Annotated[int, Field(ge=0, le=10_000)] = 64
    """Ceiling in vCPU, of all such nodes."""

    max_memory_gib: Annotated[int, Field(ge=0, le=40_000)] = 256
    """Ceiling in memory in GiB, of all such nodes."""


class EksOtherWork(EksNodeDisk, OtherWork):
    """Room for work without GPUs on EKS, with the volume of each of its nodes."""


class GkeMode(StrEnum):
    """STANDARD has node pools of ours. On AUTOPILOT all nodes are GKE's, and a pool is a shape that pods may ask for.

    On AUTOPILOT only Kueue, ResourceQuota and project quota cap spend.
    """

    STANDARD = "standard"
    AUTOPILOT = "autopilot"


class TeamIdentity(StrEnum):
    """What a team's pods are in Google Cloud. SERVICE_ACCOUNT is an account of IAM for each team, which its pods act as. With DIRECT the
    Kubernetes service account is granted its roles itself, by its principal:// identifier.
    """

    SERVICE_ACCOUNT = "service_account"
    DIRECT = "direct"


class ReleaseChannel(StrEnum):
    """GKE's release channels, as GKE means them."""

    RAPID = "rapid"
    REGULAR = "regular"
    STABLE = "stable"
    EXTENDED = "extended"


class GkeCluster(DescribedRecord):
    """A GKE cluster. With `mode: autopilot`, `system_pool` is not used, and `other_work` bounds queues alone."""

    name: Name | None = None
    """The cluster's name; default: the environment's."""

    mode: GkeMode = GkeMode.STANDARD
    """`standard` has node pools of ours; on `autopilot` all nodes are GKE's, and a pool is a shape that pods may ask for."""

    release_channel: ReleaseChannel = ReleaseChannel.REGULAR
    """The channel from which GKE upgrades the cluster. `extended` keeps a minor version for 24 months, the last ten for a fee that is
    not in the plan's figures."""

    min_version: Annotated[str, Field(pattern=GKE_VERSION)] | None = None
    """The version that the control plane begins with, in quotes, and that it is never below: "1.35" is the newest release of 1.35 that the
    channel has. A whole one, such as 1.35.0-gke.1171000, is on offer for some weeks. Default: what the channel gives."""

    deletion_protection: bool | None = None
    """Whether the cluster cannot be destroyed until this is false; default: true in production alone."""

    system_pool: GkeSystemPool = GkeSystemPool(machine="e2-standard-4")
    """The nodes of the controllers."""

    security: GkeSecurity = GkeSecurity()
    """What secures the cluster beyond its defaults."""

    maintenance: Maintenance = Maintenance()
    """When GKE may upgrade."""

    other_work: OtherWork = OtherWork()
    """Room for work without GPUs."""

    gpu_auto_provisioning: bool = True
    """Whether GKE may make nodes with the pools' kinds of GPUs by itself too, up to the pools' ceilings together: for pods that ask for
    GPUs and select no pool, at on-demand prices. Without it GPUs come from pools alone. A cluster that was made with limits of GPUs
    probably keeps them."""

    former_accelerators: tuple[str, ...] = ()
    """GKE's names of GPUs, such as nvidia-l4, whose last pool has left the file: GKE is said to keep a limit of node
    auto-provisioning that a cluster has once had. It stays at 1 GPU then, the least that there is, which GKE may still make by itself.
    One whose machines boot from Hyperdisk alone may have pools: its limit is then theirs, as clusters of before have it. Default: none."""

    groups_domain: Annotated[str, Field(pattern=DOMAIN)] | None = None
    """The Google Workspace domain whose groups teams name as submitters and viewers; default: Kubernetes knows no group."""

    team_identity: TeamIdentity = TeamIdentity.SERVICE_ACCOUNT
    """What a team's pods are in Google Cloud: a `service_account` for each team, which they act as, or `direct`, without one: roles are
    granted to the team's Kubernetes service account itself. A project has 100 service accounts unless Google raises its quota; without an
    account nothing can sign URLs."""

    existing: Name | None = None
    """A cluster of the project and region that is there already, by name; of the other fields `zone`, `mode`, `team_identity` and
    `security.boot_disk_kms_key`, which is of the pools' nodes too, are then used, and what nothing reads is told. Default: one is made."""

    zone: Zone | None = None
    """The zone of the control plane of `existing`, where it is a zonal cluster: pools may have nodes in all of `zones` even so, and their
    ceilings stay those of the whole pool. Default: `existing` is regional."""


class Support(StrEnum):
    """How long AWS supports the cluster's version. EXTENDED costs six times as much an hour once STANDARD has ended."""

    STANDARD = "standard"
    EXTENDED = "extended"


LogDays = Literal[1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653]
"""The periods for which CloudWatch keeps logs. https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutRetentionPolicy.html"""


class EksAddons(DescribedRecord):
    """What a cluster that is made gets besides what it cannot do without."""

    metrics_server: bool = True
    """Whether metrics-server is installed, which tells autoscalers of pods and `kubectl top` what pods use; false where something else
    does."""


class ExistingKarpenter(DescribedRecord):
    """A Karpenter that somebody else runs. Its queue of interruptions, its version and its feature gates are its owner's."""

    node_role: Annotated[str, Field(pattern=IAM_ROLE_NAME)]
    """The role of the nodes that it launches, by name: one that its own role may pass, and that has its access entry (or its line in
    aws-auth) already."""

    deployment: Annotated[str, Field(pattern=DEPLOYMENT)] = "kube-system/karpenter"
    """The Deployment of its controller, with its namespace, which a preview reads."""


class EksMode(StrEnum):
    """STANDARD has a Karpenter, system nodes and add-ons of ours. In AUTO, EKS's Auto Mode, AWS runs all of these for a fee on each node.

    In AUTO pools are NodePools all the same, with their ceilings; AWS chooses the nodes' image, and ends every node after 21 days at most.
    """

    STANDARD = "standard"
    AUTO = "auto"


class EksCluster(DescribedRecord):
    """An EKS cluster. With `mode: auto`, AWS runs Karpenter and chooses the nodes' image, and what is said of either is refused."""

    # For editors what the validator below says: only in Auto Mode nobody names an image.
    model_config = ConfigDict(
        json_schema_extra={"anyOf": [{"required": ["ami"]}, {"required": ["mode"], "properties": {"mode": {"const": "auto"}}}]}
    )

    name: Annotated[str, Field(pattern=EKS_CLUSTER)] | None = None
    """The cluster's name; default: the environment's."""

    mode: EksMode = EksMode.STANDARD
    """`standard` has a Karpenter, system nodes and add-ons of ours; `auto` is EKS Auto Mode, in which AWS runs them for a fee on each node.
    A cluster keeps the mode that it was made with."""

    version: Annotated[str, Field(pattern=EKS_VERSION)]
    """The version of Kubernetes, in quotes, such as "1.35"."""

    ami: Annotated[str, Field(pattern=AMI_ALIAS)] | None = None
    """The nodes' image, a pinned alias such as al2023@v20260903 or bottlerocket@1.65.0, of a release with images for `version`: with
    `@latest` every release of an AMI replaces the nodes, so it is refused in production. The system nodes have the same release, where
    EKS's name for it is known. Needed with `mode: standard`. Default: AWS's own choice, with `mode: auto` alone."""

    addon_versions: dict[Addon, Annotated[str, Field(pattern=ADDON_VERSION_OR_DEFAULT)]] = Field(default_factory=dict)
    """Versions of EKS's add-ons by name, such as `vpc-cni: v1.22.4-eksbuild.3`; `recommended` for AWS's own for `version`, which each `up`
    asks of AWS, so that an upgrade of the cluster takes the add-on with it; or `default` for EKS's own on the day an add-on is made,
    which no later `up` changes. Default: the version that AWS lists for `version`, where it is known (`flexspot versions list`), and EKS's
    own of all others."""

    images_file: str | None = None
    """A file of releases of the nodes' image, beside the stack file, that are known besides the shipped ones; `flexspot images refresh`
    writes it. Default: none."""

    support: Support = Support.STANDARD
    """How long AWS supports the version; `extended` costs six times as much an hour once standard support has ended."""

    deletion_protection: bool | None = None
    """Whether the cluster cannot be destroyed until this is false; default: true in production alone."""

    system_pool: SystemPool = SystemPool(machine="m6i.xlarge")
    """The nodes of the controllers. With `mode: auto` they come when a controller needs one, and `min_nodes` is not used."""

    other_work: EksOtherWork = EksOtherWork()
    """Room for work without GPUs, Spot before on-demand."""

    addons: EksAddons = EksAddons()
    """What the cluster gets besides what it cannot do without."""

    nodes: EksNodes = EksNodes()
    """How the nodes that Karpenter launches boot."""

    node_repair: bool = True
    """Whether a node is replaced that the monitoring agent, or the node itself, reports as broken for ten to thirty minutes, a GPU among
    its reasons: by Karpenter in pools, by EKS where the controllers run. Karpenter does so by force, whatever runs there, and for a
    fifth of a pool's nodes at most."""

    admin_roles: tuple[Annotated[str, Field(pattern=IAM_ROLE)], ...] = ()
    """ARNs of IAM roles that administer the cluster; default: whoever deploys it first."""

    log_days: LogDays = 90
    """For how many days the control plane's logs are kept, of the periods that CloudWatch has."""

    logs_kms_key: Annotated[str, Field(pattern=AWS_KEY)] | None = None
    """ARN of the KMS key that encrypts the control plane's logs; its policy must let logs.REGION.amazonaws.com use it. Default:
    CloudWatch's own."""

    existing: Annotated[str, Field(pattern=EKS_CLUSTER)] | None = None
    """A cluster of the account and region that is there already, by name; of the other fields `ami`, `images_file`, `other_work`,
    `nodes`, `node_repair` and the next two are then used, and what nothing reads is told. Its version is read; `version` is what
    `flexspot images` looks for releases for. Default: one is made."""

    existing_karpenter: ExistingKarpenter | None = None
    """The Karpenter of `existing`, which pools then use. Default: one is installed."""

    existing_gpu_operator: bool = False
    """Whether NVIDIA's GPU operator is on the cluster, or somebody will install it: its device plugin and DCGM exporter take the place of
    ours. Of `existing` a preview reads whether it has both, and tolerates the pools' taints."""

    @model_validator(mode="after")
    def _somebody_chooses_the_image(self) -> Self:
        if self.mode is EksMode.STANDARD and self.ami is None:
            # As where every cluster needs one: the place of the error is the setting that is missing.
            raise ValidationError.from_exception_data(type(self).__name__, [{"type": "missing", "loc": ("ami",), "input": {}}])
        return self

    @property
    def image(self) -> str:
        """The alias of the nodes' image. Raises ValueError with `mode: auto`, where AWS chooses it."""
        if self.ami is None:
            raise ValueError("in Auto Mode AWS chooses the nodes' image; ask for none")
        return self.ami

    @property
    def has_own_image(self) -> bool:
        """Whether the nodes' image is chosen here."""
        return self.ami is not None
