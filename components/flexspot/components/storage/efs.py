"""An EFS file system for checkpoints or for datasets: its network access, an access point for each team's folder, and its policy."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
import hashlib
from typing import NotRequired, TypedDict

import pulumi
from pulumi_aws import ec2, efs, vpc
from pulumi_kubernetes.core.v1 import CSIPersistentVolumeSourceArgs

from flexspot.capacity.catalog.platform import POD_USER
from flexspot.capacity.settings.storage import EFS_TEAMS, Efs
from flexspot.capacity.values.errors import SettingsProblem
from flexspot.components.cloud_names import SECURITY_GROUP_NAME_CHARACTERS, check_aws_tags, check_cluster_name, check_kms_key, fitted
from flexspot.components.iam import VERSION, PolicyDocument, Statement, as_json
from flexspot.components.shared_args import checked_options, publish, refuse
from flexspot.components.storage.claimed_volume import (
    CHECKPOINTS,
    SHARED_FOLDER,
    FolderVolume,
    VolumeArgs,
    check_purpose,
    check_setting_names,
    declare_claimed_volume,
    resolve_folder_mount,
)

NFS_PORT = 2049


_FIRST_ID = 50_000
_IDS = 2_000_000_000


def team_id(team: str) -> int:
    """Return the user and the group of a team's files: unique to the team, independent of its place in the settings, and no system id.

    It is built from the name, because a different number replaces an access point, which then may not touch its old files. Two names with
    the same number are very unlikely (one in 100,000 for 190 teams), and would still be in two folders.
    """
    return _FIRST_ID + int.from_bytes(hashlib.sha256(team.encode()).digest()[:8]) % _IDS


def client_policy(access_points: list[str], *, writable: bool) -> PolicyDocument:
    """Return the policy for clients without an identity, as the driver's mounts are. They need a team's access point and TLS.

    `access_points` are the ARNs of the teams' access points. Others admit no one. Without a policy, every client that reaches a mount
    target has all rights, including root's ("Default EFS file system policy" in the EFS user guide, "Using IAM to control access to file
    systems"). The condition on mount targets keeps a policy for all principals from being a public one. The last statement also applies to
    identities, which otherwise have the permissions of their own policies.
    """
    writing = ["elasticfilesystem:ClientWrite"] if writable else []
    return {
        "Version": VERSION,
        "Statement": [
            Statement(
                Sid="ThroughAccessPoints",
                Effect="Allow",
                Principal={"AWS": "*"},
                Action=["elasticfilesystem:ClientMount", *writing],
                Condition={
                    "Bool": {"elasticfilesystem:AccessedViaMountTarget": "true"},
                    "StringEquals": {"elasticfilesystem:AccessPointArn": access_points},
                },
            ),
            Statement(
                Sid="DenyInsecureTransport",
                Effect="Deny",
                Principal={"AWS": "*"},
                Action=[f"elasticfilesystem:Client{what}" for what in ("Mount", "Write", "RootAccess")],
                Condition={"Bool": {"aws:SecureTransport": "false"}},
            ),
        ],
    }


class EfsFileSystemArgs(TypedDict):
    """Arguments of EfsFileSystem."""

    cluster: str
    """The cluster's name, with which resource names start."""

    purpose: str
    """`checkpoints`, where each team writes in a separate folder, or `datasets`, where all teams read one folder."""

    teams: list[str]
    """The teams' names. Each team's checkpoints are in the folder of its name."""

    vpc_id: pulumi.Input[str]
    """The VPC of the nodes."""

    subnets: dict[str, pulumi.Input[str]]
    """Subnet ids by zone, one for each zone with nodes: EFS accepts one mount target per zone."""

    node_security_group_id: pulumi.Input[str]
    """Security group of all nodes, which mount on behalf of their pods."""

    kms_key: NotRequired[pulumi.Input[str] | None]
    """ARN of the key that encrypts the files. A different key replaces the file system. Default: the account's EFS key."""

    infrequent_access_days: NotRequired[int | None]
    """Days after which an unread file moves to Infrequent Access, until it is read again. 0: never. Default: 30."""

    provisioned_mibps: NotRequired[int | None]
    """Provisioned throughput in MiB/s, paid whether used or not. Default: elastic throughput."""

    deletion_protection: NotRequired[bool | None]
    """While this is true, a preview fails if it would destroy or replace the file system. Default: True."""

    tags: dict[str, str]
    """Tags of everything that supports tags."""


class EfsFileSystem(pulumi.ComponentResource):
    """An encrypted file system in every zone of the nodes, reachable only from the nodes, with an access point for each team.

    EFS itself isolates teams. An access point shows only its team's folder, and its clients act as that team's user and group, whatever the
    pod runs as. Mounts without an access point, without TLS, or as root are rejected. The datasets folder is shared and read-only, as user
    and group 1000. The cluster only has to ensure that a team mounts its own access point. Pods cannot choose: the platform owns the
    volumes, their claims are bound from both sides, restricted Pod Security allows neither `nfs` volumes nor the host network, and the
    team's network policy allows no egress on port 2049.

    An identity of the account whose own policies allow elasticfilesystem:ClientMount and ClientWrite mounts with these permissions, also
    the whole file system. Datasets are written this way: by such a role with the mount option `iam`, or by DataSync.

    Files stay until they are deleted, and there is no copy: EFS has neither expiry nor versions, and AWS Backup is not set up here. When a
    team is removed its folder stays. A new file system is empty.

    Raises ValueError for a name that AWS or the settings would reject, an unknown purpose, no subnet, no or too many teams, and options
    that EFS does not have. This component has not been deployed to a live account, and has not been mounted.
    """

    file_system_id: pulumi.Output[str]
    """The file system's id, known once nodes can mount it."""

    def __init__(self, name: str, args: EfsFileSystemArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        options = _check(name, args)
        purpose, protected = args["purpose"], args.get("deletion_protection")
        super().__init__("flexspot:index:EfsFileSystem", name, {**args}, opts)
        child = pulumi.ResourceOptions(parent=self)
        named = {**args["tags"], "Name": f"{args['cluster']}-{purpose}"}
        made = efs.FileSystem(
            f"{name}-file-system",
            encrypted=True,
            kms_key_id=args.get("kms_key"),
            throughput_mode="elastic" if options.provisioned_mibps is None else "provisioned",
            provisioned_throughput_in_mibps=options.provisioned_mibps,
            lifecycle_policies=_lifecycle(options.infrequent_access_days),
            tags=named,
            # EFS deletes a file system with all its contents, without confirmation.
            opts=pulumi.ResourceOptions(parent=self, protect=True if protected is None else protected),
        )
        access_points = {team: self._access_point(name, args, made, team) for team in sorted(set(args["teams"]))}
        arns = pulumi.Output.all(*(each.arn for each in access_points.values()))
        policy = efs.FileSystemPolicy(
            f"{name}-policy",
            file_system_id=made.id,
            policy=arns.apply(lambda known: as_json(client_policy([*known], writable=purpose == CHECKPOINTS))),
            opts=child,
        )
        group = self._security_group(name, args, named)
        # After the policy: until then everyone has all permissions.
        after_policy = pulumi.ResourceOptions(parent=self, depends_on=[policy])
        targets = [
            efs.MountTarget(f"{name}-{zone}", file_system_id=made.id, subnet_id=subnet, security_groups=[group.id], opts=after_policy)
            for zone, subnet in sorted(args["subnets"].items())
        ]
        mountable = [policy.id, *(each.id for each in targets)]
        self.file_system_id = pulumi.Output.all(made.id, *mountable).apply(lambda known: str(known[0]))
        # Not an output: the handle of each team's volume, known once nodes can mount it.
        self.volume_handles = {team: pulumi.Output.concat(self.file_system_id, "::", each.id) for team, each in access_points.items()}
        publish(self)

    def _access_point(self, name: str, args: EfsFileSystemArgs, file_system: efs.FileSystem, team: str) -> efs.AccessPoint:
        own = args["purpose"] == CHECKPOINTS
        identity = team_id(team) if own else POD_USER
        return efs.AccessPoint(
            f"{name}-{team}",
            file_system_id=file_system.id,
            posix_user=efs.AccessPointPosixUserArgs(uid=identity, gid=identity),
            root_directory=efs.AccessPointRootDirectoryArgs(
                path=f"/{team if own else SHARED_FOLDER}",
                creation_info=efs.AccessPointRootDirectoryCreationInfoArgs(owner_uid=identity, owner_gid=identity, permissions="0750"),
            ),
            tags={**args["tags"], "team": team, "Name": f"{args['cluster']}-{args['purpose']}-{team}"},
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _security_group(self, name: str, args: EfsFileSystemArgs, tags: dict[str, str]) -> ec2.SecurityGroup:
        child = pulumi.ResourceOptions(parent=self)
        group = ec2.SecurityGroup(
            f"{name}-security-group",
            # AWS rejects names that begin with sg-, as a cluster's name may.
            name=fitted(f"efs-{args['purpose']}-{args['cluster']}", SECURITY_GROUP_NAME_CHARACTERS),
            description=f"NFS from the nodes to {args['purpose']}",
            vpc_id=args["vpc_id"],
            tags=tags,
            opts=child,
        )
        vpc.SecurityGroupIngressRule(
            f"{name}-nfs",
            security_group_id=group.id,
            description="NFS from the nodes",
            referenced_security_group_id=args["node_security_group_id"],
            ip_protocol="tcp",
            from_port=NFS_PORT,
            to_port=NFS_PORT,
            tags=tags,
            opts=child,
        )
        return group


def _lifecycle(idle_days: int) -> list[efs.FileSystemLifecyclePolicyArgs]:
    if not idle_days:
        return []
    # EFS accepts one rule in each entry.
    return [
        efs.FileSystemLifecyclePolicyArgs(transition_to_ia=f"AFTER_{idle_days}_DAY{'' if idle_days == 1 else 'S'}"),
        efs.FileSystemLifecyclePolicyArgs(transition_to_primary_storage_class="AFTER_1_ACCESS"),
    ]


def _check(name: str, args: EfsFileSystemArgs) -> Efs:
    owner = f"EfsFileSystem {name}"
    check_cluster_name(f"{owner}:", args["cluster"])
    check_purpose(owner, args["purpose"])
    if not 1 <= (teams := len(set(args["teams"]))) <= EFS_TEAMS:
        room = f"the policy of a file system has room for 1 to {EFS_TEAMS}"
        refuse(owner, SettingsProblem("teams", f"{teams} names", room, "add or remove some"))
    for team in args["teams"]:
        check_setting_names(owner, {"teams": team})
    if not args["subnets"]:
        problem = "is empty, but nodes can only mount the file system through a mount target in a subnet"
        refuse(owner, SettingsProblem("subnets", "", problem, "name one for each zone of the nodes"))
    check_kms_key(owner, args.get("kms_key"))
    check_aws_tags(owner, args["tags"])
    return checked_options(owner, Efs, args)


DRIVER = "efs.csi.aws.com"


class EfsVolumeArgs(VolumeArgs):
    """Arguments of EfsVolume."""

    purpose: str
    """`checkpoints` (read and write) or `datasets` (read-only)."""

    volume_handle: pulumi.Input[str]
    """The file system and the team's own access point, such as fs-0123::fsap-4567.

    It must be unique: of several volumes with the same handle a pod only gets the first."""


class EfsVolume(pulumi.ComponentResource):
    """A folder that any number of pods on any nodes can mount at once, through a claim of a fixed name, from an EfsFileSystem.

    It is a file system: programs can append, rename and lock, and a closed file is visible to the next program that opens it
    (close-to-open, as in NFS). The driver (the add-on aws-efs-csi-driver) mounts from the node over TLS, its default, and presents no
    identity. The volume's size, 1 GiB, has no meaning: Kubernetes requires one, the driver ignores it. The driver rejects ReadOnlyMany
    (volumeCapAccessModes in its pkg/driver/node.go at 00fa07a; its issues 972 and 1409), so datasets are mounted with the option `ro`.
    https://github.com/kubernetes-sigs/aws-efs-csi-driver/tree/master/examples/kubernetes/access_points

    Raises ValueError for names that Kubernetes rejects and an unknown purpose. It has not been mounted in a live cluster.
    """

    claim: pulumi.Output[str]
    """The claim's name, known once it exists."""

    volume: pulumi.Output[str]
    """The volume's name: the namespace's, the claim's and efs, cut to 63 characters."""

    def __init__(self, name: str, args: EfsVolumeArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        mount = resolve_folder_mount(f"EfsVolume {name}", args["purpose"], args)
        super().__init__("flexspot:index:EfsVolume", name, {**args}, opts)
        claimed = declare_claimed_volume(
            name,
            self,
            FolderVolume(
                namespace=args["namespace"],
                mount=mount,
                labels=args["labels"],
                source=CSIPersistentVolumeSourceArgs(
                    driver=DRIVER,
                    volume_handle=args["volume_handle"],
                    # Omitted when it is not true: the server drops a false.
                    read_only=True if mount.read_only else None,
                ),
                kind="efs",
                mounts_read_only=False,
            ),
        )
        self.claim = claimed.claim
        self.volume = claimed.volume
        publish(self)
