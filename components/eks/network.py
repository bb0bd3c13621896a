"""A network for an EKS cluster: private subnets for nodes and pods, public ones for load balancers and the way out."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types.
import pulumi
from pulumi_aws import ec2

from components.eks.network_args import EksNetworkArgs, NetworkShape, check_network
from components.eks.network_endpoints import interface_endpoints, s3_endpoint
from components.eks.network_subnets import NetworkBuilder


class EksNetwork(pulumi.ComponentResource):
    """A VPC over two or three zones in which no machine gets a public address.

    Nodes leave by NAT gateways, and reach S3 and the services in `endpoints` without them. Karpenter finds the private subnets by the tag
    karpenter.sh/discovery, load balancers their own by kubernetes.io/role. The VPC's default security group, which AWS gives to whatever
    names none, has no rules. Flow logs are not part of this.

    Raises ValueError for what AWS would refuse, for ranges outside the VPC and for ranges that overlap: they cannot be changed once the
    cluster is there.
    """

    vpc_id: pulumi.Output[str]
    """The VPC's id."""

    private_subnet_ids: pulumi.Output[list[str]]
    """Ids of the private subnets in the order of `zones`, known once they have their way out: nodes that start before cannot join."""

    public_subnet_ids: pulumi.Output[list[str]]
    """Ids of the public subnets in the order of `zones`."""

    def __init__(self, name: str, args: EksNetworkArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        shape = NetworkShape(**args)
        check_network(name, shape)
        super().__init__("flexspot:index:EksNetwork", name, {**vars(shape), "endpoints": shape.services}, opts)
        child = pulumi.ResourceOptions(parent=self)
        vpc = ec2.Vpc(
            f"{name}-vpc",
            cidr_block=shape.vpc_cidr,
            # Both are needed for the API server's private name and for those of interface endpoints.
            enable_dns_hostnames=True,
            enable_dns_support=True,
            tags=shape.named("vpc"),
            opts=child,
        )
        ec2.DefaultSecurityGroup(
            f"{name}-default-security-group", vpc_id=vpc.id, ingress=[], egress=[], tags=shape.named("default"), opts=child
        )
        gateway = ec2.InternetGateway(f"{name}-internet-gateway", vpc_id=vpc.id, tags=shape.named("internet"), opts=child)
        builder = NetworkBuilder(name, shape, vpc.id, self)
        public = builder.public_subnets(gateway)
        nats = {zone: builder.nat_gateway(zone, public[zone], gateway) for zone in shape.nat_zones}
        private = [
            builder.private_subnet(zone, cidr, nats.get(zone, nats[shape.nat_zones[0]]))
            for zone, cidr in zip(shape.zones, shape.private_cidrs, strict=True)
        ]
        private_ids = [subnet.id for subnet, _, _ in private]
        s3_endpoint(name, shape, vpc.id, [table.id for _, table, _ in private], self)
        interface_endpoints(name, shape, vpc.id, private_ids, self)

        self.vpc_id = vpc.id
        ways_out = [resource.urn for _, _, parts in private for resource in parts]
        self.private_subnet_ids = pulumi.Output.all(*private_ids, *ways_out).apply(lambda known: known[: len(private_ids)])
        self.public_subnet_ids = pulumi.Output.all(*(subnet.id for subnet in public.values()))
        self.register_outputs(
            {"vpc_id": self.vpc_id, "private_subnet_ids": self.private_subnet_ids, "public_subnet_ids": self.public_subnet_ids}
        )
