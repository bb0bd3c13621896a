"""Addresses reached from a cluster: services of AWS with an endpoint in the network, name servers and identity servers on a node."""

from __future__ import annotations

from datetime import date
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from capacity.catalog.data_files import Record, Source, read_records, unsourced
from capacity.catalog.platform import Platform

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


class _Endpoints(Record):
    """The data file."""

    as_of: date
    sources: dict[str, Source]
    platforms: dict[Platform, tuple[ClusterEndpoint, ...]]

    @model_validator(mode="after")
    def _complete(self) -> _Endpoints:
        rows = [(each.name, each.source) for endpoints in self.platforms.values() for each in endpoints]
        if wrong := unsourced(rows, self.sources):
            raise ValueError(wrong)
        if lacking := [each.value for each in Platform if each not in self.platforms]:
            raise ValueError(f"platforms lacks {', '.join(lacking)}")
        return self


@cache
def endpoints_of(platform: Platform) -> tuple[ClusterEndpoint, ...]:
    """The endpoints of a platform, in the order of the data file."""
    return read_records(_FILE, _Endpoints).platforms[platform]
