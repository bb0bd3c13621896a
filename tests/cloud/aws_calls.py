"""The calls of AWS by which the real provider makes each resource type of the EKS stacks, and those by which it deletes it.

Written after hashicorp/terraform-provider-aws, internal/service/*/ (the version in provider_rules/aws.json), which Pulumi's provider is
made of.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from aws_models import UntranslatableError
from aws_network_calls import NETWORK
from aws_order import Made, Order, only

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from aws_order import Account, Call


def create(account: Account, kind: str, inputs: dict[str, Any]) -> Made:
    """Makes a resource in AWS as the provider does."""
    if kind not in CREATED_BY:
        raise UntranslatableError(f"{kind}: nobody has said by which calls it is made; add it to aws_calls.py")
    order = Order(account, kind, inputs)
    made = CREATED_BY[kind](order)
    order.done()
    return made


# EFS


def _token(tags: list[dict[str, str]]) -> str:
    """The provider makes tokens up, of 64 characters at most; what has the same one is the same thing to EFS."""
    return hashlib.sha256(next(each["Value"] for each in tags if each["Key"] == "Name").encode()).hexdigest()


def _file_system(order: Order) -> Made:
    lifecycle, tags = order.take("lifecyclePolicies"), order.tags()
    names = ("encrypted", "kmsKeyId", "throughputMode", "provisionedThroughputInMibps")
    found = order.call("efs", "CreateFileSystem", *names, CreationToken=_token(tags), Tags=tags)
    identity = found["FileSystemId"]
    if lifecycle:
        order.call("efs", "PutLifecycleConfiguration", FileSystemId=identity, LifecyclePolicies=lifecycle)
    return Made(identity, {"arn": found["FileSystemArn"]}, [("efs", "DeleteFileSystem", {"FileSystemId": identity})])


def _file_system_policy(order: Order) -> Made:
    identity = order.take("fileSystemId")
    order.call("efs", "PutFileSystemPolicy", "policy", FileSystemId=identity)
    return Made(identity, deleted_by=[("efs", "DeleteFileSystemPolicy", {"FileSystemId": identity})])


def _mount_target(order: Order) -> Made:
    found = order.call("efs", "CreateMountTarget", "fileSystemId", "subnetId", "securityGroups")["MountTargetId"]
    return Made(found, deleted_by=[("efs", "DeleteMountTarget", {"MountTargetId": found})])


def _access_point(order: Order) -> Made:
    tags = order.tags()
    found = order.call("efs", "CreateAccessPoint", "fileSystemId", "posixUser", "rootDirectory", ClientToken=_token(tags), Tags=tags)
    gone = ("efs", "DeleteAccessPoint", {"AccessPointId": found["AccessPointId"]})
    return Made(found["AccessPointId"], {"arn": found["AccessPointArn"]}, [gone])


# FSx


def _lustre_file_system(order: Order) -> Made:
    of_lustre = {
        "DeploymentType": order.take("deploymentType"),
        "PerUnitStorageThroughput": order.take("perUnitStorageThroughput"),
    }
    renamed = {"FileSystemType": "LUSTRE", "LustreConfiguration": only(**of_lustre), "SubnetIds": [order.take("subnetIds")]}
    names = ("storageCapacity", "storageType", "fileSystemTypeVersion", "kmsKeyId", "securityGroupIds")
    found = order.call("fsx", "CreateFileSystem", *names, **renamed, Tags=order.tags())["FileSystem"]
    identity = found["FileSystemId"]
    # What it is mounted by is AWS's own choice, of which moto makes none.
    outputs = {"arn": found["ResourceARN"], "dnsName": found["DNSName"], "mountName": "fsxabcde"}
    return Made(identity, outputs, [("fsx", "DeleteFileSystem", {"FileSystemId": identity})])


def _data_repository_association(order: Order) -> Made:
    batch = {"BatchImportMetaDataOnCreate": order.take("batchImportMetaDataOnCreate")}
    names = ("fileSystemId", "fileSystemPath", "dataRepositoryPath", "s3")
    found = order.call("fsx", "CreateDataRepositoryAssociation", *names, **batch, Tags=order.tags())["Association"]["AssociationId"]
    return Made(found, deleted_by=[("fsx", "DeleteDataRepositoryAssociation", {"AssociationId": found})])


# EKS


def _cluster(order: Order) -> Made:
    name, logs = order.take("name"), order.take("enabledClusterLogTypes")
    logging = {"clusterLogging": [{"types": logs, "enabled": True}]} if logs else None
    network = order.take("vpcConfig")
    found = order.call("eks", "CreateCluster", *_OF_A_CLUSTER, name=name, logging=logging, resourcesVpcConfig=network)["cluster"]
    own = found["resourcesVpcConfig"]["clusterSecurityGroupId"]
    outputs = {"arn": found["arn"], "endpoint": found["endpoint"], "certificateAuthority": found["certificateAuthority"]}
    outputs["vpcConfig"] = {**network, "clusterSecurityGroupId": own}
    protection: list[Call] = [("eks", "UpdateClusterConfig", {"name": name, "deletionProtection": False})]
    return Made(name, outputs, [*protection, ("eks", "DeleteCluster", {"name": name})])


_OF_A_CLUSTER = (
    "accessConfig",
    "bootstrapSelfManagedAddons",
    "computeConfig",
    "deletionProtection",
    "encryptionConfig",
    "kubernetesNetworkConfig",
    "roleArn",
    "storageConfig",
    "tags",
    "upgradePolicy",
    "version",
    "zonalShiftConfig",
)


def _node_group(order: Order) -> Made:
    cluster, prefix = order.take("clusterName"), order.take("nodeGroupNamePrefix", "")
    name = order.take("nodeGroupName") or f"{prefix}{'0' * 26}"
    renamed = {"nodeRole": order.take("nodeRoleArn"), "subnets": order.take("subnetIds"), "nodegroupName": name, "clusterName": cluster}
    taken = ("amiType", "capacityType", "labels", "launchTemplate", "nodeRepairConfig", "scalingConfig", "tags", "taints", "updateConfig")
    found = order.call("eks", "CreateNodegroup", *taken, "version", "releaseVersion", "instanceTypes", "diskSize", **renamed)["nodegroup"]
    gone = ("eks", "DeleteNodegroup", {"clusterName": cluster, "nodegroupName": name})
    return Made(f"{cluster}:{name}", {"arn": found["nodegroupArn"], "nodeGroupName": name}, [gone])


def _addon(order: Order) -> Made:
    cluster, addon = order.take("clusterName"), order.take("addonName")
    # Said to the later call of the same kind, and to the deletion.
    later, keep = order.take("resolveConflictsOnUpdate"), order.take("preserve")
    renamed = {"resolveConflicts": order.take("resolveConflictsOnCreate"), "clusterName": cluster, "addonName": addon}
    order.call("eks", "CreateAddon", "addonVersion", "configurationValues", "podIdentityAssociations", "tags", **renamed)
    order.call("eks", "UpdateAddon", clusterName=cluster, addonName=addon, resolveConflicts=later)
    return Made(f"{cluster}:{addon}", deleted_by=[("eks", "DeleteAddon", only(clusterName=cluster, addonName=addon, preserve=keep))])


def _access_entry(order: Order) -> Made:
    which = {"clusterName": order.take("clusterName"), "principalArn": order.take("principalArn")}
    order.call("eks", "CreateAccessEntry", "type", "kubernetesGroups", "userName", "tags", **which)
    return Made(f"{which['clusterName']}:{which['principalArn']}", deleted_by=[("eks", "DeleteAccessEntry", which)])


def _access_policy_association(order: Order) -> Made:
    which = {"clusterName": order.take("clusterName"), "principalArn": order.take("principalArn"), "policyArn": order.take("policyArn")}
    order.call("eks", "AssociateAccessPolicy", "accessScope", **which)
    return Made("#".join(map(str, which.values())), deleted_by=[("eks", "DisassociateAccessPolicy", which)])


def _pod_identity_association(order: Order) -> Made:
    cluster, names = order.take("clusterName"), ("namespace", "serviceAccount", "roleArn", "tags", "targetRoleArn", "disableSessionTags")
    found = order.call("eks", "CreatePodIdentityAssociation", *names, clusterName=cluster)["association"]["associationId"]
    return Made(found, deleted_by=[("eks", "DeletePodIdentityAssociation", {"clusterName": cluster, "associationId": found})])


# IAM and KMS


def _role(order: Order) -> Made:
    name, document, tags = order.take("name"), order.take("assumeRolePolicy"), order.tags()
    renamed = {"RoleName": name, "AssumeRolePolicyDocument": document, "Tags": tags}
    found = order.call("iam", "CreateRole", "description", "path", "maxSessionDuration", "permissionsBoundary", **renamed)["Role"]
    return Made(name, {"arn": found["Arn"], "uniqueId": found["RoleId"]}, [("iam", "DeleteRole", {"RoleName": name})])


def _policy(order: Order) -> Made:
    renamed = {"PolicyName": order.take("name"), "PolicyDocument": order.take("policy"), "Tags": order.tags()}
    arn = order.call("iam", "CreatePolicy", "description", "path", **renamed)["Policy"]["Arn"]
    return Made(arn, {"arn": arn}, [("iam", "DeletePolicy", {"PolicyArn": arn})])


def _role_policy(order: Order) -> Made:
    which = {"RoleName": order.take("role"), "PolicyName": order.take("name")}
    order.call("iam", "PutRolePolicy", **which, PolicyDocument=order.take("policy"))
    return Made(":".join(map(str, which.values())), deleted_by=[("iam", "DeleteRolePolicy", which)])


def _role_policy_attachment(order: Order) -> Made:
    which = {"RoleName": order.take("role"), "PolicyArn": order.take("policyArn")}
    order.call("iam", "AttachRolePolicy", **which)
    return Made("/".join(map(str, which.values())), deleted_by=[("iam", "DetachRolePolicy", which)])


def _service_linked_role(order: Order) -> Made:
    service = order.take("awsServiceName")
    # The provider writes its tags by a call of their own.
    tags = order.tags()
    found = order.call("iam", "CreateServiceLinkedRole", "description", AWSServiceName=service)["Role"]
    if tags:
        order.call("iam", "TagRole", RoleName=found["RoleName"], Tags=tags)
    return Made(found["Arn"], {"name": found["RoleName"]}, [("iam", "DeleteServiceLinkedRole", {"RoleName": found["RoleName"]})])


def _key(order: Order) -> Made:
    tags = [{"TagKey": each["Key"], "TagValue": each["Value"]} for each in order.tags()]
    days, rotated = order.take("deletionWindowInDays"), order.take("enableKeyRotation")
    found = order.call("kms", "CreateKey", "description", "policy", Tags=tags)["KeyMetadata"]
    if rotated:
        order.call("kms", "EnableKeyRotation", KeyId=found["KeyId"])
    gone = ("kms", "ScheduleKeyDeletion", {"KeyId": found["KeyId"], "PendingWindowInDays": days})
    return Made(found["KeyId"], {"arn": found["Arn"], "keyId": found["KeyId"]}, [gone])


def _alias(order: Order) -> Made:
    name = order.take("name")
    order.call("kms", "CreateAlias", "targetKeyId", AliasName=name)
    return Made(name, deleted_by=[("kms", "DeleteAlias", {"AliasName": name})])


# S3


def _bucket(order: Order) -> Made:
    bucket, tags = order.take("bucket"), order.tags()
    order.take("forceDestroy")
    order.call("s3", "CreateBucket", Bucket=bucket)
    order.call("s3", "PutBucketTagging", Bucket=bucket, Tagging={"TagSet": tags})
    return Made(bucket, {"arn": f"arn:aws:s3:::{bucket}"}, [("s3", "DeleteBucket", {"Bucket": bucket})])


def _lifecycle(order: Order) -> Made:
    bucket, rules = order.take("bucket"), order.take("rules")
    order.call("s3", "PutBucketLifecycleConfiguration", Bucket=bucket, LifecycleConfiguration={"Rules": rules})
    return Made(bucket, deleted_by=[("s3", "DeleteBucketLifecycle", {"Bucket": bucket})])


def _ownership(order: Order) -> Made:
    bucket, rule = order.take("bucket"), order.take("rule")
    order.call("s3", "PutBucketOwnershipControls", Bucket=bucket, OwnershipControls={"Rules": [rule]})
    return Made(bucket, deleted_by=[("s3", "DeleteBucketOwnershipControls", {"Bucket": bucket})])


def _bucket_policy(order: Order) -> Made:
    bucket = order.take("bucket")
    order.call("s3", "PutBucketPolicy", "policy", Bucket=bucket)
    return Made(bucket, deleted_by=[("s3", "DeleteBucketPolicy", {"Bucket": bucket})])


def _public_access_block(order: Order) -> Made:
    bucket = order.take("bucket")
    names = ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets")
    order.call("s3", "PutPublicAccessBlock", Bucket=bucket, PublicAccessBlockConfiguration={each: order.take(each) for each in names})
    return Made(bucket, deleted_by=[("s3", "DeletePublicAccessBlock", {"Bucket": bucket})])


def _encryption(order: Order) -> Made:
    bucket, rules = order.take("bucket"), order.take("rules")
    order.call("s3", "PutBucketEncryption", Bucket=bucket, ServerSideEncryptionConfiguration={"Rules": rules})
    return Made(bucket, deleted_by=[("s3", "DeleteBucketEncryption", {"Bucket": bucket})])


def _versioning(order: Order) -> Made:
    bucket, wanted = order.take("bucket"), order.take("versioningConfiguration")
    order.call("s3", "PutBucketVersioning", Bucket=bucket, VersioningConfiguration=wanted)
    return Made(bucket, deleted_by=[("s3", "PutBucketVersioning", {"Bucket": bucket, "VersioningConfiguration": {"Status": "Suspended"}})])


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
    return Made(url, {"url": url, "arn": arn}, [("sqs", "DeleteQueue", {"QueueUrl": url})])


def _queue_policy(order: Order) -> Made:
    url = order.take("queueUrl")
    order.call("sqs", "SetQueueAttributes", QueueUrl=url, Attributes={"Policy": order.take("policy")})
    return Made(url, deleted_by=[("sqs", "SetQueueAttributes", {"QueueUrl": url, "Attributes": {"Policy": ""}})])


def _redrive_allow_policy(order: Order) -> Made:
    url = order.take("queueUrl")
    order.call("sqs", "SetQueueAttributes", QueueUrl=url, Attributes={"RedriveAllowPolicy": order.take("redriveAllowPolicy")})
    return Made(url, deleted_by=[("sqs", "SetQueueAttributes", {"QueueUrl": url, "Attributes": {"RedriveAllowPolicy": ""}})])


def _event_rule(order: Order) -> Made:
    name = order.take("name")
    arn = order.call("events", "PutRule", "description", "eventPattern", Name=name, Tags=order.tags())["RuleArn"]
    return Made(name, {"arn": arn}, [("events", "DeleteRule", {"Name": name})])


def _event_target(order: Order) -> Made:
    rule, target = order.take("rule"), order.take("targetId")
    order.call("events", "PutTargets", Rule=rule, Targets=[{"Id": target, "Arn": order.take("arn")}])
    return Made(f"{rule}-{target}", deleted_by=[("events", "RemoveTargets", {"Rule": rule, "Ids": [target]})])


def _log_group(order: Order) -> Made:
    name, days = order.take("name"), order.take("retentionInDays")
    order.call("logs", "CreateLogGroup", "tags", "kmsKeyId", logGroupName=name)
    order.call("logs", "PutRetentionPolicy", logGroupName=name, retentionInDays=days)
    return Made(name, deleted_by=[("logs", "DeleteLogGroup", {"logGroupName": name})])


CREATED_BY: Mapping[str, Callable[[Order], Made]] = {
    **NETWORK,
    "aws:cloudwatch/eventRule:EventRule": _event_rule,
    "aws:cloudwatch/eventTarget:EventTarget": _event_target,
    "aws:cloudwatch/logGroup:LogGroup": _log_group,
    "aws:efs/accessPoint:AccessPoint": _access_point,
    "aws:efs/fileSystem:FileSystem": _file_system,
    "aws:efs/fileSystemPolicy:FileSystemPolicy": _file_system_policy,
    "aws:efs/mountTarget:MountTarget": _mount_target,
    "aws:eks/accessEntry:AccessEntry": _access_entry,
    "aws:eks/accessPolicyAssociation:AccessPolicyAssociation": _access_policy_association,
    "aws:eks/addon:Addon": _addon,
    "aws:eks/cluster:Cluster": _cluster,
    "aws:eks/nodeGroup:NodeGroup": _node_group,
    "aws:eks/podIdentityAssociation:PodIdentityAssociation": _pod_identity_association,
    "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation": _data_repository_association,
    "aws:fsx/lustreFileSystem:LustreFileSystem": _lustre_file_system,
    "aws:iam/policy:Policy": _policy,
    "aws:iam/role:Role": _role,
    "aws:iam/rolePolicy:RolePolicy": _role_policy,
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment": _role_policy_attachment,
    "aws:iam/serviceLinkedRole:ServiceLinkedRole": _service_linked_role,
    "aws:kms/alias:Alias": _alias,
    "aws:kms/key:Key": _key,
    "aws:s3/bucket:Bucket": _bucket,
    "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration": _lifecycle,
    "aws:s3/bucketOwnershipControls:BucketOwnershipControls": _ownership,
    "aws:s3/bucketPolicy:BucketPolicy": _bucket_policy,
    "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock": _public_access_block,
    "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration": _encryption,
    "aws:s3/bucketVersioning:BucketVersioning": _versioning,
    "aws:sqs/queue:Queue": _queue,
    "aws:sqs/queuePolicy:QueuePolicy": _queue_policy,
    "aws:sqs/redriveAllowPolicy:RedriveAllowPolicy": _redrive_allow_policy,
}
"""By Pulumi's type, who makes it."""
