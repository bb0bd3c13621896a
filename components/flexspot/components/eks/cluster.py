"""An EKS cluster, access to its API server for administrators and teams, and its checks before anything is registered."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
import re
from typing import NotRequired, TypedDict, get_args

import pulumi
from pulumi_aws import cloudwatch, ec2, eks, iam, kms, vpc

from flexspot.capacity.catalog.platform import PARTITIONS
from flexspot.capacity.catalog.versions import RECOMMENDED, Addon, shipped_versions, version_order
from flexspot.capacity.settings.cluster import LogDays, Support, SystemPool
from flexspot.capacity.settings.network import WIDEST, Access, ControlPlane, EksNetworkSettings, too_wide
from flexspot.capacity.settings.teams import RESERVED_GROUPS
from flexspot.capacity.values.errors import SettingsProblem
from flexspot.capacity.values.names import ADDON_VERSION, AMI_ALIAS, EKS_VERSION, IAM_ROLE
from flexspot.components.cloud_names import (
    DISCOVERY_TAG,
    POLICY_NAME_CHARACTERS,
    check_choice,
    check_cluster_name,
    check_form,
    check_kms_key,
    check_place,
    fitted,
)
from flexspot.components.eks.addons import ADDONS, AddonInstaller
from flexspot.components.eks.cluster_args import EksClusterArgs, EksSystemPoolArgs, eks_cluster_arn, named, system_pool_of
from flexspot.components.eks.system_nodes import role_name, system_node_group
from flexspot.components.iam import VERSION, PolicyDocument, RoleShape, Statement, as_json, granted_role, service_trust
from flexspot.components.kubeconfig import eks_credentials_command, eks_kubeconfig, part_of
from flexspot.components.shared_args import check_role_options, checked_options, filled, ipv4_range, publish, refuse

ACCESSES = [Access.PRIVATE.value, Access.PUBLIC_CIDRS.value]
"""EKS's kinds of access. It has no dns_iam, because no endpoint checks IAM before the request reaches the API server."""

RETENTIONS = get_args(LogDays)
"""Retention periods of CloudWatch Logs in days. 0, forever, is not among them, because logs must be limited."""

_SMALLEST_DISK_GIB = 20

_ARM = re.compile(r"(a1|[a-z]+\d+g[a-z]*)\..*")
"""Instance types with AWS's own processors, which have a g after the generation, as in m7g, c6gd or im4gn."""


def check_cluster(name: str, args: EksClusterArgs) -> None:
    """Raise ValueError for values that EKS would reject, and for unsafe or unlimited clusters."""
    where, days = f"EksCluster {name}", args["log_retention_days"]
    check_cluster_name(f"{where}:", args["cluster"])
    check_place(f"{where}:", args["account"], args["partition"], args["region"])
    check_form(f"{where}: version", args["version"], EKS_VERSION)
    check_choice(f"{where}: support", args["support"], list(Support))
    check_choice(f"{where}: access", args["access"], ACCESSES)
    _check_cidrs(where, args)
    if days not in RETENTIONS:
        problem = f"must be one of {', '.join(map(str, RETENTIONS))}"
        refuse(where, SettingsProblem("log_retention_days", str(days), problem, "use 90 if in doubt"))
    _check_admins(where, args)
    _check_nodes(where, args)
    _check_versions(where, args["addon_versions"])
    check_kms_key(where, args["logs_kms_key"])
    check_role_options(f"{where}:", args["iam_path"], args["permissions_boundary"])


def _check_nodes(where: str, args: EksClusterArgs) -> None:
    auto_mode = args["auto_mode"]
    for key, value in (("system_pool", args["system_pool"]), ("ami", args["ami"])):
        if (value is None) != auto_mode:
            problem = "is not allowed with auto_mode, where AWS manages the nodes" if auto_mode else "is required without auto_mode"
            refuse(where, SettingsProblem(key, "", problem, "leave it out" if auto_mode else "give it"))
    if not auto_mode:
        check_form(f"{where}: ami", args["ami"] or "", AMI_ALIAS)
        _check_system_pool(where, system_pool_of(args))


def _check_cidrs(where: str, args: EksClusterArgs) -> None:
    checked_options(where, EksNetworkSettings, args, "services_cidr")
    checked_options(where, ControlPlane, args)
    ranges = args["private_cidrs"]
    for written in ranges:
        ipv4_range(f"{where}: private_cidrs", written)
    if too_wide(ranges):
        problem = f"has a range wider than /{WIDEST}, a large part of the internet"
        refuse(where, SettingsProblem("private_cidrs", repr(ranges), problem, "name the ranges of your own network"))


def _check_admins(where: str, args: EksClusterArgs) -> None:
    form = re.compile(rf"arn:{re.escape(args['partition'])}:iam::\d{{12}}:role/[\w+=,.@/-]+")
    invalid = [arn for arn in args["admin_role_arns"] if not form.fullmatch(arn)]
    if invalid or len(set(args["admin_role_arns"])) < len(args["admin_role_arns"]):
        example = f"arn:{args['partition']}:iam::{args['account']}:role/platform-admin"
        problem, remedy = f"must list ARNs of roles, each once, such as {example}", "for a user or a session, name its role"
        refuse(where, SettingsProblem("admin_role_arns", repr(args["admin_role_arns"]), problem, remedy))


def _check_system_pool(where: str, pool: EksSystemPoolArgs) -> None:
    if not re.fullmatch(r"[a-z][a-z0-9-]*\.[a-z0-9-]+", pool["machine"]) or _ARM.fullmatch(pool["machine"]):
        problem = "must be an instance type with an x86 processor"
        refuse(where, SettingsProblem("system_pool.machine", repr(pool["machine"]), problem, "name one, such as m6i.large"))
    checked_options(f"{where}: system_pool", SystemPool, pool)
    if pool["disk_gib"] < _SMALLEST_DISK_GIB:
        least = f"must be at least {_SMALLEST_DISK_GIB}"
        refuse(where, SettingsProblem("system_pool.disk_gib", str(pool["disk_gib"]), least, "use 50 if in doubt"))


def _check_versions(where: str, versions: dict[str, str]) -> None:
    for addon, version in versions.items():
        check_choice(f"{where} addon_versions", addon, sorted(each.name for each in ADDONS))
        if version == RECOMMENDED:
            continue
        if not re.fullmatch(ADDON_VERSION, version):
            form = f"must be {RECOMMENDED}, or a version as EKS spells it, such as v1.14.3-eksbuild.3"
            remedy = "list the versions with `aws eks describe-addon-versions`"
            refuse(where, SettingsProblem(f"addon_versions.{addon}", repr(version), form, remedy))
        floor = shipped_versions().addons_at_least.get(Addon(addon))
        if floor is not None and version_order(version) < version_order(floor.version):
            problem = f"must be {floor.version} or newer, because {floor.because}"
            refuse(where, SettingsProblem(f"addon_versions.{addon}", repr(version), problem, "name a newer one"))


_ADMIN = "AmazonEKSClusterAdminPolicy"
_HTTPS = 443


def api_security_group(name: str, args: EksClusterArgs, parent: pulumi.Resource) -> ec2.SecurityGroup:
    """Return a security group for the private endpoint's addresses, in addition to EKS's own, which only admits the nodes.

    It also exists without rules, so that the first range adds a rule and does not change the cluster.
    """
    child = pulumi.ResourceOptions(parent=parent)
    group = ec2.SecurityGroup(
        f"{name}-api-security-group",
        # AWS rejects names that begin with sg-, as a cluster's name may.
        name=f"api-{args['cluster']}",
        description="HTTPS to the API server from inside the network",
        vpc_id=args["vpc_id"],
        tags=named(args, "api"),
        opts=child,
    )
    for cidr in sorted(set(args["private_cidrs"])):
        vpc.SecurityGroupIngressRule(
            f"{name}-api-from-{re.sub('[./]', '-', cidr)}",
            security_group_id=group.id,
            description="HTTPS to the API server",
            cidr_ipv4=cidr,
            ip_protocol="tcp",
            from_port=_HTTPS,
            to_port=_HTTPS,
            tags=named(args, "api"),
            opts=child,
        )
    return group


def admin_entries(name: str, args: EksClusterArgs, cluster: pulumi.Input[str], parent: pulumi.Resource) -> list[pulumi.Resource]:
    """Create an access entry with AWS's admin policy for each role that administers the cluster, and return the policy associations."""
    granted: list[pulumi.Resource] = []
    for arn in sorted(args["admin_role_arns"]):
        # Includes the account, because roles of two accounts may have the same name.
        _, account, role = arn.rsplit(":", 2)
        logical = f"{name}-admin-{account}-{role.removeprefix('role/').replace('/', '-')}"
        entry = eks.AccessEntry(
            logical, cluster_name=cluster, principal_arn=arn, type="STANDARD", tags=args["tags"], opts=pulumi.ResourceOptions(parent=parent)
        )
        association = eks.AccessPolicyAssociation(
            f"{logical}-policy",
            cluster_name=cluster,
            principal_arn=arn,
            policy_arn=f"arn:{args['partition']}:eks::aws:cluster-access-policy/{_ADMIN}",
            access_scope=eks.AccessPolicyAssociationAccessScopeArgs(type="cluster"),
            opts=pulumi.ResourceOptions(parent=parent, depends_on=[entry]),
        )
        granted.append(association)
    return granted


LOGGED = ["api", "audit", "authenticator", "controllerManager", "scheduler"]
"""All logs of a control plane."""

_KEY_DELETION_DAYS = 30


_ON_LOAD_BALANCING = eks.ClusterKubernetesNetworkConfigElasticLoadBalancingArgs(enabled=True)
_ON_STORAGE = eks.ClusterStorageConfigArgs(block_storage=eks.ClusterStorageConfigBlockStorageArgs(enabled=True))


class EksCluster(pulumi.ComponentResource):
    """A cluster that is private and logged by default, with its add-ons and a few nodes for controllers.

    The private endpoint always exists. Stored data is encrypted with the caller's key or with a key of the cluster. Identities are access
    entries and Pod Identity, never the aws-auth ConfigMap. The identity that creates the cluster administers it, with or without
    `admin_role_arns`: `up` must reach the API server before any other entry exists, and revoking this later would replace the cluster.

    By default Karpenter is installed on it separately. With `auto_mode` AWS runs Karpenter, for a fee per node, and chooses images. The
    built-in pools are not enabled, because they have no ceiling. The cluster therefore has no node role that could replace it. The cluster
    security group needs no additional rule for EFA: EKS lets it reach itself in both directions (EKS user guide, "View Amazon EKS security
    group requirements for clusters"), and rejects a duplicate rule.

    With access `private`, `up` needs a runner inside the network, in one of `private_cidrs`. Raises ValueError, before anything is
    registered, for values that EKS would reject and for unsafe or unlimited clusters. This component has not been deployed to a live
    account.
    """

    cluster_name: pulumi.Output[str]
    """The cluster's name. Resources that use it wait for the cluster."""

    arn: pulumi.Output[str]
    """The cluster's ARN."""

    endpoint: pulumi.Output[str]
    """The URL of the API server, with https://."""

    certificate_authority: pulumi.Output[str]
    """Certificate of the cluster's own authority, in base64."""

    security_group_id: pulumi.Output[str]
    """Id of the security group that EKS creates for the control plane and all nodes. Karpenter finds it by karpenter.sh/discovery."""

    kubeconfig: pulumi.Output[str]
    """A kubeconfig without secrets, as JSON. It needs the AWS CLI, and with `private` access a client in the network."""

    credentials_command: pulumi.Output[str]
    """The AWS CLI command that adds the cluster to a user's own kubeconfig."""

    def __init__(self, name: str, args: EksClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        args = filled(EksClusterArgs, args)
        check_cluster(name, args)
        # False is not among the component's inputs, because existing clusters would show it as a change.
        inputs = {key: value for key, value in args.items() if key != "auto_mode" or value}
        super().__init__("flexspot:index:EksCluster", name, inputs, opts)
        cluster = self._cluster(name, args)
        self.cluster_name = cluster.name
        self.arn = cluster.arn
        self.endpoint = cluster.endpoint
        self.certificate_authority = part_of(cluster.certificate_authority, lambda authority: authority.data)
        # Not an output: the VPC of its nodes' security groups.
        self.vpc_id: pulumi.Output[str] = pulumi.Output.from_input(args["vpc_id"])
        self.security_group_id = part_of(cluster.vpc_config, lambda network: network.cluster_security_group_id)
        found_by_karpenter = ec2.Tag(
            f"{name}-discovery-tag",
            resource_id=self.security_group_id,
            key=DISCOVERY_TAG,
            value=args["cluster"],
            opts=pulumi.ResourceOptions(parent=self),
        )
        # Not an output: resources that give people access, for others that must keep it until they are deleted.
        self.access: list[pulumi.Resource] = admin_entries(name, args, cluster.name, self)
        # Not an output: resources that everything in the cluster waits for. Before them, pods have no nodes, DNS or disks.
        self.ready: list[pulumi.Resource] = [found_by_karpenter]
        if not args["auto_mode"]:
            addons = AddonInstaller(name, args, args["version"], cluster.name, self)
            before = addons.before_nodes()
            nodes = system_node_group(name, args, cluster.name, self, before)
            self.ready += [*before, nodes, *addons.after_nodes([nodes])]

        self.kubeconfig = pulumi.Output.all(cluster.endpoint, self.certificate_authority).apply(
            lambda known: eks_kubeconfig(eks_cluster_arn(args), args["cluster"], args["region"], known[0], known[1])
        )
        self.credentials_command = cluster.name.apply(lambda _: eks_credentials_command(args["cluster"], args["region"]))
        publish(self)

    def _cluster(self, name: str, args: EksClusterArgs) -> eks.Cluster:
        granted = granted_role(
            f"{name}-role",
            RoleShape(
                name=role_name(args["cluster"], "cluster"),
                description="The cluster's control plane",
                trust=service_trust("eks.amazonaws.com", tags_session=args["auto_mode"]),
                partition=args["partition"],
                policies=["AmazonEKSClusterPolicy", *(AUTO_MODE_POLICIES if args["auto_mode"] else ())],
                tags=args["tags"],
                iam_path=args["iam_path"],
                permissions_boundary=args["permissions_boundary"],
            ),
            self,
        )
        grants = [*granted.grants, *([own_tags(name, args, granted.role, self)] if args["auto_mode"] else [])]
        # EKS would create it by itself, and keep everything forever.
        logs = cloudwatch.LogGroup(
            f"{name}-logs",
            name=f"/aws/eks/{args['cluster']}/cluster",
            retention_in_days=args["log_retention_days"],
            kms_key_id=args["logs_kms_key"],
            tags=args["tags"],
            opts=pulumi.ResourceOptions(parent=self),
        )
        is_public = args["access"] == Access.PUBLIC_CIDRS
        return eks.Cluster(
            f"{name}-cluster",
            name=args["cluster"],
            role_arn=granted.role.arn,
            version=args["version"],
            vpc_config=eks.ClusterVpcConfigArgs(
                subnet_ids=args["subnet_ids"] if args["control_plane_subnet_ids"] is None else args["control_plane_subnet_ids"],
                security_group_ids=[api_security_group(name, args, self).id],
                endpoint_private_access=True,
                endpoint_public_access=is_public,
                public_access_cidrs=sorted(set(args["cidrs"])) if is_public else None,
            ),
            kubernetes_network_config=eks.ClusterKubernetesNetworkConfigArgs(
                ip_family="ipv4",
                service_ipv4_cidr=args["services_cidr"],
                # The three parts of Auto Mode are on, or off, together.
                elastic_load_balancing=_ON_LOAD_BALANCING if args["auto_mode"] else None,
            ),
            compute_config=eks.ClusterComputeConfigArgs(enabled=True, node_pools=[]) if args["auto_mode"] else None,
            storage_config=_ON_STORAGE if args["auto_mode"] else None,
            access_config=eks.ClusterAccessConfigArgs(authentication_mode="API", bootstrap_cluster_creator_admin_permissions=True),
            encryption_config=eks.ClusterEncryptionConfigArgs(
                provider=eks.ClusterEncryptionConfigProviderArgs(key_arn=self._key(name, args)),
                # It means all stored data. The API accepts no other word (EKS user guide, "Default envelope encryption").
                resources=["secrets"],
            ),
            enabled_cluster_log_types=LOGGED,
            upgrade_policy=eks.ClusterUpgradePolicyArgs(support_type=args["support"].upper()),
            # Shift traffic away from a zone that AWS reports as impaired.
            zonal_shift_config=eks.ClusterZonalShiftConfigArgs(enabled=True),
            # Otherwise EKS installs some of its own, which are then not configured or upgraded.
            bootstrap_self_managed_addons=False,
            deletion_protection=args["deletion_protection"],
            tags=args["tags"],
            # EKS would reject the deletion only when everything on the cluster is already deleted. The engine rejects it in the preview.
            opts=pulumi.ResourceOptions(parent=self, depends_on=[*grants, logs], protect=args["deletion_protection"]),
        )

    def _key(self, name: str, args: EksClusterArgs) -> pulumi.Input[str]:
        if args["kms_key"] is not None:
            return args["kms_key"]
        child = pulumi.ResourceOptions(parent=self)
        key = kms.Key(
            f"{name}-key",
            description=f"What EKS cluster {args['cluster']} stores",
            enable_key_rotation=True,
            deletion_window_in_days=_KEY_DELETION_DAYS,
            tags=named(args, "key"),
            opts=child,
        )
        kms.Alias(f"{name}-key-alias", name=f"alias/eks/{args['cluster']}", target_key_id=key.id, opts=child)
        return key.arn


AUTO_MODE_POLICIES = ("AmazonEKSComputePolicy", "AmazonEKSBlockStoragePolicy", "AmazonEKSLoadBalancingPolicy", "AmazonEKSNetworkingPolicy")
"""Policies in addition to AmazonEKSClusterPolicy: for instances, volumes, load balancers and network interfaces.

awsdocs/amazon-eks-user-guide, latest/ug/automode/automode-get-started-cli.adoc at 01385604, "Cluster IAM Role" (read 2026-11-25).
"""

_CLUSTER_TAG = {"aws:RequestTag/eks:eks-cluster-name": "${aws:PrincipalTag/eks:eks-cluster-name}"}
"""EKS assumes the role with this session tag, so that one role cannot create resources for another cluster."""


def tag_document() -> PolicyDocument:
    """Return a policy that lets Auto Mode set custom tags on resources of NodeClasses. AWS's own policies only allow EKS's keys.

    The statements `Compute` and `Networking` of AWS's example (auto-learn-iam.adoc at 1fe584bb, "Custom AWS tags for EKS Auto resources").
    Those for volumes of claims, load balancers and Shield are omitted, because nothing here tags these.
    """
    return {
        "Version": VERSION,
        "Statement": [
            _statement(
                "Compute",
                ["ec2:CreateFleet", "ec2:RunInstances", "ec2:CreateLaunchTemplate"],
                ["eks:kubernetes-node-class-name", "eks:kubernetes-node-pool-name"],
            ),
            _statement("Networking", ["ec2:CreateNetworkInterface"], ["eks:kubernetes-cni-node-name"]),
        ],
    }


def _statement(sid: str, actions: list[str], marks: list[str]) -> Statement:
    return {
        "Sid": sid,
        "Effect": "Allow",
        "Action": actions,
        "Resource": "*",
        "Condition": {"StringEquals": _CLUSTER_TAG, "StringLike": {f"aws:RequestTag/{mark}": "*" for mark in marks}},
    }


def own_tags(name: str, args: EksClusterArgs, role: iam.Role, parent: pulumi.Resource) -> pulumi.CustomResource:
    """Attach the policy for tags to the cluster's role, and return the attachment."""
    child = pulumi.ResourceOptions(parent=parent)
    policy = iam.Policy(
        f"{name}-own-tags-policy",
        name=fitted(f"{args['cluster']}-auto-mode-tags", POLICY_NAME_CHARACTERS),
        path=args["iam_path"],
        description=f"Tags of nodes that Auto Mode makes for {args['cluster']}",
        policy=as_json(tag_document()),
        tags=args["tags"],
        opts=child,
    )
    return iam.RolePolicyAttachment(f"{name}-own-tags-attachment", role=role.name, policy_arn=policy.arn, opts=child)


class EksTeamLoginsArgs(TypedDict):
    """Arguments of EksTeamLogins."""

    cluster_name: pulumi.Input[str]
    """The cluster's name as an output of the cluster, so that the entries wait for it."""

    groups: dict[str, list[str]]
    """Kubernetes groups by role ARN, including its path. Users of the role are in these groups. At least one group per role."""

    partition: NotRequired[str]
    """The partition of the cluster: aws, aws-cn or aws-us-gov. Default: aws."""

    tags: NotRequired[dict[str, str]]
    """Tags of the entries. Default: none."""


class EksTeamLogins(pulumi.ComponentResource):
    """An access entry for each role, with its groups. The entry itself gives no permissions: RoleBindings give them to groups.

    The entries are of type STANDARD, whose roles may belong to another account. The cluster's authentication mode must be API or
    API_AND_CONFIG_MAP (EKS user guide, "Create access entries"). EKS rejects a role that already has an entry, such as that of the
    cluster's creator, as "already in use". A role that was deleted and created again needs a new entry, because EKS remembers the old one.

    Raises ValueError for invalid role ARNs, roles of another partition, roles without groups, and groups that EKS reserves. This component
    has not been deployed to a live account.
    """

    groups: pulumi.Output[dict[str, list[str]]]
    """The groups of each role, by its ARN, known once all entries exist."""

    def __init__(self, name: str, args: EksTeamLoginsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        partition, tags = args.get("partition", "aws"), args.get("tags", {})
        _check_logins(f"EksTeamLogins {name}", partition, args["groups"])
        super().__init__("flexspot:index:EksTeamLogins", name, {**args, "partition": partition, "tags": tags}, opts)
        entries = [
            eks.AccessEntry(
                # Includes the account, because roles of two accounts may have the same name, and the path, because the ARN is the entry's
                # key.
                f"{name}-{role.split(':')[4]}-{role.partition(':role/')[2]}",
                cluster_name=args["cluster_name"],
                principal_arn=role,
                type="STANDARD",
                kubernetes_groups=sorted(set(groups)),
                tags=tags,
                opts=pulumi.ResourceOptions(parent=self),
            )
            for role, groups in sorted(args["groups"].items())
        ]
        self.groups = pulumi.Output.all(*(each.id for each in entries)).apply(lambda _: args["groups"])
        publish(self)


def _check_logins(where: str, partition: str, groups: dict[str, list[str]]) -> None:
    check_choice(f"{where}: partition", partition, list(PARTITIONS))
    for role, of_role in groups.items():
        check_form(f"{where} groups", role, IAM_ROLE)
        if not re.match(rf"arn:{re.escape(partition)}:", role):
            problem = f"belongs to another partition than the cluster, {partition}"
            refuse(where, SettingsProblem(f"groups.{role}", "", problem, "name a role of the cluster's partition"))
        if not of_role:
            empty = "is empty, so the role would have no permissions"
            refuse(where, SettingsProblem(f"groups.{role}", "", empty, "name a group, or leave the role out"))
        for group in of_role:
            if not group or group.startswith(RESERVED_GROUPS):
                reserved = f"is empty or begins with a prefix that EKS reserves: {', '.join(RESERVED_GROUPS)}"
                refuse(where, SettingsProblem(f"groups.{role}", repr(group), reserved, "choose another name"))
