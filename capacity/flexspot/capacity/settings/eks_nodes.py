"""How the nodes that Karpenter launches boot: their kubelet, their user data, and how they pull images."""

from __future__ import annotations

import tomllib
from enum import StrEnum
from typing import Annotated, Any, Self, cast

import yaml
from pydantic import Field, model_validator

from flexspot.capacity.catalog.data_files import DescribedRecord
from flexspot.capacity.values.names import DURATION, EVICTION_THRESHOLD, KUBELET_QUANTITY


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
    """Whether the kubelet enforces containers' CPU limits. Default: it does."""

    @model_validator(mode="after")
    def _pairs(self) -> Self:
        if set(self.eviction_soft) != set(self.eviction_soft_grace_period):
            raise ValueError("eviction_soft and eviction_soft_grace_period name other signals; give each signal both")
        high, low = self.image_gc_high_threshold_percent, self.image_gc_low_threshold_percent
        if high is not None and low is not None and high <= low:
            raise ValueError("image_gc_high_threshold_percent is not above image_gc_low_threshold_percent")
        return self


FAST_IMAGE_PULL = """\
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  featureGates:
    FastImagePull: true
"""
"""nodeadm's switch for the SOCI snapshotter's parallel pull (awslabs/amazon-eks-ami, nodeadm/doc/examples: experimental)."""

MOST_USER_DATA = 12_000
"""Characters. EC2 takes 16 KiB, in which Karpenter's own part has the cluster's certificate."""


class EksNodes(DescribedRecord):
    """The nodes that Karpenter launches, with and without GPUs. A change causes drift: Karpenter replaces nodes as their pools allow."""

    kubelet: Kubelet = Kubelet()
    """Kubelet settings."""

    user_data: Annotated[str, Field(min_length=1, max_length=MOST_USER_DATA)] | None = None
    """User data, which Karpenter merges with its own. On AL2023: a nodeadm NodeConfig, a script that starts with #!, or a MIME archive
    of both. On Bottlerocket: TOML. Anyone who may describe instances can read it, so put no secrets in it. Default: none."""

    fast_image_pull: bool = False
    """Whether the SOCI snapshotter pulls and unpacks images in parallel. Only on AL2023, where it is experimental; it needs fast disks.
    Cannot be combined with `user_data`: put `featureGates: {FastImagePull: true}` in its NodeConfig instead."""

    @model_validator(mode="after")
    def _one_user_data(self) -> Self:
        if self.fast_image_pull and self.user_data is not None:
            raise ValueError("fast_image_pull does not go with user_data; write featureGates: {FastImagePull: true} into its NodeConfig")
        return self

    @property
    def boot_data(self) -> str | None:
        """The user data that nodes get."""
        return FAST_IMAGE_PULL if self.fast_image_pull else self.user_data


def user_data_problem(ami: str, user_data: str) -> str | None:
    """What is wrong with user data for the family of an image's alias; None: nothing that can be seen.

    Karpenter takes it apart in the same way (pkg/providers/amifamily/bootstrap, nodeadm.go and bottlerocket.go): what is no MIME archive
    and no map of YAML it hands over as a script, and cloud-init runs none without #!.
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
