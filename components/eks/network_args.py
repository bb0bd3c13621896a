"""The arguments of EksNetwork, the same with their defaults filled in, and what is refused."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
import re
from dataclasses import dataclass, field
from ipaddress import IPv4Network
from itertools import combinations
from typing import NotRequired, TypedDict

from capacity.catalog.endpoints import default_services
from capacity.settings.network import EksNetwork, Nat
from capacity.values.names import AWS_REGION
from components.eks.names import check_choice, check_cluster_name, check_form
from components.ipv4_range import ipv4_range

_WIDEST, _NARROWEST = 16, 28
"""Prefix lengths of a VPC and its subnets (Amazon VPC user guide, IP addressing)."""

_ZONES = range(2, 4)
_SERVICE = r"[a-z][a-z0-9]*([.-][a-z0-9]+)*"


class EksNetworkArgs(TypedDict):
    """Arguments of EksNetwork; all are plain because they shape the network."""

    cluster: str
    """The name of the cluster that the network is for: Karpenter finds the private subnets by it, and names begin with it."""

    region: str
    """The region, such as us-east-1."""

    vpc_cidr: str
    """IPv4 range of the VPC, /16 to /28."""

    zones: list[str]
    """Two or three zones of the region, such as us-east-1a. EKS needs two."""

    private_cidrs: list[str]
    """IPv4 ranges of the private subnets, one for each zone in the order of `zones`, inside `vpc_cidr`. Nodes and pods are here."""

    public_cidrs: list[str]
    """IPv4 ranges of the public subnets, likewise. Load balancers and NAT gateways are here, never nodes."""

    nat: NotRequired[str]
    """`per-zone`: a NAT gateway in each zone, so that the loss of one leaves the others a way out. `single`: one for all, which costs one,
    and the traffic between zones. Default: per-zone."""

    endpoints: NotRequired[list[str] | None]
    """Services of AWS that get an interface endpoint, such as sqs; each is billed by the hour and zone. What has none takes the NAT.
    Default: what nodes, Karpenter, the EBS driver and Pod Identity call, where the region has it."""

    tags: NotRequired[dict[str, str]]
    """Tags of everything in the network. Default: none."""


@dataclass(frozen=True, kw_only=True)
class NetworkShape:
    """EksNetworkArgs with their defaults. `nat` is as it was written until the checks have passed."""

    cluster: str
    region: str
    vpc_cidr: str
    zones: list[str]
    private_cidrs: list[str]
    public_cidrs: list[str]
    nat: str = EksNetwork.default("nat").value
    endpoints: list[str] | None = None
    tags: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def services(self) -> list[str]:
        """The services that get an interface endpoint, in one order always."""
        return default_services(self.region) if self.endpoints is None else sorted(self.endpoints)

    @property
    def nat_zones(self) -> list[str]:
        """The zones that have a NAT gateway."""
        return self.zones if self.nat == Nat.PER_ZONE else [min(self.zones)]

    def named(self, part: str) -> dict[str, str]:
        """The tags of a part of the network, with the name that AWS's console shows."""
        return {**self.tags, "Name": f"{self.cluster}-{part}"}


def check_network(name: str, shape: NetworkShape) -> None:
    """Raises ValueError for what AWS would refuse, and for ranges that cannot all be there."""
    where = f"EksNetwork {name}:"
    check_cluster_name(where, shape.cluster)
    check_form(f"{where} region", shape.region, AWS_REGION)
    check_choice(f"{where} nat", shape.nat, list(Nat))
    _check_zones(where, shape)
    _check_ranges(where, shape)
    strangers = [service for service in shape.services if not re.fullmatch(_SERVICE, service)]
    if strangers or len(set(shape.services)) < len(shape.services):
        raise ValueError(
            f"{where} endpoints is {shape.endpoints!r}; allowed are short names of services, each once, such as ecr.api; leave out what "
            "stands before: com.amazonaws and the region"
        )


def _check_zones(where: str, shape: NetworkShape) -> None:
    strangers = [zone for zone in shape.zones if not re.fullmatch(re.escape(shape.region) + "[a-z]", zone)]
    if len(shape.zones) not in _ZONES or strangers or len(set(shape.zones)) < len(shape.zones):
        raise ValueError(
            f"{where} zones is {shape.zones!r}; allowed are two or three zones of {shape.region}, each once; name some, such as "
            f"{shape.region}a and {shape.region}b"
        )


def _check_ranges(where: str, shape: NetworkShape) -> None:
    vpc = _sized(f"{where} vpc_cidr", shape.vpc_cidr)
    subnets: list[tuple[str, IPv4Network]] = []
    for key, written in (("private_cidrs", shape.private_cidrs), ("public_cidrs", shape.public_cidrs)):
        if len(written) != len(shape.zones):
            raise ValueError(
                f"{where} {key} is {written!r} for {len(shape.zones)} zones; allowed is one range for each zone, in the order of zones; "
                "add or remove some"
            )
        subnets += [(f"{key} {each}", _sized(f"{where} {key}", each)) for each in written]
    for named, subnet in subnets:
        if not subnet.subnet_of(vpc):
            raise ValueError(f"{where} {named} is outside vpc_cidr, {vpc}; a subnet is inside its VPC; move it, or widen vpc_cidr")
    for (one, its), (other, others) in combinations(subnets, 2):
        if its.overlaps(others):
            raise ValueError(f"{where} {one} overlaps with {other}; subnets share no address; move one of them")


def _sized(where: str, written: str) -> IPv4Network:
    found = ipv4_range(where, written)
    if not _WIDEST <= found.prefixlen <= _NARROWEST:
        raise ValueError(f"{where} is {written!r}; allowed are sizes from /{_WIDEST} to /{_NARROWEST}, which is what AWS takes; resize it")
    return found
