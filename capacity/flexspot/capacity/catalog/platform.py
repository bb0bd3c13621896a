"""The places a platform runs in, its vocabulary for what every platform has, and the endpoints of its cluster."""

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
    """The place a stack's platform runs in.

    LOCAL is the lab's control plane on this machine, with fake nodes. GKE and EKS are clusters of the clouds, which need the clouds' own
    provider plugins.
    """

    LOCAL = "local"
    GKE = "gke"
    EKS = "eks"


@dataclass(frozen=True)
class Vocabulary:
    """A platform's vocabulary: its catalog and its labels."""

    catalog: Vendor
    """Cloud of its machines."""
    facts: str
    """Name of its capacity types in flexspot/capacity/catalog/capacity_types."""
    pool_label: str
    """Pool label that its autoscaler knows before a node has booted."""
    gke_labels: bool = False
    """True if each kind of accelerator has one label, GKE's. Otherwise Karpenter labels the accelerators."""
    compute_class_label: str | None = None
    """Label of a compute class that the cloud itself walks down; None where weights order the pools."""
    topology_levels: tuple[str, ...] = ()
    """Labels of a node's position in the network, the widest first.

    Empty where nodes are created only for existing pods, as Kueue cannot place pods by them.
    """
    instance_labels: str = ""
    """Prefix of Karpenter's machine labels; empty without Karpenter."""

    def device_labels(self, gpu: Gpu) -> dict[str, str]:
        """Return the labels of a node's device: its name, and its memory (MiB of one) where that distinguishes devices of the same name."""
        if self.gke_labels:
            return {gpu.accelerator.gke_label: gpu.name}
        # Some devices have a name label only.
        return dict(zip(gpu.accelerator.labels(self.instance_labels), (gpu.name, str(gpu.memory_mib)), strict=False))


_KARPENTER = Vocabulary(Vendor.AWS, "eks", KARPENTER_POOL_LABEL, instance_labels=KARPENTER_INSTANCE)

AUTO_MODE = Vocabulary(Vendor.AWS, "eks", KARPENTER_POOL_LABEL, instance_labels=AUTO_MODE_INSTANCE)
"""Vocabulary of EKS in Auto Mode, in which AWS runs Karpenter with its own labels."""

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
"""Namespace of the measurement pods. It is not kube-system, which Autopilot does not allow."""

QUEUEING_NAMESPACE = "flexspot-queueing"
"""Namespace of the pods that assist Kueue. Kueue's own may belong to another team."""


class PrometheusKind(StrEnum):
    """The Prometheus that reads the metrics and the recording rules.

    MANAGED: Google's managed service, configured by monitoring.googleapis.com objects. OPERATOR: the Prometheus Operator, configured by
    monitoring.coreos.com objects. ANNOTATIONS: a Prometheus that discovers Services by the annotation prometheus.io/scrape and reads rules
    from a file.
    """

    MANAGED = "managed"
    OPERATOR = "operator"
    ANNOTATIONS = "annotations"


PARTITIONS = {"aws": "", "aws-cn": "cn-", "aws-us-gov": "us-gov-"}
"""Region prefixes of AWS's partitions."""


def partition_of(region: str) -> str:
    """Return the partition of an AWS region."""
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
"""Default services with interface endpoints, each with its purpose.

EKS user guide, "Deploy private clusters with limited internet access", names all but sqs, which is in the EKS best practices guide,
Karpenter in private clusters, with ssm.

logs is omitted: no installed component writes to CloudWatch from inside the VPC, and the control plane's logs do not pass through it.
elasticloadbalancing is omitted because there is no load balancer controller. The price list and IAM, which Karpenter calls, have no
endpoint in most regions: those calls take the NAT.
"""

_NOT_OFFERED = {
    "eks": {"ap-east-2", "ap-southeast-5", "ap-southeast-7", "mx-central-1"},
    "eks-auth": {"ap-east-2", "ap-southeast-7", "mx-central-1"},
}
"""Regions without the endpoint (EKS user guide, "Access Amazon EKS using AWS PrivateLink", read 2026-11)."""


def default_services(region: str) -> list[str]:
    """Return the services that get an interface endpoint by default, sorted."""
    return sorted(service for service in INTERFACE_SERVICES if region not in _NOT_OFFERED.get(service, ()))


_FILE = Path(__file__).parent / "cluster_endpoints.yaml"

Port = Annotated[int, Field(ge=1, le=65_535)]


class ClusterEndpoint(Record):
    """An address that no pod selector matches, with its ports."""

    name: str
    cidr: Annotated[str, Field(pattern=r"^169\.254\.\d+\.\d+/32$")]
    protocols: Annotated[tuple[Literal["TCP", "UDP"], ...], Field(min_length=1)]
    ports: Annotated[tuple[Port, ...], Field(min_length=1)]
    source: str


class _Endpoints(SourcedFile):
    """The endpoints of each platform, each with a source."""

    as_of: date
    platforms: dict[Platform, tuple[ClusterEndpoint, ...]]

    @model_validator(mode="after")
    def _complete(self) -> _Endpoints:
        if lacking := [each.value for each in Platform if each not in self.platforms]:
            raise ValueError(f"platforms lacks {', '.join(lacking)}")
        return self


@cache
def endpoints_of(platform: Platform) -> tuple[ClusterEndpoint, ...]:
    """Return the endpoints of a platform, in the order of the data file."""
    return read_records(_FILE, _Endpoints).platforms[platform]


POD_USER = 1000
"""User ID of processes, and owner of mounts, unless a request or a volume sets another."""

MOUNT_GROUP = 1000
"""Group ID of every pod's processes, whatever their user, and of mounts, which their group may write."""

USER_NAME = "flexspot"
"""The user name in the environment of programs. Without it getpass.getuser() fails for a user ID that the image's /etc/passwd lacks."""
