"""The calls by which the provider makes and deletes what is EC2's; aws_calls.py says after whom they are written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aws_order import Made, only

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from aws_order import Call, Order


def _vpc(order: Order) -> Made:
    vpc = order.call("ec2", "CreateVpc", "cidrBlock", **order.tagged("vpc"))["Vpc"]["VpcId"]
    order.call("ec2", "ModifyVpcAttribute", "enableDnsSupport", VpcId=vpc)
    order.call("ec2", "ModifyVpcAttribute", "enableDnsHostnames", VpcId=vpc)
    return Made(vpc, deleted_by=[("ec2", "DeleteVpc", {"VpcId": vpc})])


def _subnet(order: Order) -> Made:
    public = order.take("mapPublicIpOnLaunch")
    names = ("vpcId", "cidrBlock", "availabilityZone")
    subnet = order.call("ec2", "CreateSubnet", *names, **order.tagged("subnet"))["Subnet"]["SubnetId"]
    order.call("ec2", "ModifySubnetAttribute", SubnetId=subnet, MapPublicIpOnLaunch=public)
    return Made(subnet, deleted_by=[("ec2", "DeleteSubnet", {"SubnetId": subnet})])


def _internet_gateway(order: Order) -> Made:
    vpc = order.take("vpcId")
    gateway = order.call("ec2", "CreateInternetGateway", **order.tagged("internet-gateway"))["InternetGateway"]["InternetGatewayId"]
    both = {"InternetGatewayId": gateway, "VpcId": vpc}
    order.call("ec2", "AttachInternetGateway", **both)
    gone: list[Call] = [("ec2", "DetachInternetGateway", both)]
    return Made(gateway, deleted_by=[*gone, ("ec2", "DeleteInternetGateway", {"InternetGatewayId": gateway})])


def _eip(order: Order) -> Made:
    found = order.call("ec2", "AllocateAddress", "domain", **order.tagged("elastic-ip"))
    released = ("ec2", "ReleaseAddress", {"AllocationId": found["AllocationId"]})
    return Made(found["AllocationId"], {"allocationId": found["AllocationId"], "publicIp": found["PublicIp"]}, [released])


def _nat_gateway(order: Order) -> Made:
    found = order.call("ec2", "CreateNatGateway", "allocationId", "subnetId", **order.tagged("natgateway"))
    gateway = found["NatGateway"]["NatGatewayId"]
    return Made(gateway, deleted_by=[("ec2", "DeleteNatGateway", {"NatGatewayId": gateway})])


def _route_table(order: Order) -> Made:
    table = order.call("ec2", "CreateRouteTable", "vpcId", **order.tagged("route-table"))["RouteTable"]["RouteTableId"]
    return Made(table, deleted_by=[("ec2", "DeleteRouteTable", {"RouteTableId": table})])


def _route(order: Order) -> Made:
    table, block = order.take("routeTableId"), order.take("destinationCidrBlock")
    which = {"RouteTableId": table, "DestinationCidrBlock": block}
    order.call("ec2", "CreateRoute", "gatewayId", "natGatewayId", **which)
    return Made(f"r-{table}{block}", deleted_by=[("ec2", "DeleteRoute", which)])


def _route_table_association(order: Order) -> Made:
    found = order.call("ec2", "AssociateRouteTable", "routeTableId", "subnetId")["AssociationId"]
    return Made(found, deleted_by=[("ec2", "DisassociateRouteTable", {"AssociationId": found})])


def _vpc_endpoint(order: Order) -> Made:
    names = ("vpcId", "serviceName", "vpcEndpointType", "privateDnsEnabled", "subnetIds", "securityGroupIds", "routeTableIds", "policy")
    policy = only(PolicyDocument=order.take("policy"))
    found = order.call("ec2", "CreateVpcEndpoint", *names, **order.tagged("vpc-endpoint"), **policy)["VpcEndpoint"]["VpcEndpointId"]
    return Made(found, deleted_by=[("ec2", "DeleteVpcEndpoints", {"VpcEndpointIds": [found]})])


def _security_group(order: Order) -> Made:
    names = ("description", "vpcId")
    group = order.call("ec2", "CreateSecurityGroup", *names, GroupName=order.take("name"), **order.tagged("security-group"))["GroupId"]
    # AWS lets everything out of a new group; the provider takes that away, as the program says which rules there are.
    order.call("ec2", "RevokeSecurityGroupEgress", GroupId=group, IpPermissions=[_EVERYTHING])
    for way in ("Ingress", "Egress"):
        if rules := order.take(way.lower()):
            permissions = [_within(group, each) for each in rules]
            order.call("ec2", f"AuthorizeSecurityGroup{way}", GroupId=group, IpPermissions=permissions)
    return Made(group, deleted_by=[("ec2", "DeleteSecurityGroup", {"GroupId": group})])


def _within(group: str, rule: dict[str, Any]) -> dict[str, Any]:
    """A rule between the members of a group, the one kind that stands inside a group here."""
    assert rule.keys() == {"description", "protocol", "fromPort", "toPort", "self"}, f"the calls of {rule} are not written down here"
    assert rule["self"] is True, f"the calls of {rule} are not written down here"
    ports = {"FromPort": rule["fromPort"], "ToPort": rule["toPort"]}
    return {"IpProtocol": rule["protocol"], **ports, "UserIdGroupPairs": [{"GroupId": group, "Description": rule["description"]}]}


_EVERYTHING = {"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}


def _default_security_group(order: Order) -> Made:
    """Taken over, not made: it is the VPC's own, and goes with it."""
    assert order.take("ingress") == order.take("egress") == [], "the calls of rules inside a group are not written down here"
    filters = [{"Name": "vpc-id", "Values": [order.take("vpcId")]}, {"Name": "group-name", "Values": ["default"]}]
    group = order.call("ec2", "DescribeSecurityGroups", Filters=filters)["SecurityGroups"][0]["GroupId"]
    order.call("ec2", "RevokeSecurityGroupEgress", GroupId=group, IpPermissions=[_EVERYTHING])
    order.call("ec2", "CreateTags", Resources=[group], Tags=order.tags())
    return Made(group)


def _ingress_rule(order: Order) -> Made:
    return _rule(order, "Ingress")


def _egress_rule(order: Order) -> Made:
    return _rule(order, "Egress")


def _rule(order: Order, way: str) -> Made:
    group, cidr, description = order.take("securityGroupId"), order.take("cidrIpv4"), order.take("description")
    ports = only(FromPort=order.take("fromPort"), ToPort=order.take("toPort"))
    other = order.take("referencedSecurityGroupId")
    sources: dict[str, Any] = {"IpRanges": [only(CidrIp=cidr, Description=description)]} if cidr else {}
    sources |= {"UserIdGroupPairs": [only(GroupId=other, Description=description)]} if other is not None else {}
    permission = {"IpProtocol": order.take("ipProtocol"), **ports, **sources}
    tags = order.tagged("security-group-rule")
    found = order.call("ec2", f"AuthorizeSecurityGroup{way}", GroupId=group, IpPermissions=[permission], **tags)
    rule = found["SecurityGroupRules"][0]["SecurityGroupRuleId"]
    return Made(rule, deleted_by=[("ec2", f"RevokeSecurityGroup{way}", {"GroupId": group, "SecurityGroupRuleIds": [rule]})])


def _launch_template(order: Order) -> Made:
    name, description = order.take("name"), order.take("description")
    order.take("updateDefaultVersion")
    tags = order.tagged("launch-template")
    written = {key: order.take(key) for key in _TEMPLATE_DATA}
    for each in written["tagSpecifications"]:
        each["tags"] = [{"Key": key, "Value": value} for key, value in each["tags"].items()]
    data = {"LaunchTemplateName": name, "VersionDescription": description, "LaunchTemplateData": only(**written)}
    found = order.call("ec2", "CreateLaunchTemplate", **data, **tags)["LaunchTemplate"]
    numbers = {"latestVersion": found["LatestVersionNumber"], "defaultVersion": found["DefaultVersionNumber"]}
    gone = ("ec2", "DeleteLaunchTemplate", {"LaunchTemplateId": found["LaunchTemplateId"]})
    return Made(found["LaunchTemplateId"], numbers, [gone])


_TEMPLATE_DATA = ("blockDeviceMappings", "instanceType", "metadataOptions", "tagSpecifications", "userData")


def _placement_group(order: Order) -> Made:
    name = order.take("name")
    order.call(
        "ec2", "CreatePlacementGroup", "strategy", "spreadLevel", "partitionCount", GroupName=name, **order.tagged("placement-group")
    )
    return Made(name, deleted_by=[("ec2", "DeletePlacementGroup", {"GroupName": name})])


def _tag(order: Order) -> Made:
    resource, key = order.take("resourceId"), order.take("key")
    order.call("ec2", "CreateTags", Resources=[resource], Tags=[{"Key": key, "Value": order.take("value")}])
    return Made(f"{resource},{key}", deleted_by=[("ec2", "DeleteTags", {"Resources": [resource], "Tags": [{"Key": key}]})])


NETWORK: Mapping[str, Callable[[Order], Made]] = {
    "aws:ec2/defaultSecurityGroup:DefaultSecurityGroup": _default_security_group,
    "aws:ec2/eip:Eip": _eip,
    "aws:ec2/internetGateway:InternetGateway": _internet_gateway,
    "aws:ec2/launchTemplate:LaunchTemplate": _launch_template,
    "aws:ec2/natGateway:NatGateway": _nat_gateway,
    "aws:ec2/placementGroup:PlacementGroup": _placement_group,
    "aws:ec2/route:Route": _route,
    "aws:ec2/routeTable:RouteTable": _route_table,
    "aws:ec2/routeTableAssociation:RouteTableAssociation": _route_table_association,
    "aws:ec2/securityGroup:SecurityGroup": _security_group,
    "aws:ec2/subnet:Subnet": _subnet,
    "aws:ec2/tag:Tag": _tag,
    "aws:ec2/vpc:Vpc": _vpc,
    "aws:ec2/vpcEndpoint:VpcEndpoint": _vpc_endpoint,
    "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule": _egress_rule,
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule": _ingress_rule,
}
"""By Pulumi's type, who makes it."""
