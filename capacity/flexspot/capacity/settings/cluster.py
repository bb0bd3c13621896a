"""Settings of the cluster: version, system nodes, node boot settings, protection and existing parts."""

from __future__ import annotations

import tomllib
from enum import StrEnum
from typing import Annotated, Any, Literal, Self, cast

import yaml
from pydantic import ConfigDict, Field, ValidationError, model_validator

from flexspot.capacity.catalog.data_files import DescribedRecord
from flexspot.capacity.catalog.machines import Confidential
from flexspot.capacity.catalog.versions import Addon
from flexspot.capacity.settings.gke_security import GkeSecurity
from flexspot.capacity.settings.maintenance import Maintenance
from flexspot.capacity.settings.pools import EksNodeDisk
from flexspot.capacity.values.names import (
    ADDON_VERSION_OR_DEFAULT,
    AMI_ALIAS,
    AWS_KEY,
    DEPLOYMENT,
    DOMAIN,
    DURATION,
    EKS_CLUSTER,
    EKS_VERSION,
    EVICTION_THRESHOLD,
    GKE_VERSION,
    IAM_ROLE,
    IAM_ROLE_NAME,
    KUBELET_QUANTITY,
    Name,
    Zone,
)


class Reserved(StrEnum):
    """Resources that the kubelet can reserve."""

    CPU = "cpu"
    MEMORY = "memory"
    EPHEMERAL_STORAGE = "ephemeral-storage"
    PID = "pid"


class EvictionSignal(StrEnum):
    """Kubelet eviction signals; the EC2NodeClass CRD accepts no others."""

    MEMORY_AVAILABLE = "memory.available"
    NODEFS_AVAILABLE = "nodefs.available"
    NODEFS_INODES_FREE = "nodefs.inodesFree"
    IMAGEFS_AVAILABLE = "imagefs.available"
    IMAGEFS_INODES_FREE = "imagefs.inodesFree"
    PID_AVAILABLE = "pid.available"


Quantities = dict[Reserved, Annotated[str, Field(pattern=KUBELET_QUANTITY)]]
Thresholds = dict[EvictionSignal, Annotated[str, Field(pattern=EVICTION_THRESHOLD)]]
Periods = dict[EvictionSignal, Annotated[str, Field(pattern=DURATION)]]
Percent = Annotated[int, Field(ge=0, le=100)]


class Kubelet(DescribedRecord):
    """Kubelet settings: the fields of the EC2NodeClass CRD v1.14.1. A field that is left out keeps the image's value."""

    max_pods: Annotated[int, Field(ge=10, le=1000)] | None = None
    """Maximum pods per node. Default: as many as its network interfaces have addresses for."""

    pods_per_core: Annotated[int, Field(ge=1, le=100)] | None = None
    """Maximum pods per vCPU, only on AL2023. Default: no limit."""

    kube_reserved: Quantities = Field(default_factory=dict)
    """Resources reserved for the kubelet and the container runtime, such as `cpu: 200m`. Default: what the image computes."""

    system_reserved: Quantities = Field(default_factory=dict)
    """Resources reserved for system processes. Default: none."""

    eviction_hard: Thresholds = Field(default_factory=dict)
    """Hard eviction thresholds by signal, as an amount or a percentage, such as `memory.available: 5%`; below one, pods are evicted at
    once. Default: the image's own."""

    eviction_soft: Thresholds = Field(default_factory=dict)
    """Soft eviction thresholds by signal, as an amount or a percentage; below one, pods are evicted after a grace period. Default: none."""

    eviction_soft_grace_period: Periods = Field(default_factory=dict)
    """The grace period of each signal in `eviction_soft`, such as `memory.available: 1m30s`. Default: none."""

    image_gc_high_threshold_percent: Percent | None = None
    """Disk usage in percent at which the kubelet starts to delete unused images. Default: the kubelet's, 85."""

    image_gc_low_threshold_percent: Percent | None = None
    """Disk usage in percent at which it stops deleting them. Default: the kubelet's, 80."""

    cpu_cfs_quota: bool | None = None
    """Enforcement of containers' CPU limits by the kubelet. Default: the kubelet's, true."""

    @model_validator(mode="after")
    def _eviction_and_thresholds_agree(self) -> Self:
        if set(self.eviction_soft) != set(self.eviction_soft_grace_period):
            raise ValueError("eviction_soft and eviction_soft_grace_period name different signals; set both for each signal")
        high, low = self.image_gc_high_threshold_percent, self.image_gc_low_threshold_percent
        if high is not None and low is not None and high <= low:
            raise ValueError("image_gc_high_threshold_percent must be above image_gc_low_threshold_percent")
        return self


FAST_IMAGE_PULL = """\
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  featureGates:
    FastImagePull: true
"""
"""NodeConfig that turns on the SOCI snapshotter's parallel pull (awslabs/amazon-eks-ami, nodeadm/doc/examples: experimental)."""

MOST_USER_DATA = 12_000
"""Maximum length of user data, in characters. EC2 accepts 16 KiB, which Karpenter's own part with the cluster's certificate shares."""


class EksNodes(DescribedRecord):
    """The nodes that Karpenter launches, with and without GPUs. A change causes drift: Karpenter replaces nodes as their pools allow."""

    kubelet: Kubelet = Kubelet()
    """Kubelet settings."""

    user_data: Annotated[str, Field(min_length=1, max_length=MOST_USER_DATA)] | None = None
    """User data, which Karpenter merges with its own. On AL2023: a nodeadm NodeConfig, a script that starts with #!, or a MIME archive
    of both. On Bottlerocket: TOML. Anyone who may describe instances can read it, so put no secrets in it. Default: none."""

    fast_image_pull: bool = False
    """Pull and unpack images in parallel with the SOCI snapshotter. Only on AL2023, where it is experimental; it needs fast disks.
    Cannot be combined with `user_data`: put `featureGates: {FastImagePull: true}` in its NodeConfig instead."""

    @model_validator(mode="after")
    def _fast_pull_has_no_user_data(self) -> Self:
        if self.fast_image_pull and self.user_data is not None:
            raise ValueError("fast_image_pull cannot be combined with user_data; set featureGates: {FastImagePull: true} there")
        return self

    @property
    def boot_data(self) -> str | None:
        """User data of the nodes."""
        return FAST_IMAGE_PULL if self.fast_image_pull else self.user_data


def user_data_problem(ami: str, user_data: str) -> str | None:
    """Return the problem of user data for the image family of an alias, or None if none is found.

    Karpenter parses user data in the same way (pkg/providers/amifamily/bootstrap, nodeadm.go and bottlerocket.go). It passes text that is
    neither a MIME archive nor a YAML mapping on as a script, and cloud-init runs no script without #!.
    """
    if ami.startswith("bottlerocket@"):
        try:
            return None if set(tomllib.loads(user_data)) <= {"settings"} else "has more than [settings], all that Bottlerocket reads"
        except tomllib.TOMLDecodeError as error:
            return f"is not TOML, which Bottlerocket reads: {error}"
    if user_data.lstrip().startswith(("MIME-Version:", "Content-Type:", "#!")):
        return None
    try:
        config = yaml.safe_load(user_data)
    except yaml.YAMLError:
        config = None
    if not isinstance(config, dict):
        return "is neither a NodeConfig, nor a script that begins with #!, nor a MIME archive"
    fields = cast("dict[str, Any]", config)
    if fields.get("kind") != "NodeConfig" or not str(fields.get("apiVersion")).startswith("node.eks.aws/"):
        return "is YAML, and not a NodeConfig of node.eks.aws"
    return None


class SystemPool(DescribedRecord):
    """The nodes for the controllers, without GPUs and never Spot."""

    machine: str
    """A machine from the catalog, without GPUs; on EKS with x86 processors."""

    min_nodes: Annotated[int, Field(ge=1, le=100)] = 2
    """Minimum number of nodes, which always run."""

    max_nodes: Annotated[int, Field(ge=1, le=100)] = 4
    """Maximum number of nodes."""

    @model_validator(mode="after")
    def _minimum_is_not_above_maximum(self) -> Self:
        if self.min_nodes > self.max_nodes:
            raise ValueError("min_nodes is above max_nodes")
        return self


class GkeSystemPool(SystemPool):
    """The nodes for the controllers on GKE."""

    confidential_nodes: Confidential | None = None
    """Memory encryption of these nodes: `sev`, `sev_snp` or `tdx`, on machines that support it. Default: no encryption by the processor."""


class OtherWork(DescribedRecord):
    """Limits for work without GPUs. The autoscaler creates its nodes: node auto-provisioning on GKE, Karpenter on EKS.

    Teams get three quarters of it, in queues named `cpu`. On Autopilot and on an existing GKE cluster, the limits apply only to these
    queues.
    """

    max_vcpu: Annotated[int, Field(ge=0, le=10_000)] = 64
    """Maximum vCPU of all these nodes together."""

    max_memory_gib: Annotated[int, Field(ge=0, le=40_000)] = 256
    """Maximum memory of all these nodes together, in GiB."""


class EksOtherWork(EksNodeDisk, OtherWork):
    """Limits for work without GPUs on EKS, and the volume of each of its nodes."""


class GkeMode(StrEnum):
    """Mode of a GKE cluster.

    With STANDARD the platform creates node pools. With AUTOPILOT GKE manages all nodes, and a pool is a node shape that pods may request.
    On AUTOPILOT only Kueue, ResourceQuota and project quota cap spend.
    """

    STANDARD = "standard"
    AUTOPILOT = "autopilot"


class TeamIdentity(StrEnum):
    """The identity of a team's pods in Google Cloud.

    With SERVICE_ACCOUNT each team has an IAM service account that its pods impersonate. With DIRECT roles are granted to the Kubernetes
    service account itself, by its principal:// identifier.
    """

    SERVICE_ACCOUNT = "service_account"
    DIRECT = "direct"


class ReleaseChannel(StrEnum):
    """Release channels of GKE."""

    RAPID = "rapid"
    REGULAR = "regular"
    STABLE = "stable"
    EXTENDED = "extended"


class GkeClusterSettings(DescribedRecord):
    """A GKE cluster. With `mode: autopilot`, `system_pool` is not used, and `other_work` limits only queues."""

    name: Name | None = None
    """The cluster's name. Default: the environment's name."""

    mode: GkeMode = GkeMode.STANDARD
    """`standard`: the platform creates node pools. `autopilot`: GKE manages all nodes, and a pool is a node shape that pods may request."""

    release_channel: ReleaseChannel = ReleaseChannel.REGULAR
    """The channel from which GKE upgrades the cluster. `extended` supports a minor version for 24 months; the last ten cost a fee that
    the plan's figures do not include."""

    min_version: Annotated[str, Field(pattern=GKE_VERSION)] | None = None
    """The initial and minimum version of the control plane, in quotes: "1.35" is the newest 1.35 release in the channel. A full version,
    such as 1.35.0-gke.1171000, is available only for some weeks. Default: the channel's version."""

    deletion_protection: bool | None = None
    """While this is true, the cluster cannot be destroyed. Default: true only in production."""

    system_pool: GkeSystemPool = GkeSystemPool(machine="e2-standard-4")
    """The nodes for the controllers."""

    security: GkeSecurity = GkeSecurity()
    """Security options beyond the cluster's defaults."""

    maintenance: Maintenance = Maintenance()
    """When GKE may upgrade."""

    other_work: OtherWork = OtherWork()
    """Limits for work without GPUs."""

    gpu_auto_provisioning: bool = True
    """Let GKE also provision nodes with the pools' GPU types by itself, up to the combined ceilings of the pools, for pods that request
    GPUs but select no pool, at on-demand prices. If false, GPUs come only from pools. A cluster created with GPU limits probably keeps
    them."""

    former_accelerators: tuple[str, ...] = ()
    """GPUs by GKE's name, such as nvidia-l4, whose last pool was removed from the file. GKE reportedly keeps a node auto-provisioning
    limit once a cluster has had one. List the GPU here, and its limit stays at 1 GPU, the minimum, which GKE may still provision by
    itself. A GPU whose machines boot only from Hyperdisk may still have pools: its limit is then that of its pools, as on clusters
    created by earlier releases. Default: none."""

    groups_domain: Annotated[str, Field(pattern=DOMAIN)] | None = None
    """The Google Workspace domain of the groups that teams name as submitters and viewers. Default: the cluster recognises no Google
    groups."""

    team_identity: TeamIdentity = TeamIdentity.SERVICE_ACCOUNT
    """The identity of a team's pods in Google Cloud. `service_account`: each team has an IAM service account that its pods impersonate.
    `direct`: roles are granted to the team's Kubernetes service account itself. A project has a quota of 100 service accounts unless
    Google raises it; without a service account pods cannot sign URLs."""

    existing: Name | None = None
    """Name of an existing cluster in the project and region. Of the other fields, only `zone`, `mode`, `team_identity` and
    `security.boot_disk_kms_key` (which also applies to the pools' nodes) are then used; settings that have no effect are reported.
    Default: a new cluster is created."""

    zone: Zone | None = None
    """The control plane's zone, if `existing` is a zonal cluster. Pools may still have nodes in all of `zones`, and their ceilings still
    apply to the whole pool. Default: `existing` is regional."""


class Support(StrEnum):
    """AWS support of the cluster's version. EXTENDED costs six times as much per hour once STANDARD has ended."""

    STANDARD = "standard"
    EXTENDED = "extended"


LogDays = Literal[1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653]
"""Retention periods of CloudWatch Logs, in days.
https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutRetentionPolicy.html"""


class EksAddons(DescribedRecord):
    """Optional add-ons of a cluster that the stack creates."""

    metrics_server: bool = True
    """Install metrics-server, which reports pods' resource usage to autoscalers and `kubectl top`. Set to false if something else
    provides these metrics."""


class ExistingKarpenterSettings(DescribedRecord):
    """A Karpenter that someone else operates. Its owner manages its interruption queue, version and feature gates."""

    node_role: Annotated[str, Field(pattern=IAM_ROLE_NAME)]
    """Name of the IAM role of the nodes that it launches. Karpenter's own role must be allowed to pass it, and it must already have an
    access entry (or a line in aws-auth)."""

    deployment: Annotated[str, Field(pattern=DEPLOYMENT)] = "kube-system/karpenter"
    """The Deployment of its controller, with namespace; a preview reads it."""


class EksMode(StrEnum):
    """Mode of an EKS cluster.

    With STANDARD the platform installs Karpenter, system nodes and add-ons. With AUTO, EKS Auto Mode, AWS runs all of these for a fee per
    node. With AUTO pools are still NodePools with their ceilings; AWS chooses the node image and ends every node after at most 21 days.
    """

    STANDARD = "standard"
    AUTO = "auto"


class EksClusterSettings(DescribedRecord):
    """An EKS cluster. With `mode: auto`, AWS runs Karpenter and chooses the node image, and settings for either are rejected."""

    # Lets editors check what the validator below checks: an image is required except in Auto Mode.
    model_config = ConfigDict(
        json_schema_extra={"anyOf": [{"required": ["ami"]}, {"required": ["mode"], "properties": {"mode": {"const": "auto"}}}]}
    )

    name: Annotated[str, Field(pattern=EKS_CLUSTER)] | None = None
    """The cluster's name. Default: the environment's name."""

    mode: EksMode = EksMode.STANDARD
    """`standard`: the platform installs Karpenter, system nodes and add-ons. `auto`: EKS Auto Mode, where AWS runs them for a fee per
    node. A cluster keeps the mode with which it was created."""

    version: Annotated[str, Field(pattern=EKS_VERSION)]
    """The Kubernetes version, in quotes, such as "1.35"."""

    ami: Annotated[str, Field(pattern=AMI_ALIAS)] | None = None
    """The node image: a pinned alias such as al2023@v20260903 or bottlerocket@1.65.0, of a release that has images for `version`.
    `@latest` is rejected in production, because every AMI release would replace the nodes. The system nodes use the same release if
    EKS's name for it is known. Required with `mode: standard`. Default: AWS chooses, only with `mode: auto`."""

    addon_versions: dict[Addon, Annotated[str, Field(pattern=ADDON_VERSION_OR_DEFAULT)]] = Field(default_factory=dict)
    """Versions of EKS add-ons by name, such as `vpc-cni: v1.22.4-eksbuild.3`. `recommended`: the version that AWS recommends for
    `version`, looked up at each `up`, so that upgrading the cluster also upgrades the add-on. `default`: EKS's default on the day the
    add-on is created; a later `up` does not change it. Default: the version that AWS lists for `version` if known (`flexspot versions
    list`), otherwise EKS's default."""

    images_file: str | None = None
    """A file in the stack file's folder that lists node image releases in addition to the shipped ones; `flexspot images refresh` writes
    it. Default: none."""

    support: Support = Support.STANDARD
    """AWS support of the version. `extended` costs six times as much per hour once standard support has ended."""

    deletion_protection: bool | None = None
    """While this is true, the cluster cannot be destroyed. Default: true only in production."""

    system_pool: SystemPool = SystemPool(machine="m6i.xlarge")
    """The nodes for the controllers. With `mode: auto` they are created when a controller needs one, and `min_nodes` is not used."""

    other_work: EksOtherWork = EksOtherWork()
    """Limits for work without GPUs, which uses Spot before on-demand."""

    addons: EksAddons = EksAddons()
    """Optional add-ons."""

    nodes: EksNodes = EksNodes()
    """Boot settings of the nodes that Karpenter launches."""

    node_repair: bool = True
    """Replace a node that the monitoring agent, or the node itself, has reported as broken (GPU faults included) for ten to thirty
    minutes. Karpenter replaces nodes of pools; EKS replaces the controllers' nodes. Karpenter does so forcibly, whatever runs on the
    node, and for at most a fifth of a pool's nodes."""

    admin_roles: tuple[Annotated[str, Field(pattern=IAM_ROLE)], ...] = ()
    """ARNs of the IAM roles that administer the cluster. Default: the identity that first deploys it."""

    log_days: LogDays = 90
    """Days to keep the control plane's logs; one of CloudWatch's retention periods."""

    logs_kms_key: Annotated[str, Field(pattern=AWS_KEY)] | None = None
    """ARN of the KMS key that encrypts the control plane's logs. Its key policy must allow logs.REGION.amazonaws.com to use it. Default:
    CloudWatch's own encryption."""

    existing: Annotated[str, Field(pattern=EKS_CLUSTER)] | None = None
    """Name of an existing cluster in the account and region. Of the other fields, only `ami`, `images_file`, `other_work`, `nodes`,
    `node_repair` and the next two are then used; settings that have no effect are reported. The Kubernetes version is read from the
    cluster; `version` only determines which releases `flexspot images` looks for. Default: a new cluster is created."""

    existing_karpenter: ExistingKarpenterSettings | None = None
    """The Karpenter of the `existing` cluster, which pools then use. Default: Karpenter is installed."""

    existing_gpu_operator: bool = False
    """True if NVIDIA's GPU operator is installed on the cluster, or will be. Its device plugin and DCGM exporter then replace the
    platform's. On an `existing` cluster, a preview checks that it has both and that it tolerates the pools' taints."""

    @model_validator(mode="after")
    def _image_is_set(self) -> Self:
        if self.mode is EksMode.STANDARD and self.ami is None:
            # A ValueError would be reported at the cluster; this error is reported at the missing setting.
            raise ValidationError.from_exception_data(type(self).__name__, [{"type": "missing", "loc": ("ami",), "input": {}}])
        return self

    @property
    def image(self) -> str:
        """Alias of the nodes' image. Raises ValueError with `mode: auto`, where AWS chooses it."""
        if self.ami is None:
            raise ValueError("in Auto Mode AWS chooses the nodes' image; do not read it")
        return self.ami

    @property
    def has_own_image(self) -> bool:
        """True if the settings choose the nodes' image."""
        return self.ami is not None
