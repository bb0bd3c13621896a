"""The AWS calls by which the real provider creates each resource type of the EKS stacks. Every input must have a place in one of them.

Written after hashicorp/terraform-provider-aws, internal/service/*/ (the version in flexspot/lab/providers/cloud_rules/aws.json), which
Pulumi's provider is built on. Calls that delete are left out: the stand-in cloud of the tests has the order of a deletion.
"""

from __future__ import annotations

import hashlib
from functools import reduce
from typing import TYPE_CHECKING, Any

from aws_models import UntranslatableError
from aws_order import Made, Order

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from aws_order import Account


def create(account: Account, kind: str, inputs: dict[str, Any]) -> Made:
    """Create a resource in AWS as the provider does. Raises UntranslatableError for an input that no call accepts."""
    if kind not in CREATED_BY:
        raise UntranslatableError(f"{kind}: its calls are unknown; add it to aws_calls.py")
    order = Order(account, kind, inputs)
    made = CREATED_BY[kind](order)
    if order.left:
        raise UntranslatableError(f"{kind}: no call takes {', '.join(sorted(order.left))}")
    return made


def _only(**inputs: Any) -> dict[str, Any]:
    return {key: value for key, value in inputs.items() if value is not None}


def _at(answer: Any, path: str) -> Any:
    return reduce(lambda found, key: found[key], path.split("."), answer)


def _one_call(
    service: str, operation: str, identity: str, outputs: Mapping[str, str] | None = None, *, tagged: str = "", **renamed: str
) -> Callable[[Order], Made]:
    """Return a creator for a type that a single call creates from all its inputs.

    `identity` is the id's place in the answer, or a text with inputs in braces. `outputs` are places in the answer. `renamed` are inputs
    that the request names differently.
    """

    def make(order: Order) -> Made:
        inputs = dict(order.left)
        tags = order.tagged(tagged) if tagged else {}
        given = {member: order.take(name) for member, name in renamed.items()}
        answer = order.call(service, operation, *order.left, **given, **tags)
        named = identity.format_map(inputs) if "{" in identity else _at(answer, identity)
        return Made(named, {name: _at(answer, path) for name, path in (outputs or {}).items()})

    return make


# EC2


def _vpc(order: Order) -> Made:
    vpc = order.call("ec2", "CreateVpc", "cidrBlock", **order.tagged("vpc"))["Vpc"]["VpcId"]
    order.call("ec2", "ModifyVpcAttribute", "enableDnsSupport", VpcId=vpc)
    order.call("ec2", "ModifyVpcAttribute", "enableDnsHostnames", VpcId=vpc)
    return Made(vpc)


def _subnet(order: Order) -> Made:
    names = ("vpcId", "cidrBlock", "availabilityZone")
    subnet = order.call("ec2", "CreateSubnet", *names, **order.tagged("subnet"))["Subnet"]["SubnetId"]
    order.call("ec2", "ModifySubnetAttribute", "mapPublicIpOnLaunch", SubnetId=subnet)
    return Made(subnet)


def _internet_gateway(order: Order) -> Made:
    gateway = order.call("ec2", "CreateInternetGateway", **order.tagged("internet-gateway"))["InternetGateway"]["InternetGatewayId"]
    order.call("ec2", "AttachInternetGateway", "vpcId", InternetGatewayId=gateway)
    return Made(gateway)


_EVERYTHING = {"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}


def _security_group(order: Order) -> Made:
    names = ("description", "vpcId")
    group = order.call("ec2", "CreateSecurityGroup", *names, GroupName=order.take("name"), **order.tagged("security-group"))["GroupId"]
    # AWS allows all outgoing traffic of a new group. The provider removes that rule, as the program declares the rules.
    order.call("ec2", "RevokeSecurityGroupEgress", GroupId=group, IpPermissions=[_EVERYTHING])
    for way in ("Ingress", "Egress"):
        if rules := order.take(way.lower()):
            permissions = [_within(group, each) for each in rules]
            order.call("ec2", f"AuthorizeSecurityGroup{way}", GroupId=group, IpPermissions=permissions)
    return Made(group)


def _within(group: str, rule: dict[str, Any]) -> dict[str, Any]:
    """Add a rule between members of the group, the only kind of rule written inside a group here."""
    assert rule.keys() == {"description", "protocol", "fromPort", "toPort", "self"}, f"the calls of {rule} are not written down here"
    assert rule["self"] is True, f"the calls of {rule} are not written down here"
    ports = {"FromPort": rule["fromPort"], "ToPort": rule["toPort"]}
    return {"IpProtocol": rule["protocol"], **ports, "UserIdGroupPairs": [{"GroupId": group, "Description": rule["description"]}]}


def _default_security_group(order: Order) -> Made:
    """Adopt the VPC's own group instead of creating one."""
    assert order.take("ingress") == order.take("egress") == [], "the calls of rules inside a group are not written down here"
    filters = [{"Name": "vpc-id", "Values": [order.take("vpcId")]}, {"Name": "group-name", "Values": ["default"]}]
    group = order.call("ec2", "DescribeSecurityGroups", Filters=filters)["SecurityGroups"][0]["GroupId"]
    order.call("ec2", "RevokeSecurityGroupEgress", GroupId=group, IpPermissions=[_EVERYTHING])
    order.call("ec2", "CreateTags", "tags", Resources=[group])
    return Made(group)


def _rule(way: str) -> Callable[[Order], Made]:
    def make(order: Order) -> Made:
        cidr, other, description = order.take("cidrIpv4"), order.take("referencedSecurityGroupId"), order.take("description")
        sources: dict[str, Any] = {"IpRanges": [_only(CidrIp=cidr, Description=description)]} if cidr else {}
        sources |= {"UserIdGroupPairs": [_only(GroupId=other, Description=description)]} if other is not None else {}
        ports = _only(FromPort=order.take("fromPort"), ToPort=order.take("toPort"))
        permission = {"IpProtocol": order.take("ipProtocol"), **ports, **sources}
        which = {"GroupId": order.take("securityGroupId"), "IpPermissions": [permission], **order.tagged("security-group-rule")}
        found = order.call("ec2", f"AuthorizeSecurityGroup{way}", **which)
        return Made(found["SecurityGroupRules"][0]["SecurityGroupRuleId"])

    return make


def _launch_template(order: Order) -> Made:
    names = {"LaunchTemplateName": order.take("name"), "VersionDescription": order.take("description")}
    order.take("updateDefaultVersion")
    tags = order.tagged("launch-template")
    data = order.rest()
    for each in data["tagSpecifications"]:
        each["tags"] = [{"Key": key, "Value": value} for key, value in each["tags"].items()]
    found = order.call("ec2", "CreateLaunchTemplate", **names, LaunchTemplateData=data, **tags)["LaunchTemplate"]
    numbers = {"latestVersion": found["LatestVersionNumber"], "defaultVersion": found["DefaultVersionNumber"]}
    return Made(found["LaunchTemplateId"], numbers)


def _tag(order: Order) -> Made:
    resource, key = order.take("resourceId"), order.take("key")
    order.call("ec2", "CreateTags", Resources=[resource], Tags=[{"Key": key, "Value": order.take("value")}])
    return Made(f"{resource},{key}")


# EFS and FSx


def _token(order: Order) -> str:
    """Return a token of at most 64 characters. EFS treats requests with the same token as the same resource."""
    return hashlib.sha256(order.left["tags"]["Name"].encode()).hexdigest()


def _file_system(order: Order) -> Made:
    lifecycle = order.take("lifecyclePolicies")
    found = order.call("efs", "CreateFileSystem", *order.left, CreationToken=_token(order))
    if lifecycle:
        order.call("efs", "PutLifecycleConfiguration", FileSystemId=found["FileSystemId"], LifecyclePolicies=lifecycle)
    return Made(found["FileSystemId"], {"arn": found["FileSystemArn"]})


def _access_point(order: Order) -> Made:
    found = order.call("efs", "CreateAccessPoint", *order.left, ClientToken=_token(order))
    return Made(found["AccessPointId"], {"arn": found["AccessPointArn"]})


def _lustre_file_system(order: Order) -> Made:
    of_lustre = _only(**{key: order.take(key) for key in ("deploymentType", "perUnitStorageThroughput")})
    named = {"FileSystemType": "LUSTRE", "LustreConfiguration": of_lustre}
    found = order.call("fsx", "CreateFileSystem", *order.left, **named)["FileSystem"]
    # AWS chooses the mount name, and moto sets none.
    return Made(found["FileSystemId"], {"arn": found["ResourceARN"], "dnsName": found["DNSName"], "mountName": "fsxabcde"})


# EKS


def _cluster(order: Order) -> Made:
    name, logs, network = order.take("name"), order.take("enabledClusterLogTypes"), order.take("vpcConfig")
    logging = {"clusterLogging": [{"types": logs, "enabled": True}]} if logs else None
    found = order.call("eks", "CreateCluster", *order.left, name=name, logging=logging, resourcesVpcConfig=network)["cluster"]
    own = found["resourcesVpcConfig"]["clusterSecurityGroupId"]
    outputs = {"arn": found["arn"], "endpoint": found["endpoint"], "certificateAuthority": found["certificateAuthority"]}
    return Made(name, {**outputs, "vpcConfig": {**network, "clusterSecurityGroupId": own}})


def _node_group(order: Order) -> Made:
    cluster, prefix = order.left["clusterName"], order.take("nodeGroupNamePrefix", "")
    name = order.take("nodeGroupName") or f"{prefix}{'0' * 26}"
    renamed = {"nodeRole": order.take("nodeRoleArn"), "subnets": order.take("subnetIds"), "nodegroupName": name}
    found = order.call("eks", "CreateNodegroup", *order.left, **renamed)["nodegroup"]
    return Made(f"{cluster}:{name}", {"arn": found["nodegroupArn"], "nodeGroupName": name})


def _addon(order: Order) -> Made:
    which = {"clusterName": order.take("clusterName"), "addonName": order.take("addonName")}
    # Sent with the later call of the same kind, and with the deletion.
    later, _ = order.take("resolveConflictsOnUpdate"), order.take("preserve")
    order.call("eks", "CreateAddon", *order.left, **which, resolveConflicts=order.take("resolveConflictsOnCreate"))
    order.call("eks", "UpdateAddon", **which, resolveConflicts=later)
    return Made(":".join(map(str, which.values())))


# IAM and KMS


def _service_linked_role(order: Order) -> Made:
    # The provider writes the tags in a separate call.
    service, tags = order.take("awsServiceName"), order.tags()
    found = order.call("iam", "CreateServiceLinkedRole", "description", AWSServiceName=service)["Role"]
    if tags:
        order.call("iam", "TagRole", RoleName=found["RoleName"], Tags=tags)
    return Made(found["Arn"], {"name": found["RoleName"]})


def _key(order: Order) -> Made:
    order.take("deletionWindowInDays")
    rotated = order.take("enableKeyRotation")
    found = order.call("kms", "CreateKey", *order.left)["KeyMetadata"]
    if rotated:
        order.call("kms", "EnableKeyRotation", KeyId=found["KeyId"])
    return Made(found["KeyId"], {"arn": found["Arn"], "keyId": found["KeyId"]})


# S3


def _bucket(order: Order) -> Made:
    bucket, tags = order.take("bucket"), order.tags()
    order.take("forceDestroy")
    order.call("s3", "CreateBucket", Bucket=bucket)
    order.call("s3", "PutBucketTagging", Bucket=bucket, Tagging={"TagSet": tags})
    return Made(bucket, {"arn": f"arn:aws:s3:::{bucket}"})


def _of_bucket(operation: str, member: str) -> Callable[[Order], Made]:
    """Return a creator for a type that sets one property of a bucket: all inputs but the bucket are in one member of the request."""

    def make(order: Order) -> Made:
        bucket = order.take("bucket")
        order.call("s3", operation, Bucket=bucket, **{member: order.rest()})
        return Made(bucket)

    return make


# SQS, events and logs

_ATTRIBUTES = {
    "messageRetentionSeconds": "MessageRetentionPeriod",
    "visibilityTimeoutSeconds": "VisibilityTimeout",
    "receiveWaitTimeSeconds": "ReceiveMessageWaitTimeSeconds",
    "sqsManagedSseEnabled": "SqsManagedSseEnabled",
    "redrivePolicy": "RedrivePolicy",
}


def _queue(order: Order) -> Made:
    attributes = {name: value for key, name in _ATTRIBUTES.items() if (value := order.take(key)) is not None}
    url = order.call("sqs", "CreateQueue", "tags", QueueName=order.take("name"), Attributes=attributes)["QueueUrl"]
    arn = order.call("sqs", "GetQueueAttributes", QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    return Made(url, {"url": url, "arn": arn})


def _of_queue(name: str, attribute: str) -> Callable[[Order], Made]:
    def make(order: Order) -> Made:
        url = order.take("queueUrl")
        order.call("sqs", "SetQueueAttributes", QueueUrl=url, Attributes={attribute: order.take(name)})
        return Made(url)

    return make


def _event_target(order: Order) -> Made:
    rule, target = order.take("rule"), order.take("targetId")
    order.call("events", "PutTargets", Rule=rule, Targets=[{"Id": target, "Arn": order.take("arn")}])
    return Made(f"{rule}-{target}")


def _log_group(order: Order) -> Made:
    name = order.take("name")
    order.call("logs", "CreateLogGroup", "tags", "kmsKeyId", logGroupName=name)
    order.call("logs", "PutRetentionPolicy", "retentionInDays", logGroupName=name)
    return Made(name)


CREATED_BY: Mapping[str, Callable[[Order], Made]] = {
    "aws:cloudwatch/eventRule:EventRule": _one_call("events", "PutRule", "{name}", {"arn": "RuleArn"}),
    "aws:cloudwatch/eventTarget:EventTarget": _event_target,
    "aws:cloudwatch/logGroup:LogGroup": _log_group,
    "aws:ec2/defaultSecurityGroup:DefaultSecurityGroup": _default_security_group,
    "aws:ec2/eip:Eip": _one_call(
        "ec2", "AllocateAddress", "AllocationId", {"allocationId": "AllocationId", "publicIp": "PublicIp"}, tagged="elastic-ip"
    ),
    "aws:ec2/internetGateway:InternetGateway": _internet_gateway,
    "aws:ec2/launchTemplate:LaunchTemplate": _launch_template,
    "aws:ec2/natGateway:NatGateway": _one_call("ec2", "CreateNatGateway", "NatGateway.NatGatewayId", tagged="natgateway"),
    "aws:ec2/placementGroup:PlacementGroup": _one_call("ec2", "CreatePlacementGroup", "{name}", tagged="placement-group", GroupName="name"),
    "aws:ec2/route:Route": _one_call("ec2", "CreateRoute", "r-{routeTableId}{destinationCidrBlock}"),
    "aws:ec2/routeTable:RouteTable": _one_call("ec2", "CreateRouteTable", "RouteTable.RouteTableId", tagged="route-table"),
    "aws:ec2/routeTableAssociation:RouteTableAssociation": _one_call("ec2", "AssociateRouteTable", "AssociationId"),
    "aws:ec2/securityGroup:SecurityGroup": _security_group,
    "aws:ec2/subnet:Subnet": _subnet,
    "aws:ec2/tag:Tag": _tag,
    "aws:ec2/vpc:Vpc": _vpc,
    "aws:ec2/vpcEndpoint:VpcEndpoint": _one_call(
        "ec2", "CreateVpcEndpoint", "VpcEndpoint.VpcEndpointId", tagged="vpc-endpoint", PolicyDocument="policy"
    ),
    "aws:efs/accessPoint:AccessPoint": _access_point,
    "aws:efs/fileSystem:FileSystem": _file_system,
    "aws:efs/fileSystemPolicy:FileSystemPolicy": _one_call("efs", "PutFileSystemPolicy", "{fileSystemId}"),
    "aws:efs/mountTarget:MountTarget": _one_call("efs", "CreateMountTarget", "MountTargetId"),
    "aws:eks/accessEntry:AccessEntry": _one_call("eks", "CreateAccessEntry", "{clusterName}:{principalArn}"),
    "aws:eks/accessPolicyAssociation:AccessPolicyAssociation": _one_call(
        "eks", "AssociateAccessPolicy", "{clusterName}#{principalArn}#{policyArn}"
    ),
    "aws:eks/addon:Addon": _addon,
    "aws:eks/cluster:Cluster": _cluster,
    "aws:eks/nodeGroup:NodeGroup": _node_group,
    "aws:eks/podIdentityAssociation:PodIdentityAssociation": _one_call("eks", "CreatePodIdentityAssociation", "association.associationId"),
    "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation": _one_call(
        "fsx", "CreateDataRepositoryAssociation", "Association.AssociationId"
    ),
    "aws:fsx/lustreFileSystem:LustreFileSystem": _lustre_file_system,
    "aws:iam/policy:Policy": _one_call(
        "iam", "CreatePolicy", "Policy.Arn", {"arn": "Policy.Arn"}, PolicyName="name", PolicyDocument="policy"
    ),
    "aws:iam/role:Role": _one_call(
        "iam",
        "CreateRole",
        "{name}",
        {"arn": "Role.Arn", "uniqueId": "Role.RoleId"},
        RoleName="name",
        AssumeRolePolicyDocument="assumeRolePolicy",
    ),
    "aws:iam/rolePolicy:RolePolicy": _one_call(
        "iam", "PutRolePolicy", "{role}:{name}", RoleName="role", PolicyName="name", PolicyDocument="policy"
    ),
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment": _one_call("iam", "AttachRolePolicy", "{role}/{policyArn}", RoleName="role"),
    "aws:iam/serviceLinkedRole:ServiceLinkedRole": _service_linked_role,
    "aws:kms/alias:Alias": _one_call("kms", "CreateAlias", "{name}", AliasName="name"),
    "aws:kms/key:Key": _key,
    "aws:s3/bucket:Bucket": _bucket,
    "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration": _of_bucket(
        "PutBucketLifecycleConfiguration", "LifecycleConfiguration"
    ),
    "aws:s3/bucketOwnershipControls:BucketOwnershipControls": _of_bucket("PutBucketOwnershipControls", "OwnershipControls"),
    "aws:s3/bucketPolicy:BucketPolicy": _one_call("s3", "PutBucketPolicy", "{bucket}"),
    "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock": _of_bucket("PutPublicAccessBlock", "PublicAccessBlockConfiguration"),
    "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration": _of_bucket(
        "PutBucketEncryption", "ServerSideEncryptionConfiguration"
    ),
    "aws:s3/bucketVersioning:BucketVersioning": _one_call("s3", "PutBucketVersioning", "{bucket}"),
    "aws:sqs/queue:Queue": _queue,
    "aws:sqs/queuePolicy:QueuePolicy": _of_queue("policy", "Policy"),
    "aws:sqs/redriveAllowPolicy:RedriveAllowPolicy": _of_queue("redriveAllowPolicy", "RedriveAllowPolicy"),
    "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule": _rule("Egress"),
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule": _rule("Ingress"),
}
"""Function that creates each resource type, by Pulumi type."""
