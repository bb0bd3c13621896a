"""An FSx for Lustre file system over the bucket of datasets: its zone, its network access, and its link to the bucket."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
from typing import NotRequired, TypedDict

import pulumi
from pulumi_aws import ec2, fsx, vpc
from pulumi_kubernetes.core.v1 import CSIPersistentVolumeSourceArgs

from flexspot.capacity.settings.storage import Lustre
from flexspot.components.cloud_names import SECURITY_GROUP_NAME_CHARACTERS, check_aws_tags, check_cluster_name, check_kms_key, fitted
from flexspot.components.shared_args import checked_options, publish
from flexspot.components.storage.claimed_volume import (
    DATASETS,
    SHARED_FOLDER,
    FolderVolume,
    VolumeArgs,
    declare_claimed_volume,
    resolve_folder_mount,
)

LUSTRE_PORTS = ((988, 988), (1018, 1023))
"""The TCP ports of Lustre's servers and their clients, in both directions.

Sources: FSx for Lustre user guide, "File system access control with Amazon VPC", and "Creating an FSx for Lustre file system fails".
"""

LUSTRE_VERSION = "2.15"
"""Recommended for all new file systems. 2.10, SCRATCH_2's default, cannot be linked to a bucket in this way.

Source: FSx API reference, CreateFileSystem, FileSystemTypeVersion, and CreateDataRepositoryAssociation.
"""

LINK_TIMEOUT = "2h"
"""Longest time to create a link to a bucket.

The provider gives up after ten minutes, which is too short for some buckets
(aws-samples/amazon-eks-machine-learning-with-terraform-and-kubeflow issue 112). Four million objects took FSx more than an hour
(aws/aws-parallelcluster issue 4211, of the older kind of link).
"""

_Rule = vpc.SecurityGroupIngressRule | vpc.SecurityGroupEgressRule


class LustreFileSystemArgs(TypedDict):
    """Arguments of LustreFileSystem."""

    cluster: str
    """The cluster's name, with which resource names start."""

    vpc_id: pulumi.Input[str]
    """The VPC of the nodes."""

    subnet_id: pulumi.Input[str]
    """The private subnet of the file system, which also determines its zone. A different subnet replaces it."""

    node_security_group_id: pulumi.Input[str]
    """Security group of all nodes, which mount on behalf of their pods. It gets two rules, for the servers' requests to their clients."""

    bucket: pulumi.Input[str]
    """Bucket with datasets, in the same region. The files are those of its folder `shared`."""

    capacity_gib: NotRequired[int | None]
    """Size in GiB: 1200, 2400 or a multiple of 2400. A smaller size replaces the file system. Default: 1200."""

    deployment: NotRequired[str | None]
    """PERSISTENT_2, or SCRATCH_2, which loses files when a server fails. A change replaces the file system. Default: PERSISTENT_2."""

    throughput_mbps_per_tib: NotRequired[int | None]
    """Throughput of PERSISTENT_2 in MB/s per TiB: 125, 250, 500 or 1000. Default: 125."""

    kms_key: NotRequired[pulumi.Input[str] | None]
    """ARN of the key that encrypts PERSISTENT_2. A different key replaces the file system. Default: the account's FSx key."""

    deletion_protection: NotRequired[bool | None]
    """While this is true, a preview fails if it would destroy or replace the file system. Default: True."""

    tags: dict[str, str]
    """Tags of everything that supports tags."""


class LustreFileSystem(pulumi.ComponentResource):
    """An encrypted file system in one zone, reachable only from the nodes, that shows the contents of the folder `shared` in the datasets
    bucket.

    Datasets are still written to the bucket. FSx reads its listing when the file system is created, and then each new, changed and deleted
    object. The contents of a file are fetched when it is first read, and kept. Nothing is written back to the bucket. Files have the owner
    and mode in their objects' metadata, or root and 755, which all may read. Nodes in other zones can mount it too, but AWS bills the
    cross-zone traffic, and while the zone is down so are the files. Every client that mounts it sees all of it: Lustre cannot isolate teams
    as EFS does, so only use it for data that all may read.

    Traffic is encrypted in transit if the machine's network cards do so by themselves (Nitro). Files always are. There are no backups,
    which FSx rejects with a bucket link. With the link none are needed.

    FSx creates a role for the bucket, AWSServiceRoleForFSxS3Access_ and the file system's id. The file system's creator needs
    iam:CreateServiceLinkedRole, AttachRolePolicy and PutRolePolicy for it. A bucket with a customer managed key is only readable if the key
    policy lets that role use it. https://docs.aws.amazon.com/fsx/latest/LustreGuide/create-dra-linked-data-repo.html

    Raises ValueError for a name that AWS or the settings would reject, and options that Lustre does not have. This component has not been
    deployed to a live account, and has not been mounted.
    """

    file_system_id: pulumi.Output[str]
    """The file system's id, known once its files are those of the bucket."""

    dns_name: pulumi.Output[str]
    """The name by which nodes reach it, known at the same time."""

    mount_name: pulumi.Output[str]
    """The name that they mount, known at the same time."""

    def __init__(self, name: str, args: LustreFileSystemArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        options = _check(name, args)
        protected = args.get("deletion_protection")
        super().__init__("flexspot:index:LustreFileSystem", name, {**args}, opts)
        named = {**args["tags"], "Name": f"{args['cluster']}-{DATASETS}"}
        group, rules = self._security_group(name, args, named)
        made = fsx.LustreFileSystem(
            f"{name}-file-system",
            deployment_type=options.deployment.value,
            per_unit_storage_throughput=options.bought_mbps_per_tib,
            storage_capacity=options.capacity_gib,
            storage_type="SSD",
            file_system_type_version=LUSTRE_VERSION,
            # SCRATCH_2 accepts no key: it is encrypted with FSx's own.
            kms_key_id=None if options.bought_mbps_per_tib is None else args.get("kms_key"),
            subnet_ids=args["subnet_id"],
            security_group_ids=[group.id],
            tags=named,
            # FSx checks at creation whether its servers may communicate, and rejects a group in which they may not.
            opts=pulumi.ResourceOptions(parent=self, depends_on=rules, protect=True if protected is None else protected),
        )
        linked = fsx.DataRepositoryAssociation(
            f"{name}-bucket",
            file_system_id=made.id,
            # The whole file system, so that paths are the same as in the mounted folder of the bucket.
            file_system_path="/",
            data_repository_path=pulumi.Output.concat("s3://", args["bucket"], f"/{SHARED_FOLDER}/"),
            batch_import_meta_data_on_create=True,
            s3=fsx.DataRepositoryAssociationS3Args(
                auto_import_policy=fsx.DataRepositoryAssociationS3AutoImportPolicyArgs(events=["NEW", "CHANGED", "DELETED"])
            ),
            tags=named,
            opts=pulumi.ResourceOptions(parent=self, custom_timeouts=pulumi.CustomTimeouts(create=LINK_TIMEOUT)),
        )
        self.file_system_id = _after(made.id, linked)
        self.dns_name = _after(made.dns_name, linked)
        self.mount_name = _after(made.mount_name, linked)
        publish(self)

    def _security_group(
        self, name: str, args: LustreFileSystemArgs, tags: dict[str, str]
    ) -> tuple[ec2.SecurityGroup, list[pulumi.Resource]]:
        """Create the servers' group, and all rules that they and their clients need to communicate."""
        child = pulumi.ResourceOptions(parent=self)
        group = ec2.SecurityGroup(
            f"{name}-security-group",
            # AWS rejects names that begin with sg-, as a cluster's name may.
            name=fitted(f"lustre-{DATASETS}-{args['cluster']}", SECURITY_GROUP_NAME_CHARACTERS),
            description=f"Lustre between the nodes and {DATASETS}",
            vpc_id=args["vpc_id"],
            tags=tags,
            opts=child,
        )
        nodes, rules = args["node_security_group_id"], list[pulumi.Resource]()
        wanted: list[tuple[str, type[_Rule], pulumi.Input[str], pulumi.Input[str]]] = [
            ("from-servers", vpc.SecurityGroupIngressRule, group.id, group.id),
            ("to-servers", vpc.SecurityGroupEgressRule, group.id, group.id),
            ("from-nodes", vpc.SecurityGroupIngressRule, group.id, nodes),
            ("to-nodes", vpc.SecurityGroupEgressRule, group.id, nodes),
            # Requests of the servers to their clients. The nodes' own group admits what they send.
            ("into-nodes", vpc.SecurityGroupIngressRule, nodes, group.id),
        ]
        for way, rule, of, peer in wanted:
            for first, last in LUSTRE_PORTS:
                rules.append(
                    rule(
                        f"{name}-{way}-{first}",
                        security_group_id=of,
                        referenced_security_group_id=peer,
                        description=f"Lustre {way.replace('-', ' ')}",
                        ip_protocol="tcp",
                        from_port=first,
                        to_port=last,
                        # A separate name, because an interrupted run finds the rule again by its tags.
                        tags={**tags, "Name": f"{tags['Name']}-lustre-{way}-{first}"},
                        opts=child,
                    )
                )
        return group, rules


def _after(value: pulumi.Output[str], resource: pulumi.CustomResource) -> pulumi.Output[str]:
    """Return the value, known once the resource exists."""
    return pulumi.Output.all(value, resource.id).apply(lambda known: str(known[0]))


def _check(name: str, args: LustreFileSystemArgs) -> Lustre:
    owner = f"LustreFileSystem {name}"
    check_cluster_name(f"{owner}:", args["cluster"])
    check_kms_key(owner, args.get("kms_key"))
    check_aws_tags(owner, args["tags"])
    return checked_options(owner, Lustre, args)


DRIVER = "fsx.csi.aws.com"


class LustreVolumeArgs(VolumeArgs):
    """Arguments of LustreVolume."""

    file_system_id: pulumi.Input[str]
    """The file system's id, such as fs-0123."""

    dns_name: pulumi.Input[str]
    """DNS name by which nodes reach it."""

    mount_name: pulumi.Input[str]
    """Its mount name, such as abcdefgh."""


class LustreVolume(pulumi.ComponentResource):
    """Datasets that any number of pods on any nodes can read at once, through a claim of a fixed name, from a LustreFileSystem.

    The driver (the add-on aws-fsx-csi-driver) mounts from the node, whose kernel must support Lustre: AL2023's and Bottlerocket's do
    (kubernetes-sigs/aws-fsx-csi-driver pull request 460; bottlerocket-os/bottlerocket issue 4676). It rejects ReadOnlyMany (its issue 164),
    so the volume is ReadWriteMany and mounted with the option `ro`, which no pod can remove. The volume handle is the file system's id with
    the namespace, because handles must be unique. The driver mounts by the attributes. Its size, 1 GiB, has no meaning: Kubernetes requires
    one. https://github.com/kubernetes-sigs/aws-fsx-csi-driver/tree/master/examples/kubernetes/static_provisioning

    Raises ValueError for names that Kubernetes rejects. It has not been mounted in a live cluster.
    """

    claim: pulumi.Output[str]
    """The claim's name, known once it exists."""

    volume: pulumi.Output[str]
    """The volume's name: the namespace's, the claim's and lustre, cut to 63 characters."""

    def __init__(self, name: str, args: LustreVolumeArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        mount = resolve_folder_mount(f"LustreVolume {name}", DATASETS, args)
        super().__init__("flexspot:index:LustreVolume", name, {**args}, opts)
        claimed = declare_claimed_volume(
            name,
            self,
            FolderVolume(
                namespace=args["namespace"],
                mount=mount,
                labels=args["labels"],
                source=CSIPersistentVolumeSourceArgs(
                    driver=DRIVER,
                    volume_handle=pulumi.Output.concat(args["file_system_id"], "::", args["namespace"]),
                    volume_attributes={"dnsname": args["dns_name"], "mountname": args["mount_name"]},
                ),
                # Without it every lock is an error, also for readers (mount.lustre).
                mount_options=["flock"],
                kind="lustre",
                mounts_read_only=False,
            ),
        )
        self.claim = claimed.claim
        self.volume = claimed.volume
        publish(self)
