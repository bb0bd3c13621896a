"""Where a platform runs, what it calls the things that every platform has, and the addresses that are reached from its cluster."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, model_validator

from flexspot.capacity.catalog.data_files import Record, SourcedFile, read_records
from flexspot.capacity.catalog.machines import Vendor
from flexspot.capacity.catalog.node_labels import (
    AUTO_MODE_INSTANCE,
    COMPUTE_CLASS_LABEL,
    GKE_POOL_LABEL,
    GKE_TOPOLOGY_LABELS,
    KARPENTER_INSTANCE,
    KARPENTER_POOL_LABEL,
)

if TYPE_CHECKING:
    from flexspot.capacity.catalog.machines import Gpu


class Platform(StrEnum):
    """Where a stack's platform runs.

    LOCAL is the lab's control plane on this machine, with fake nodes. GKE and EKS are clusters of the clouds, which need the clouds' own
    provider plugins.
    """

    LOCAL = "local"
    GKE = "gke"
    EKS = "eks"


@dataclass(frozen=True)
class Vocabulary:
    """A platform's own words.

    `catalog` is whose machines it has, `facts` whose capacity types (a name of flexspot/capacity/catalog/capacity_types). `pool_label` is a
    label that its autoscaler knows before a node has booted. With `gke_labels` each kind of accelerator has one label more, GKE's; where
    Karpenter tells of them, each has labels of Karpenter's. `compute_class_label` is the one label of a compute class
    that the cloud itself climbs; None where weights order the pools. `topology_levels` are the labels that say where in the network a node
    is, the widest first; none where nodes are only made for pods that exist, which Kueue cannot place by them. `instance_labels` is how the
    keys begin of what Karpenter says of a machine; empty where there is none.
    """

    catalog: Vendor
    facts: str
    pool_label: str
    gke_labels: bool = False
    compute_class_label: str | None = None
    topology_levels: tuple[str, ...] = ()
    instance_labels: str = ""

    def device_labels(self, gpu: Gpu) -> dict[str, str]:
        """The labels that say which device a node has: its name, and its memory (MiB of one) where that tells apart those of one name."""
        if self.gke_labels:
            return {gpu.accelerator.gke_label: gpu.name}
        # Its name alone, where the cloud says no more.
        return dict(zip(gpu.accelerator.labels(self.instance_labels), (gpu.name, str(gpu.memory_mib)), strict=False))


_KARPENTER = Vocabulary(Vendor.AWS, "eks", KARPENTER_POOL_LABEL, instance_labels=KARPENTER_INSTANCE)

AUTO_MODE = Vocabulary(Vendor.AWS, "eks", KARPENTER_POOL_LABEL, instance_labels=AUTO_MODE_INSTANCE)
"""The words of EKS in Auto Mode, in which AWS runs Karpenter with labels of its own."""

VOCABULARIES: dict[Platform, Vocabulary] = {
    # The lab's nodes are launched by Karpenter from the EC2 catalog.
    Platform.LOCAL: _KARPENTER,
    Platform.EKS: _KARPENTER,
    Platform.GKE: Vocabulary(
        Vendor.GCP,
        "gke",
        GKE_POOL_LABEL,
        gke_labels=True,
        compute_class_label=COMPUTE_CLASS_LABEL,
        topology_levels=GKE_TOPOLOGY_LABELS,
    ),
}


MEASUREMENT_NAMESPACE = "flexspot-measurement"
"""Where what measures runs. Not kube-system, into which Autopilot lets nobody."""

QUEUEING_NAMESPACE = "flexspot-queueing"
"""Where what helps Kueue runs: its own may be somebody else's."""


class PrometheusKind(StrEnum):
    """Which Prometheus reads the metrics and the recording rules.

    MANAGED: Google's managed service, configured by monitoring.googleapis.com objects. OPERATOR: the Prometheus Operator, configured by
    monitoring.coreos.com objects. ANNOTATIONS: a Prometheus that discovers Services by the annotation prometheus.io/scrape and reads rules
    from a file.
    """

    MANAGED = "managed"
    OPERATOR = "operator"
    ANNOTATIONS = "annotations"


PARTITIONS = {"aws": "", "aws-cn": "cn-", "aws-us-gov": "us-gov-"}
"""AWS's partitions, by what the names of their regions begin with."""


def partition_of(region: str) -> str:
    """The partition of a region of AWS."""
    return next((partition for partition, prefix in PARTITIONS.items() if prefix and region.startswith(prefix)), "aws")


INTERFACE_SERVICES = {
    "ec2": "the CNI's addresses, names of nodes, Karpenter's machines, the EBS driver's volumes",
    "ecr.api": "the right to pull images",
    "ecr.dkr": "images; their layers come from S3",
    "eks": "Karpenter and people ask for the cluster's endpoint, nodes for its data",
    "eks-auth": "credentials by Pod Identity",
    "sqs": "Karpenter's notices of interruption, and work queues",
    "ssm": "Karpenter finds the AMI of an alias here",
    "sts": "credentials of roles, tokens of the API server",
}
"""By default, and why. EKS user guide, "Deploy private clusters with limited internet access", names all but sqs, which is in the EKS best
practices guide, Karpenter in private clusters, with ssm. Left out: logs, because nothing that is installed here writes to CloudWatch
from inside the VPC (the control plane's logs do not come this way), and elasticloadbalancing, because there is no load balancer controller.
The price list and IAM, which Karpenter calls, have no endpoint in most regions: those calls take the NAT."""

_NOT_OFFERED = {
    "eks": {"ap-east-2", "ap-southeast-5", "ap-southeast-7", "mx-central-1"},
    "eks-auth": {"ap-east-2", "ap-southeast-7", "mx-central-1"},
}
"""Regions without the endpoint (EKS user guide, "Access Amazon EKS using AWS PrivateLink", read 2026-11)."""


def default_services(region: str) -> list[str]:
    """The services that get an interface endpoint unless the caller says otherwise, sorted."""
    return sorted(service for service in INTERFACE_SERVICES if region not in _NOT_OFFERED.get(service, ()))


_FILE = Path(__file__).parent / "cluster_endpoints.yaml"

Port = Annotated[int, Field(ge=1, le=65_535)]


class ClusterEndpoint(Record):
    """An address that no pod selector matches, with the ports on which it is asked."""

    name: str
    cidr: Annotated[str, Field(pattern=r"^169\.254\.\d+\.\d+/32$")]
    protocols: Annotated[tuple[Literal["TCP", "UDP"], ...], Field(min_length=1)]
    ports: Annotated[tuple[Port, ...], Field(min_length=1)]
    source: str


class _Endpoints(SourcedFile):
    """The data file."""

    as_of: date
    platforms: dict[Platform, tuple[ClusterEndpoint, ...]]

    @model_validator(mode="after")
    def _complete(self) -> _Endpoints:
        if lacking := [each.value for each in Platform if each not in self.platforms]:
            raise ValueError(f"platforms lacks {', '.join(lacking)}")
        return self


@cache
def endpoints_of(platform: Platform) -> tuple[ClusterEndpoint, ...]:
    """The endpoints of a platform, in the order of the data file."""
    return read_records(_FILE, _Endpoints).platforms[platform]


POD_USER = 1000
"""The user id of processes, and the owner of mounts, unless a request or a volume says another."""

MOUNT_GROUP = 1000
"""The group id of every pod's processes, whatever their user, and of mounts, which their group may write."""

USER_NAME = "flexspot"
"""The user name in the environment of programs. Without it getpass.getuser() fails for a user ID that the image's /etc/passwd lacks."""
