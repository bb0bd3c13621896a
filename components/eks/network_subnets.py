"""The subnets of an EKS network, and how each gets out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi
from pulumi_aws import ec2

if TYPE_CHECKING:
    from components.eks.network_args import NetworkShape

DISCOVERY_TAG = "karpenter.sh/discovery"
"""By which Karpenter's node classes find subnets and security groups; its value is the cluster's name."""

_ANYWHERE = "0.0.0.0/0"


class NetworkBuilder:
    """Makes the parts of one network; `name` is what their Pulumi names begin with."""

    def __init__(self, name: str, shape: NetworkShape, vpc_id: pulumi.Input[str], parent: pulumi.Resource) -> None:
        self._name = name
        self._shape = shape
        self._vpc_id = vpc_id
        self._parent = parent
        self._child = pulumi.ResourceOptions(parent=parent)

    def public_subnets(self, gateway: ec2.InternetGateway) -> dict[str, ec2.Subnet]:
        """The public subnets by zone. They share one route table, because they have one way out."""
        table = ec2.RouteTable(f"{self._name}-public-routes", vpc_id=self._vpc_id, tags=self._shape.named("public"), opts=self._child)
        ec2.Route(
            f"{self._name}-public-out",
            route_table_id=table.id,
            destination_cidr_block=_ANYWHERE,
            gateway_id=gateway.id,
            opts=self._child,
        )
        return {
            zone: self._subnet(f"public-{zone}", zone, cidr, {"kubernetes.io/role/elb": "1"}, table)[0]
            for zone, cidr in zip(self._shape.zones, self._shape.public_cidrs, strict=True)
        }

    def nat_gateway(self, zone: str, subnet: ec2.Subnet, gateway: ec2.InternetGateway) -> ec2.NatGateway:
        """A NAT gateway in a zone's public subnet. It works once the internet gateway is there, which AWS does not wait for by itself."""
        tags = self._shape.named(f"nat-{zone}")
        after_gateway = pulumi.ResourceOptions(parent=self._parent, depends_on=[gateway])
        address = ec2.Eip(f"{self._name}-nat-{zone}-address", domain="vpc", tags=tags, opts=after_gateway)
        return ec2.NatGateway(f"{self._name}-nat-{zone}", allocation_id=address.id, subnet_id=subnet.id, tags=tags, opts=after_gateway)

    def private_subnet(self, zone: str, cidr: str, nat: ec2.NatGateway) -> tuple[ec2.Subnet, ec2.RouteTable, list[pulumi.Resource]]:
        """A zone's private subnet, its route table, and what makes the way out."""
        table = ec2.RouteTable(
            f"{self._name}-private-{zone}-routes", vpc_id=self._vpc_id, tags=self._shape.named(f"private-{zone}"), opts=self._child
        )
        route = ec2.Route(
            f"{self._name}-private-{zone}-out",
            route_table_id=table.id,
            destination_cidr_block=_ANYWHERE,
            nat_gateway_id=nat.id,
            opts=self._child,
        )
        tags = {DISCOVERY_TAG: self._shape.cluster, "kubernetes.io/role/internal-elb": "1"}
        subnet, association = self._subnet(f"private-{zone}", zone, cidr, tags, table)
        return subnet, table, [route, association]

    def _subnet(
        self, part: str, zone: str, cidr: str, tags: dict[str, str], table: ec2.RouteTable
    ) -> tuple[ec2.Subnet, ec2.RouteTableAssociation]:
        subnet = ec2.Subnet(
            f"{self._name}-{part}",
            vpc_id=self._vpc_id,
            availability_zone=zone,
            cidr_block=cidr,
            # Not in the public ones either: a load balancer brings its own address, and a machine that strays there gets none.
            map_public_ip_on_launch=False,
            tags={**self._shape.named(part), **tags},
            opts=self._child,
        )
        association = ec2.RouteTableAssociation(
            f"{self._name}-{part}-association", subnet_id=subnet.id, route_table_id=table.id, opts=self._child
        )
        return subnet, association
