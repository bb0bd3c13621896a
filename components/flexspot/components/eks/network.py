"""A network for an EKS cluster: private subnets for nodes and pods, public ones for load balancers, NAT, and AWS's endpoints."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
import re
from collections.abc import Sequence
from ipaddress import IPv4Network
from itertools import combinations
from typing import NotRequired, TypedDict

import pulumi
from pulumi_aws import ec2, vpc

from flexspot.capacity.catalog.machines import is_zone_id, zone_id_prefix
from flexspot.capacity.catalog.platform import default_services
from flexspot.capacity.settings.network import CONTROL_PLANE_ZONES, EKS_ZONES, EksNetworkSettings, Nat, control_plane_ranges
from flexspot.capacity.values.errors import SettingsProblem
from flexspot.capacity.values.names import AWS_REGION
from flexspot.components.cloud_names import DISCOVERY_TAG, check_cluster_name, check_form, fitted
from flexspot.components.shared_args import checked_options, defaults, filled, publish, refuse

_SERVICE = r"[a-z][a-z0-9]*([.-][a-z0-9]+)*"


@defaults(deletion_protection=True, nat=EksNetworkSettings.default("nat").value)
class EksNetworkArgs(TypedDict):
    """Arguments of EksNetwork. All are plain because they shape the network."""

    cluster: str
    """Name of the cluster that will use the network. Karpenter discovers the private subnets by it, and resource names start with it."""

    region: str
    """The region, such as us-east-1."""

    vpc_cidr: str
    """IPv4 range of the VPC, /16 to /28."""

    zones: list[str]
    """Two to six zones of the region, all by name, such as us-east-1a, or all by id, such as use1-az1. EKS needs two."""

    private_cidrs: list[str]
    """IPv4 ranges of the private subnets for nodes and pods, one per zone in the order of `zones`, inside `vpc_cidr`."""

    public_cidrs: list[str]
    """IPv4 ranges of the public subnets, in the same order. Load balancers and NAT gateways use them. Nodes never do."""

    control_plane_zones: NotRequired[list[str]]
    """Zones of the control plane's own addresses, two to six. They cannot change on an existing cluster.

    Default: the first two of `zones`."""

    control_plane_cidrs: NotRequired[list[str]]
    """IPv4 ranges of the control plane's own addresses, one per control plane zone, inside `vpc_cidr`. Nothing else uses them.

    Default: the last of `vpc_cidr`, a /28 each."""

    deletion_protection: NotRequired[bool]
    """While this is true, a preview fails if it would delete the VPC or the control plane's subnets. Default: True."""

    nat: NotRequired[str]
    """`per-zone`: one NAT gateway in each zone, so that losing one zone does not cut off the others. `single`: one gateway for all
    zones, which costs only one gateway, plus cross-zone traffic. Default: per-zone."""

    endpoints: NotRequired[list[str] | None]
    """AWS services that get an interface endpoint, such as sqs. Each is billed per hour and zone. Other services are reached through NAT.

    Default: the services that nodes, Karpenter, the EBS driver and Pod Identity call, if the region has them."""

    tags: NotRequired[dict[str, str]]
    """Tags of everything in the network. Default: none."""


def services_of(args: EksNetworkArgs) -> list[str]:
    """Return the services that get an interface endpoint, always in the same order."""
    return default_services(args["region"]) if args["endpoints"] is None else sorted(args["endpoints"])


def control_plane_zones(args: EksNetworkArgs) -> list[str]:
    """Return the zones of the control plane's own addresses."""
    return args["control_plane_zones"] or args["zones"][:CONTROL_PLANE_ZONES]


def control_plane(args: EksNetworkArgs) -> dict[str, str]:
    """Return the ranges of the control plane's own addresses by zone."""
    zones = control_plane_zones(args)
    ranges = args["control_plane_cidrs"] or control_plane_ranges(args["vpc_cidr"], len(zones))
    return dict(zip(zones, ranges, strict=True))


def named(args: EksNetworkArgs, part: str) -> dict[str, str]:
    """Return the tags of a part of the network, with the name that AWS's console shows."""
    return {**args["tags"], "Name": f"{args['cluster']}-{part}"}


def check_network(name: str, args: EksNetworkArgs) -> None:
    """Raise ValueError for values that AWS would reject, and for ranges that conflict."""
    where = f"EksNetwork {name}"
    check_cluster_name(f"{where}:", args["cluster"])
    check_form(f"{where}: region", args["region"], AWS_REGION)
    _check_zones(where, "zones", args["zones"], args["region"])
    if args["control_plane_zones"]:
        _check_zones(where, "control_plane_zones", args["control_plane_zones"], args["region"])
    checked_options(where, EksNetworkSettings, args)
    _check_ranges(where, args)
    services = services_of(args)
    if len(set(services)) < len(services) or not all(re.fullmatch(_SERVICE, each) for each in services):
        problem = "must list short names of services, each once, such as ecr.api"
        refuse(where, SettingsProblem("endpoints", repr(args["endpoints"]), problem, "leave out the prefix com.amazonaws and the region"))


def _check_zones(where: str, key: str, zones: list[str], region: str) -> None:
    forms = (re.escape(region) + "[a-z]", re.escape(zone_id_prefix(region)) + r"\d+")
    alike = any(all(re.fullmatch(form, zone) for zone in zones) for form in forms)
    if len(zones) not in EKS_ZONES or not alike or len(set(zones)) < len(zones):
        problem = f"must list two to six zones of {region}, each once, all by name or all by id"
        remedy = f"name some, such as {region}a and {region}b, or {zone_id_prefix(region)}1 and {zone_id_prefix(region)}2"
        refuse(where, SettingsProblem(key, repr(zones), problem, remedy))


def _check_ranges(where: str, args: EksNetworkArgs) -> None:
    """Raise ValueError unless there is one range for each zone, all are inside the VPC, and no two overlap."""
    ranges = {"private_cidrs": args["private_cidrs"], "public_cidrs": args["public_cidrs"]}
    zones = {"private_cidrs": "zones", "public_cidrs": "zones", "control_plane_cidrs": "control_plane_zones"}
    for key, written in (ranges | {"control_plane_cidrs": args["control_plane_cidrs"]}).items():
        owners = control_plane_zones(args) if key == "control_plane_cidrs" else args["zones"]
        if len(written) != len(owners) and (written or key in ranges):
            problem = f"must list {len(owners)} ranges, one for each zone, in the order of {zones[key]}"
            refuse(where, SettingsProblem(key, repr(written), problem, "add or remove some"))
    ranges["control_plane_cidrs"] = [*control_plane(args).values()]
    subnets = [(key, IPv4Network(each)) for key, written in ranges.items() for each in written]
    vpc = IPv4Network(args["vpc_cidr"])
    for key, subnet in subnets:
        if not subnet.subnet_of(vpc):
            refuse(where, SettingsProblem(key, str(subnet), f"is outside vpc_cidr, {vpc}", "move the range, or widen vpc_cidr"))
    for (key, subnet), (other, others) in combinations(subnets, 2):
        if subnet.overlaps(others):
            refuse(where, SettingsProblem(key, str(subnet), f"overlaps with {other} {others}", "move one of the two ranges"))


S3 = "s3"
"""S3, for image layers, checkpoints and datasets. It has a gateway endpoint, which is free."""

_OF_CHINA = {"ec2", "ecr.api", "ecr.dkr", "eks", "sqs", "sts"}
"""Services whose endpoints have another prefix in China (aws-cdk, vpc-endpoint.ts, getDefaultEndpointPrefix)."""


def service_name(service: str, region: str) -> str:
    """Return the full name of a service's endpoint, such as com.amazonaws.us-east-1.sqs."""
    prefix = "cn.com.amazonaws" if region.startswith("cn-") and service in _OF_CHINA else "com.amazonaws"
    return f"{prefix}.{region}.{service}"


_HTTPS = 443


def s3_endpoint(
    name: str, args: EksNetworkArgs, vpc_id: pulumi.Input[str], route_table_ids: Sequence[pulumi.Input[str]], parent: pulumi.Resource
) -> None:
    """Create an S3 endpoint for the private route tables. Otherwise NAT would charge for models and checkpoints per gigabyte."""
    ec2.VpcEndpoint(
        f"{name}-s3-endpoint",
        vpc_id=vpc_id,
        service_name=service_name(S3, args["region"]),
        vpc_endpoint_type="Gateway",
        route_table_ids=route_table_ids,
        tags=named(args, "s3"),
        opts=pulumi.ResourceOptions(parent=parent),
    )


def interface_endpoints(
    name: str, args: EksNetworkArgs, vpc_id: pulumi.Input[str], subnet_ids: Sequence[pulumi.Input[str]], parent: pulumi.Resource
) -> None:
    """Create an endpoint for each service that has one, under the service's usual name. They only accept HTTPS from the VPC."""
    child = pulumi.ResourceOptions(parent=parent)
    if not services_of(args):
        return
    group = ec2.SecurityGroup(
        f"{name}-endpoints-security-group",
        # AWS rejects names that begin with sg-, as a cluster's name may.
        name=f"endpoints-{args['cluster']}",
        description="HTTPS from the VPC to endpoints of AWS services",
        vpc_id=vpc_id,
        tags=named(args, "endpoints"),
        opts=child,
    )
    vpc.SecurityGroupIngressRule(
        f"{name}-endpoints-https",
        security_group_id=group.id,
        description="HTTPS from the VPC",
        cidr_ipv4=args["vpc_cidr"],
        ip_protocol="tcp",
        from_port=_HTTPS,
        to_port=_HTTPS,
        tags=named(args, "endpoints-https"),
        opts=child,
    )
    for service in services_of(args):
        ec2.VpcEndpoint(
            f"{name}-{service.replace('.', '-')}-endpoint",
            vpc_id=vpc_id,
            service_name=service_name(service, args["region"]),
            vpc_endpoint_type="Interface",
            private_dns_enabled=True,
            subnet_ids=subnet_ids,
            security_group_ids=[group.id],
            tags=named(args, service),
            opts=child,
        )


_ANYWHERE = "0.0.0.0/0"


class NetworkBuilder:
    """Creates the parts of one network. Their Pulumi names begin with `name`."""

    def __init__(self, name: str, args: EksNetworkArgs, vpc_id: pulumi.Input[str], parent: pulumi.Resource) -> None:
        self._name = name
        self._args = args
        self._vpc_id = vpc_id
        self._parent = parent
        self._child = pulumi.ResourceOptions(parent=parent)

    def public_subnets(self, gateway: ec2.InternetGateway) -> dict[str, ec2.Subnet]:
        """Create the public subnets, by zone. They share one route table, because all use the internet gateway."""
        table = ec2.RouteTable(f"{self._name}-public-routes", vpc_id=self._vpc_id, tags=named(self._args, "public"), opts=self._child)
        ec2.Route(
            f"{self._name}-public-out",
            route_table_id=table.id,
            destination_cidr_block=_ANYWHERE,
            gateway_id=gateway.id,
            opts=self._child,
        )
        return {
            zone: self._subnet(f"public-{zone}", zone, cidr, {"kubernetes.io/role/elb": "1"}, table)[0]
            for zone, cidr in zip(self._args["zones"], self._args["public_cidrs"], strict=True)
        }

    def control_plane_subnets(self) -> list[tuple[ec2.Subnet, list[pulumi.Resource]]]:
        """Create the subnets of the control plane's own addresses, without a route out, which the control plane does not need.

        Neither Karpenter nor load balancers discover them. Their zones cannot change during the cluster's life, so nothing else uses them.
        """
        protected = pulumi.ResourceOptions(parent=self._parent, protect=self._args["deletion_protection"])
        tags = named(self._args, "control-plane")
        table = ec2.RouteTable(f"{self._name}-control-plane-routes", vpc_id=self._vpc_id, tags=tags, opts=self._child)
        made = [self._subnet(f"control-plane-{zone}", zone, cidr, {}, table, protected) for zone, cidr in control_plane(self._args).items()]
        return [(subnet, [association]) for subnet, association in made]

    def nat_gateway(self, zone: str, subnet: ec2.Subnet, gateway: ec2.InternetGateway) -> ec2.NatGateway:
        """Create a NAT gateway in a zone's public subnet. It needs the internet gateway, which AWS does not wait for by itself."""
        tags = named(self._args, f"nat-{zone}")
        after_gateway = pulumi.ResourceOptions(parent=self._parent, depends_on=[gateway])
        address = ec2.Eip(f"{self._name}-nat-{zone}-address", domain="vpc", tags=tags, opts=after_gateway)
        return ec2.NatGateway(f"{self._name}-nat-{zone}", allocation_id=address.id, subnet_id=subnet.id, tags=tags, opts=after_gateway)

    def private_subnet(self, zone: str, cidr: str, nat: ec2.NatGateway) -> tuple[ec2.Subnet, ec2.RouteTable, list[pulumi.Resource]]:
        """Create a zone's private subnet, its route table, and the resources of its route to the internet."""
        table = ec2.RouteTable(
            f"{self._name}-private-{zone}-routes", vpc_id=self._vpc_id, tags=named(self._args, f"private-{zone}"), opts=self._child
        )
        route = ec2.Route(
            f"{self._name}-private-{zone}-out",
            route_table_id=table.id,
            destination_cidr_block=_ANYWHERE,
            nat_gateway_id=nat.id,
            opts=self._child,
        )
        tags = {DISCOVERY_TAG: self._args["cluster"], "kubernetes.io/role/internal-elb": "1"}
        subnet, association = self._subnet(f"private-{zone}", zone, cidr, tags, table)
        return subnet, table, [route, association]

    def _subnet(  # noqa: PLR0913, PLR0917 -- properties of a subnet
        self, part: str, zone: str, cidr: str, tags: dict[str, str], table: ec2.RouteTable, opts: pulumi.ResourceOptions | None = None
    ) -> tuple[ec2.Subnet, ec2.RouteTableAssociation]:
        subnet = ec2.Subnet(
            f"{self._name}-{part}",
            vpc_id=self._vpc_id,
            # An id is the same zone in every account. In the oldest regions a name is not.
            availability_zone=None if is_zone_id(zone) else zone,
            availability_zone_id=zone if is_zone_id(zone) else None,
            cidr_block=cidr,
            # Not in the public ones either: a load balancer brings its own address, and instances there must not get one.
            map_public_ip_on_launch=False,
            tags={**named(self._args, part), **tags},
            opts=opts or self._child,
        )
        association = ec2.RouteTableAssociation(
            f"{self._name}-{part}-association", subnet_id=subnet.id, route_table_id=table.id, opts=self._child
        )
        return subnet, association


class EksNetwork(pulumi.ComponentResource):
    """A VPC over two to six zones in which no machine gets a public address.

    Nodes reach the internet through NAT gateways, but S3 and the services in `endpoints` without them. Karpenter discovers the private
    subnets by the tag karpenter.sh/discovery. Load balancers discover theirs by kubernetes.io/role. The VPC's default security group, which
    AWS attaches to everything that names none, has no rules. The control plane's own addresses have separate subnets, because AWS never
    changes their zones. The nodes' zones can therefore change. Flow logs are not included.

    Raises ValueError for values that AWS would reject, for ranges outside the VPC and for overlapping ranges, which cannot be changed once
    the cluster exists.
    """

    vpc_id: pulumi.Output[str]
    """The VPC's id."""

    private_subnet_ids: pulumi.Output[list[str]]
    """Ids of the private subnets in the order of `zones`, known once their routes exist. Nodes that start earlier cannot join."""

    public_subnet_ids: pulumi.Output[list[str]]
    """Ids of the public subnets in the order of `zones`."""

    control_plane_subnet_ids: pulumi.Output[list[str]]
    """Ids of the subnets for the control plane's own addresses."""

    def __init__(self, name: str, args: EksNetworkArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        args = filled(EksNetworkArgs, args)
        check_network(name, args)
        super().__init__("flexspot:index:EksNetwork", name, {**args, "endpoints": services_of(args)}, opts)
        child = pulumi.ResourceOptions(parent=self)
        vpc = ec2.Vpc(
            f"{name}-vpc",
            cidr_block=args["vpc_cidr"],
            # Both are needed for the API server's private name and for those of interface endpoints.
            enable_dns_hostnames=True,
            enable_dns_support=True,
            tags=named(args, "vpc"),
            opts=pulumi.ResourceOptions(parent=self, protect=args["deletion_protection"]),
        )
        ec2.DefaultSecurityGroup(
            f"{name}-default-security-group", vpc_id=vpc.id, ingress=[], egress=[], tags=named(args, "default"), opts=child
        )
        gateway = ec2.InternetGateway(f"{name}-internet-gateway", vpc_id=vpc.id, tags=named(args, "internet"), opts=child)
        builder = NetworkBuilder(name, args, vpc.id, self)
        public = builder.public_subnets(gateway)
        nat_zones = args["zones"] if args["nat"] == Nat.PER_ZONE else [min(args["zones"])]
        nats = {zone: builder.nat_gateway(zone, public[zone], gateway) for zone in nat_zones}
        private = [
            builder.private_subnet(zone, cidr, nats.get(zone, nats[nat_zones[0]]))
            for zone, cidr in zip(args["zones"], args["private_cidrs"], strict=True)
        ]
        private_ids = [subnet.id for subnet, _, _ in private]
        s3_endpoint(name, args, vpc.id, [table.id for _, table, _ in private], self)
        interface_endpoints(name, args, vpc.id, private_ids, self)

        self.vpc_id = vpc.id
        # Not an output: the private subnets by zone, for resources in them that need no route to the internet.
        self.private_subnets: dict[str, pulumi.Input[str]] = dict(zip(args["zones"], private_ids, strict=True))
        routes = [resource.urn for _, _, parts in private for resource in parts]
        self.private_subnet_ids = pulumi.Output.all(*private_ids, *routes).apply(lambda known: known[: len(private_ids)])
        own = builder.control_plane_subnets()
        links = [resource.urn for _, parts in own for resource in parts]
        self.control_plane_subnet_ids = pulumi.Output.all(*(subnet.id for subnet, _ in own), *links).apply(lambda known: known[: len(own)])
        self.public_subnet_ids = pulumi.Output.all(*(subnet.id for subnet in public.values()))
        publish(self)


NAME_CHARACTERS = 255
"""EC2's limit for the name (API reference, CreateSecurityGroup)."""


class EfaSecurityGroupArgs(TypedDict):
    """Arguments of EfaSecurityGroup."""

    cluster: str
    """The cluster's name."""

    vpc_id: pulumi.Input[str]
    """The VPC of the nodes."""

    tags: dict[str, str]
    """Tags of the group. They must not include the tag by which Karpenter discovers the groups of all nodes."""


class EfaSecurityGroup(pulumi.ComponentResource):
    """Allows all traffic between its members, for the EFA interfaces of all EFA pools of a cluster.

    Only rules that name a security group, in both directions, allow EFA's own traffic (SRD). The usual egress rule to 0.0.0.0/0 does not:
    "An EFA requires a security group that allows all inbound and outbound traffic to and from the security group itself" (EC2 User Guide,
    efa-start; gardener-extension-provider-aws, docs/usage, explains it; both read 2026-11-24). EKS creates such rules in the security group
    of a new cluster (EKS User Guide, sec-group-reqs), where another one would be rejected as a duplicate. The group of an old or restricted
    cluster may have none. A separate group works for all, as eksctl creates one for `efaEnabled` (pkg/cfn/builder, addEFASecurityGroup).

    The nodes also have the cluster's group, for everything else. A different name or VPC replaces the group. Raises ValueError for an empty
    cluster name, before anything is registered.
    """

    security_group_id: pulumi.Output[str]
    """The group's id, known once it exists."""

    def __init__(self, name: str, args: EfaSecurityGroupArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        if not args["cluster"]:
            problem = "must not be empty: the group's name contains it"
            refuse(f"EfaSecurityGroup {name}", SettingsProblem("cluster", "''", problem, "give the cluster's name"))
        super().__init__("flexspot:index:EfaSecurityGroup", name, {**args}, opts)
        # AWS rejects names that begin with sg-, as a cluster's name may.
        called = fitted(f"efa-{args['cluster']}", NAME_CHARACTERS)
        group = ec2.SecurityGroup(
            f"{name}-security-group",
            name=called,
            description="EFA between the nodes that have it",
            vpc_id=args["vpc_id"],
            ingress=[ec2.SecurityGroupIngressArgs(description="EFA", protocol="-1", from_port=0, to_port=0, self=True)],
            egress=[ec2.SecurityGroupEgressArgs(description="EFA", protocol="-1", from_port=0, to_port=0, self=True)],
            tags=args["tags"] | {"Name": called},
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.security_group_id = group.id
        publish(self)
