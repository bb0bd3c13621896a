"""A team's identity in AWS, and its permissions on the buckets."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
from dataclasses import dataclass
from typing import NotRequired

import pulumi
from pulumi_aws import eks, iam

from flexspot.capacity.values.errors import SettingsProblem
from flexspot.components.cloud_names import (
    ROLE_NAME_LENGTH,
    check_aws_tags,
    check_cluster_name,
    check_kms_key,
    check_place,
    cluster_arn,
    fitted,
)
from flexspot.components.iam import (
    VERSION,
    PolicyDocument,
    Statement,
    as_json,
    pod_trust,
    role_arn,
)
from flexspot.components.shared_args import RoleOptionsArgs, check_role_options, publish, refuse
from flexspot.components.storage.claimed_volume import SHARED_FOLDER, check_dns_labels, check_setting_names
from flexspot.components.storage.s3_bucket import bucket_arn, check_bucket_name


@dataclass(frozen=True)
class TeamFolders:
    """A team's own folder in the checkpoint bucket, and the dataset bucket whose shared folder it reads."""

    partition: str
    team: str
    checkpoint_bucket: str
    dataset_bucket: str | None


def team_policy(folders: TeamFolders, kms_key: str | None) -> PolicyDocument:
    """Return the team's permissions: to read and write the objects of its own folder, to read datasets, and to use the key for both.

    A listing must name the folder as its prefix. One of the whole bucket, or of a prefix that other teams' names share, is rejected. The
    actions are those that Mountpoint needs, and the one that lets other clients resume an upload. The key may only be used through these
    buckets. https://github.com/awslabs/mountpoint-s3/blob/main/doc/CONFIGURATION.md#iam-permissions
    """
    checkpoints = bucket_arn(folders.partition, folders.checkpoint_bucket)
    statements = [
        _listing("ListCheckpoints", checkpoints, (folders.team,)),
        Statement(
            Sid="ReadAndWriteCheckpoints",
            Effect="Allow",
            Action=["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts"],
            Resource=f"{checkpoints}/{folders.team}/*",
        ),
    ]
    if kms_key is not None:
        # Uploads in parts also need to decrypt: https://repost.aws/knowledge-center/s3-multipart-kms-decrypt
        statements.append(_key_use("UseKeyForCheckpoints", ["kms:Decrypt", "kms:GenerateDataKey"], kms_key, checkpoints))
    if folders.dataset_bucket is not None:
        datasets = bucket_arn(folders.partition, folders.dataset_bucket)
        statements += [
            _listing("ListDatasets", datasets, (SHARED_FOLDER,)),
            Statement(
                Sid="ReadDatasets",
                Effect="Allow",
                Action="s3:GetObject",
                Resource=[f"{datasets}/{SHARED_FOLDER}/*"],
            ),
        ]
        if kms_key is not None:
            statements.append(_key_use("UseKeyForDatasets", ["kms:Decrypt"], kms_key, datasets))
    return {"Version": VERSION, "Statement": statements}


def _listing(sid: str, bucket: str, folders: tuple[str, ...]) -> Statement:
    return Statement(
        Sid=sid,
        Effect="Allow",
        Action="s3:ListBucket",
        Resource=bucket,
        # Also matches the folder itself, red/.
        Condition={"StringLike": {"s3:prefix": [f"{folder}/*" for folder in folders]}},
    )


def _key_use(sid: str, actions: list[str], kms_key: str, bucket: str) -> Statement:
    return Statement(
        Sid=sid,
        Effect="Allow",
        Action=actions,
        Resource=kms_key,
        # S3's context for KMS: the bucket with a bucket key, else the object.
        # https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucket-key.html
        Condition={"StringLike": {"kms:EncryptionContext:aws:s3:arn": [bucket, f"{bucket}/*"]}},
    )


class S3TeamAccessArgs(RoleOptionsArgs):
    """Arguments of S3TeamAccess."""

    team: str
    """The team's name, which is also the name of its folder in the checkpoint bucket."""

    environment: str
    """The environment's name, for the role's description."""

    account: str
    """The account of the cluster and of the role: 12 digits."""

    region: str
    """The region of the cluster."""

    cluster: str
    """The cluster's name: the first part of the role's name, and part of its trust policy."""

    cluster_name: pulumi.Input[str]
    """The same name, known once the cluster exists. The team's pods get the role after that."""

    namespace: str
    """The team's Kubernetes namespace."""

    service_account: str
    """The Kubernetes service account, in that namespace, whose pods act as the team."""

    checkpoint_bucket: str
    """Bucket that contains the team's folder."""

    tags: dict[str, str]
    """Tags of the role and of its association with the service account."""

    partition: NotRequired[str | None]
    """The partition of the account: aws, aws-cn or aws-us-gov. Default: aws."""

    dataset_bucket: NotRequired[str | None]
    """Bucket with datasets, a different one. Default: none, the team reads no dataset."""

    kms_key: NotRequired[pulumi.Input[str] | None]
    """ARN of the key that encrypts the buckets. Its key policy must leave permissions to IAM. Default: S3's own key."""


class S3TeamAccess(pulumi.ComponentResource):
    """An IAM role for the team's pods. It reads and writes the team's checkpoints, reads its datasets, and has no other permissions.

    The pods get it through EKS Pod Identity, so the Kubernetes service account needs no annotation, but the nodes must run the pod identity
    agent. The role trusts only this service account of this cluster, by the tags that EKS sets on the session. It does not use
    aws:SourceArn: the user guide does not name it for this service, and with it S3 volumes found no credentials
    (https://github.com/awslabs/mountpoint-s3-csi-driver/issues/781). Pods that started earlier have no credentials: start pods after this.

    Folders in S3 are prefixes and need not be created. A listing of the whole bucket is rejected, so clients name the folder:
    s3://bucket/team/, and S3MountpointVolume mounts with it as prefix. The role can only do what its own policy allows, so it cannot delete
    the bucket or change its policy: the bucket's policy allows nothing.

    Two clusters with the same name in one account, in two regions, would need the same role: give them different names.

    Raises ValueError for names that Kubernetes, EKS, IAM or S3 rejects, and for dataset folders without a dataset bucket. Also for a
    dataset bucket that is the checkpoint bucket (its folders belong to other teams), a key without its ARN, so many folders that the policy
    is too long, and tags that AWS rejects. It follows the documentation, and has not been deployed to a live account.
    """

    role_arn: pulumi.Output[str]
    """The role's ARN, known once it exists."""

    role_name: pulumi.Output[str]
    """The role's name, at most 64 characters, known once it exists."""

    checkpoint_url: pulumi.Output[str]
    """The URL of the team's checkpoints, s3://bucket/team/, known once the team may use it."""

    def __init__(self, name: str, args: S3TeamAccessArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        folders = _check(name, args)
        super().__init__("flexspot:index:S3TeamAccess", name, {**args}, opts)
        account, team = args["account"], args["team"]
        arn = role_arn(folders.partition, account, team_role_name(args["cluster"], team), args.get("iam_path"))
        cluster = cluster_arn(folders.partition, args["region"], account, args["cluster"])
        kms_key = args.get("kms_key")
        role = iam.Role(
            f"{name}-role",
            name=team_role_name(args["cluster"], team),
            path=args.get("iam_path"),
            permissions_boundary=args.get("permissions_boundary"),
            description=f"Pods of team {team} in namespace {args['namespace']} of {args['environment']}; made by Flexspot.",
            assume_role_policy=pod_trust(cluster, args["namespace"], args["service_account"]),
            tags=args["tags"],
            opts=pulumi.ResourceOptions(parent=self),
        )
        policy = iam.RolePolicy(
            f"{name}-policy",
            name="buckets",
            role=role.name,
            policy=_policy_text(folders, kms_key),
            opts=pulumi.ResourceOptions(parent=self),
        )
        association = eks.PodIdentityAssociation(
            f"{name}-pod-identity",
            cluster_name=args["cluster_name"],
            namespace=args["namespace"],
            service_account=args["service_account"],
            role_arn=arn,
            region=args["region"],
            tags=args["tags"],
            # So that pods may use the buckets as soon as they start.
            opts=pulumi.ResourceOptions(parent=self, depends_on=[role, policy]),
        )
        self.role_name = role.name
        self.role_arn = role.name.apply(lambda _: arn)
        self.checkpoint_url = association.id.apply(lambda _: f"s3://{args['checkpoint_bucket']}/{team}/")
        publish(self)


def team_role_name(cluster: str, team: str) -> str:
    """Return the name of a team's role, which is unique in the account if its clusters' names are."""
    return fitted(f"{cluster}-team-{team}", ROLE_NAME_LENGTH)


def _policy_text(folders: TeamFolders, kms_key: pulumi.Input[str] | None) -> pulumi.Input[str]:
    if kms_key is None or isinstance(kms_key, str):
        return as_json(team_policy(folders, kms_key))
    return pulumi.Output.from_input(kms_key).apply(lambda key: as_json(team_policy(folders, key)))


def _check(name: str, args: S3TeamAccessArgs) -> TeamFolders:
    owner = f"S3TeamAccess {name}"
    partition = args.get("partition") or "aws"
    check_place(f"{owner}:", args["account"], partition, args["region"])
    check_cluster_name(f"{owner}:", args["cluster"])
    check_setting_names(owner, {"team": args["team"], "environment": args["environment"]})
    check_dns_labels(owner, {"namespace": args["namespace"], "service_account": args["service_account"]})
    check_bucket_name(owner, "checkpoint_bucket", args["checkpoint_bucket"])
    dataset_bucket = args.get("dataset_bucket")
    if dataset_bucket is not None:
        check_bucket_name(owner, "dataset_bucket", dataset_bucket)
        if dataset_bucket == args["checkpoint_bucket"]:
            problem = "is also the checkpoint bucket, whose folders belong to teams"
            refuse(owner, SettingsProblem("dataset_bucket", repr(dataset_bucket), problem, "name another bucket"))
    check_kms_key(owner, args.get("kms_key"))
    check_aws_tags(owner, args["tags"])
    check_role_options(f"{owner}:", args.get("iam_path"), args.get("permissions_boundary"))
    return TeamFolders(partition, args["team"], args["checkpoint_bucket"], dataset_bucket)
