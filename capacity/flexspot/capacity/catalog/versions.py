"""Compatible versions: a cluster's Kubernetes, EKS's add-ons, and the charts of the platform's controllers."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator

from flexspot.capacity.catalog.data_files import Record, Source, SourcedFile, read_records
from flexspot.capacity.values.names import ADDON_VERSION, CHART_VERSION, EKS_VERSION, GKE_VERSION


class Addon(StrEnum):
    """The EKS add-ons that the platform installs, by EKS name."""

    POD_IDENTITY_AGENT = "eks-pod-identity-agent"
    KUBE_PROXY = "kube-proxy"
    VPC_CNI = "vpc-cni"
    COREDNS = "coredns"
    EBS_DRIVER = "aws-ebs-csi-driver"
    S3_DRIVER = "aws-mountpoint-s3-csi-driver"
    EFS_DRIVER = "aws-efs-csi-driver"
    LUSTRE_DRIVER = "aws-fsx-csi-driver"
    NODE_MONITORING = "eks-node-monitoring-agent"
    METRICS_SERVER = "metrics-server"


RECOMMENDED = "recommended"
"""Version in settings for AWS's default for the cluster's Kubernetes, looked up at each `up`."""

PROPOSED_KUBERNETES = "1.35"
"""Kubernetes version in a new stack file: from init, and from import if the cluster does not report one."""

BEFORE_NODES = (Addon.POD_IDENTITY_AGENT, Addon.KUBE_PROXY, Addon.VPC_CNI)
"""Add-ons that nodes need to become ready. All others wait for a node to run on."""


class Chart(StrEnum):
    """The charts of the platform's own controllers, by their names."""

    KUEUE = "kueue"
    JOBSET = "jobset"
    KARPENTER = "karpenter"
    NVIDIA_DEVICE_PLUGIN = "nvidia-device-plugin"
    NEURON_DEVICE_PLUGIN = "neuron-helm-chart"
    EFA_DEVICE_PLUGIN = "aws-efa-k8s-device-plugin"
    LOAD_BALANCER_CONTROLLER = "aws-load-balancer-controller"
    DCGM_EXPORTER = "dcgm-exporter"


KubernetesVersion = Annotated[str, Field(pattern=EKS_VERSION)]


class AddonRow(Record):
    """A version of an add-on for a version of Kubernetes."""

    version: Annotated[str, Field(pattern=ADDON_VERSION)]
    source: str


class ChartRow(Record):
    """The version of a chart that the platform is written for."""

    version: Annotated[str, Field(pattern=CHART_VERSION)]
    source: str


class Floor(Record):
    """The oldest allowed version, and the problem of older ones."""

    version: Annotated[str, Field(pattern=r"^v?\d+\.\d+(\.\d+)?$")]
    because: str
    source: str


class KubernetesRange(Record):
    """The oldest and the newest Kubernetes that a minor version of a controller works with."""

    least: KubernetesVersion
    most: KubernetesVersion
    source: str

    def has(self, kubernetes: str) -> bool:
        """Return whether a version of Kubernetes is within the range."""
        return version_order(self.least) <= version_order(kubernetes) <= version_order(self.most)


class Skew(Record):
    """Number of minor versions that a component may lag behind."""

    most: Annotated[int, Field(ge=0)]
    source: str


class KarpenterVersions(Record):
    """Karpenter's chart, with the Kubernetes range of each of its minor versions."""

    chart: ChartRow
    kubernetes: dict[Annotated[str, Field(pattern=r"^\d+\.\d+$")], KubernetesRange]

    def range_of(self, version: str) -> KubernetesRange | None:
        """Return the Kubernetes range of a version. None for an unknown minor version."""
        return self.kubernetes.get(minor_version(version))


class KueueVersions(Record):
    """Kueue's chart, the Kubernetes version it needs, and the Kueue version the platform needs."""

    chart: ChartRow
    kubernetes_at_least: Floor
    at_least: Floor


class VersionTable(SourcedFile):
    """The whole table."""

    kubernetes: dict[KubernetesVersion, dict[Addon, AddonRow]]
    addons_at_least: dict[Addon, Floor]
    kube_proxy_minors_behind: Skew
    karpenter: KarpenterVersions
    kueue: KueueVersions
    jobset: ChartRow
    nvidia_device_plugin: ChartRow
    neuron_device_plugin: ChartRow
    efa_device_plugin: ChartRow
    load_balancer_controller: ChartRow
    dcgm_exporter: ChartRow
    kube_state_metrics: ChartRow

    @model_validator(mode="after")
    def _versions_are_in_order(self) -> Self:
        versions = list(self.kubernetes)
        if versions != sorted(versions, key=version_order):
            raise ValueError("the Kubernetes versions are out of order; list the oldest first")
        return self

    def chart(self, name: Chart) -> ChartRow:
        """Return the version of a chart that the platform is written for."""
        rows = {
            Chart.KUEUE: self.kueue.chart,
            Chart.JOBSET: self.jobset,
            Chart.KARPENTER: self.karpenter.chart,
            Chart.NVIDIA_DEVICE_PLUGIN: self.nvidia_device_plugin,
            Chart.NEURON_DEVICE_PLUGIN: self.neuron_device_plugin,
            Chart.EFA_DEVICE_PLUGIN: self.efa_device_plugin,
            Chart.LOAD_BALANCER_CONTROLLER: self.load_balancer_controller,
            Chart.DCGM_EXPORTER: self.dcgm_exporter,
        }
        return rows[name]

    def pinned(self, kubernetes: str) -> dict[Addon, str]:
        """Return the add-ons with a verified version for this Kubernetes. All others use EKS's default."""
        rows = self.kubernetes.get(kubernetes, {})
        return {name: row.version for name, row in rows.items() if self.sources[row.source].verified}


def version_order(version: str) -> tuple[int, ...]:
    """Return the sort key of a version: v1.14.3-eksbuild.23 is newer than v1.14.3-eksbuild.3."""
    return tuple(int(part) for part in re.findall(r"\d+", version))


def minor_version(version: str) -> str:
    """Return the minor version: 1.14 of 1.14.1, and of v1.14.3-eksbuild.3."""
    return ".".join(re.findall(r"\d+", version)[:2])


@cache
def shipped_versions() -> VersionTable:
    """Return the shipped table."""
    return read_records(Path(__file__).with_name("versions.yaml"), VersionTable)


_FILE = Path(__file__).parent / "auto_mode.yaml"


class _Families(Record):
    """Families of EC2's machines, such as g6e."""

    source: str
    names: frozenset[str]


class _Addons(Record):
    """EKS's add-ons."""

    source: str
    names: frozenset[Addon]


class _Lifetime(Record):
    """Longest life of a node, whatever runs on it."""

    hours: Annotated[int, Field(ge=1)]
    source: str


class AutoMode(SourcedFile):
    """The facts about EKS Auto Mode, each with a source."""

    families: _Families
    addons_in_itself: Annotated[_Addons, Field(alias="addons")]
    node_lifetime: _Lifetime

    @property
    def addons(self) -> frozenset[Addon]:
        """Built-in add-ons, which are not installed."""
        return self.addons_in_itself.names

    def launches(self, machine: str) -> bool:
        """Return whether Auto Mode launches a machine such as g6e.xlarge, by AWS's list of the day."""
        family, _, size = machine.partition(".")
        return family in self.families.names and size not in {"nano", "micro", "small"}


@cache
def auto_mode() -> AutoMode:
    """Return the shipped facts about EKS Auto Mode."""
    return read_records(_FILE, AutoMode)


_GKE = Path(__file__).parent / "gke_versions.yaml"

_PATCH = 3
"""Number of parts in a version that names one patch: 1.35.2."""


class GkeFeature(StrEnum):
    """Features that need a version of GKE."""

    FLEX_START = "flex-start"
    QUEUED = "queued"
    COMPUTE_CLASS = "compute-class"
    COMPUTE_CLASS_RESERVATION = "compute-class-reservation"
    JOBSET_METRICS = "jobset-metrics"
    SHUTDOWN_GRACE = "shutdown-grace"
    CONFIDENTIAL_NODES = "confidential-nodes"


class GkeFloor(Record):
    """The first version with a feature."""

    least: Annotated[str, Field(pattern=GKE_VERSION)]
    on_autopilot: Annotated[str, Field(pattern=GKE_VERSION)] | None = None
    """First version on Autopilot, where it came later."""
    older_in_channels: bool

    def of(self, *, autopilot: bool) -> str:
        """Return the version for a cluster of that mode."""
        return self.on_autopilot if autopilot and self.on_autopilot else self.least


class _GkeFile(Record):
    sources: dict[GkeFeature, Source]
    features: dict[GkeFeature, GkeFloor]


def gke_floors() -> dict[GkeFeature, GkeFloor]:
    """Return the first version of each feature."""
    return _gke_file().features


@cache
def _gke_file() -> _GkeFile:
    return read_records(_GKE, _GkeFile)


def names_a_patch(version: str) -> bool:
    """Return whether a version names one patch (1.35.2) or release (1.35.2-gke.10). A shorter one is an alias.

    GKE's API takes the newest release that an alias fits (google.container.v1, Cluster.initial_cluster_version: "1.X" picks the highest
    valid patch and gke.N of 1.X; read 2026-11-25).
    """
    return len(version_order(version)) >= _PATCH


def is_below(version: str, floor: str) -> bool:
    """Return whether every release that GKE may take for `version` is older than `floor`. An alias that the floor fits is not below it."""
    order = version_order(version)
    return order < version_order(floor)[: len(order)]
