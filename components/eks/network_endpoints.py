"""Ways from the private subnets to services of AWS that do not leave its network."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi
from pulumi_aws import ec2, vpc

from components.eks.network_services import S3, service_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from components.eks.network_args import NetworkShape

_HTTPS = 443


def s3_endpoint(
    name: str, shape: NetworkShape, vpc_id: pulumi.Input[str], route_table_ids: Sequence[pulumi.Input[str]], parent: pulumi.Resource
) -> None:
    """S3 by the private route tables: models and checkpoints would otherwise be paid for by the gigabyte at the NAT."""
    ec2.VpcEndpoint(
        f"{name}-s3-endpoint",
        vpc_id=vpc_id,
        service_name=service_name(S3, shape.region),
        vpc_endpoint_type="Gateway",
        route_table_ids=route_table_ids,
        tags=shape.named("s3"),
        opts=pulumi.ResourceOptions(parent=parent),
    )


def interface_endpoints(
    name: str, shape: NetworkShape, vpc_id: pulumi.Input[str], subnet_ids: Sequence[pulumi.Input[str]], parent: pulumi.Resource
) -> None:
    """An endpoint for each service of the shape, under the service's usual name, which takes HTTPS from the VPC alone."""
    child = pulumi.ResourceOptions(parent=parent)
    if not shape.services:
        return
    group = ec2.SecurityGroup(
        f"{name}-endpoints-security-group",
        # AWS refuses names that begin with sg-, as a cluster's may.
        name=f"endpoints-{shape.cluster}",
        description="HTTPS from the VPC to endpoints of AWS services",
        vpc_id=vpc_id,
        tags=shape.named("endpoints"),
        opts=child,
    )
    vpc.SecurityGroupIngressRule(
        f"{name}-endpoints-https",
        security_group_id=group.id,
        description="HTTPS from the VPC",
        cidr_ipv4=shape.vpc_cidr,
        ip_protocol="tcp",
        from_port=_HTTPS,
        to_port=_HTTPS,
        tags=shape.named("endpoints-https"),
        opts=child,
    )
    for service in shape.services:
        ec2.VpcEndpoint(
            f"{name}-{service.replace('.', '-')}-endpoint",
            vpc_id=vpc_id,
            service_name=service_name(service, shape.region),
            vpc_endpoint_type="Interface",
            private_dns_enabled=True,
            subnet_ids=subnet_ids,
            security_group_ids=[group.id],
            tags=shape.named(service),
            opts=child,
        )
