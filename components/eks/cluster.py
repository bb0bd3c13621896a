"""An EKS cluster."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types.
import pulumi
from pulumi_aws import cloudwatch, ec2, eks, kms

from capacity.settings.network import Access
from components.eks.access import admin_entries, api_security_group
from components.eks.addons import AddonInstaller
from components.eks.cluster_args import ClusterShape, EksClusterArgs
from components.eks.cluster_checks import check_cluster
from components.eks.kubeconfig import certificate_of, credentials_command, kubeconfig, security_group_of
from components.eks.network_subnets import DISCOVERY_TAG
from components.eks.role import RoleShape, granted_role, service_trust
from components.eks.system_nodes import role_name, system_node_group

LOGGED = ["api", "audit", "authenticator", "controllerManager", "scheduler"]
"""All that a control plane logs."""

_KEY_DELETION_DAYS = 30


class EksCluster(pulumi.ComponentResource):
    """A cluster that is private and logged unless told otherwise, with its add-ons and a few nodes for controllers.

    The private endpoint is always there; what is stored is encrypted with a key of the caller's or the cluster's own; identities are access
    entries and Pod Identity, never the aws-auth ConfigMap. Whoever makes the cluster administers it, with or without `admin_role_arns`:
    `up` must reach the API server before any other entry is there, and to take that back later would replace the cluster.

    EKS's Auto Mode is not used, but a Karpenter of our own: Auto Mode takes a fee for each node, and hides the node classes by which
    Karpenter is told of images, disks, network cards and reservations. The cluster security group needs no rule more for EFA: EKS lets it
    reach itself both ways (EKS user guide, "View Amazon EKS security group requirements for clusters"), and refuses the same rule twice.

    With access `private`, `up` needs a runner inside the network, in one of `private_cidrs`. Raises ValueError before anything is
    registered, for what EKS would refuse and for what is neither safe nor finite. Nothing here was applied to a live account.
    """

    cluster_name: pulumi.Output[str]
    """The cluster's name; what uses it waits for the cluster."""

    arn: pulumi.Output[str]
    """The cluster's ARN."""

    endpoint: pulumi.Output[str]
    """The URL of the API server, with https://."""

    certificate_authority: pulumi.Output[str]
    """Certificate of the cluster's own authority, base64."""

    security_group_id: pulumi.Output[str]
    """Id of the security group that EKS makes for the control plane and all nodes; Karpenter finds it by karpenter.sh/discovery."""

    kubeconfig: pulumi.Output[str]
    """A kubeconfig without secrets, as JSON. Whoever uses it needs the AWS CLI, and with `private` a place in the network."""

    credentials_command: pulumi.Output[str]
    """The command of the AWS CLI that writes the cluster into a person's own kubeconfig."""

    def __init__(self, name: str, args: EksClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        shape = ClusterShape(**args)
        check_cluster(name, shape)
        super().__init__("flexspot:index:EksCluster", name, {**vars(shape)}, opts)
        cluster = self._cluster(name, shape)
        self.cluster_name = cluster.name
        self.arn = cluster.arn
        self.endpoint = cluster.endpoint
        self.certificate_authority = cluster.certificate_authority.apply(certificate_of)
        # The block is an input as well: with the id it stays unknown until EKS has answered, not known and empty in a preview.
        self.security_group_id = pulumi.Output.all(cluster.id, cluster.vpc_config.apply(security_group_of)).apply(lambda known: known[1])
        found_by_karpenter = ec2.Tag(
            f"{name}-discovery-tag",
            resource_id=self.security_group_id,
            key=DISCOVERY_TAG,
            value=shape.cluster,
            opts=pulumi.ResourceOptions(parent=self),
        )
        admin_entries(name, shape, cluster.name, self)
        addons = AddonInstaller(name, shape, cluster.name, self)
        before = addons.before_nodes()
        nodes = system_node_group(name, shape, cluster.name, self, before)
        after = addons.after_nodes(nodes)
        # Not an output: what everything inside the cluster waits for. Before these, pods have neither nodes nor names nor disks.
        self.ready: list[pulumi.Resource] = [found_by_karpenter, *before, nodes, *after]

        self.kubeconfig = pulumi.Output.all(cluster.endpoint, self.certificate_authority).apply(
            lambda known: kubeconfig(shape.arn, shape.cluster, shape.region, known[0], known[1])
        )
        self.credentials_command = cluster.name.apply(lambda _: credentials_command(shape.cluster, shape.region))
        self.register_outputs(
            {
                "cluster_name": self.cluster_name,
                "arn": self.arn,
                "endpoint": self.endpoint,
                "certificate_authority": self.certificate_authority,
                "security_group_id": self.security_group_id,
                "kubeconfig": self.kubeconfig,
                "credentials_command": self.credentials_command,
            }
        )

    def _cluster(self, name: str, shape: ClusterShape) -> eks.Cluster:
        granted = granted_role(
            f"{name}-role",
            RoleShape(
                name=role_name(shape.cluster, "cluster"),
                description="The cluster's control plane",
                trust=service_trust("eks.amazonaws.com"),
                partition=shape.partition,
                policies=["AmazonEKSClusterPolicy"],
                tags=shape.tags,
            ),
            self,
        )
        # EKS would make it by itself, and keep everything for ever.
        logs = cloudwatch.LogGroup(
            f"{name}-logs",
            name=f"/aws/eks/{shape.cluster}/cluster",
            retention_in_days=shape.log_retention_days,
            tags=shape.tags,
            opts=pulumi.ResourceOptions(parent=self),
        )
        is_public = shape.access == Access.PUBLIC_CIDRS
        return eks.Cluster(
            f"{name}-cluster",
            name=shape.cluster,
            role_arn=granted.role.arn,
            version=shape.version,
            vpc_config=eks.ClusterVpcConfigArgs(
                subnet_ids=shape.subnet_ids,
                security_group_ids=[api_security_group(name, shape, self).id],
                endpoint_private_access=True,
                endpoint_public_access=is_public,
                public_access_cidrs=sorted(set(shape.cidrs)) if is_public else None,
            ),
            kubernetes_network_config=eks.ClusterKubernetesNetworkConfigArgs(ip_family="ipv4", service_ipv4_cidr=shape.services_cidr),
            access_config=eks.ClusterAccessConfigArgs(authentication_mode="API", bootstrap_cluster_creator_admin_permissions=True),
            encryption_config=eks.ClusterEncryptionConfigArgs(
                provider=eks.ClusterEncryptionConfigProviderArgs(key_arn=self._key(name, shape)),
                # It means all that is stored; the API takes no other word (EKS user guide, "Default envelope encryption").
                resources=["secrets"],
            ),
            enabled_cluster_log_types=LOGGED,
            upgrade_policy=eks.ClusterUpgradePolicyArgs(support_type=shape.support.upper()),
            # Away from a zone that AWS reports as impaired.
            zonal_shift_config=eks.ClusterZonalShiftConfigArgs(enabled=True),
            # Otherwise EKS installs some of its own, which nobody then configures or upgrades.
            bootstrap_self_managed_addons=False,
            deletion_protection=shape.deletion_protection,
            tags=shape.tags,
            opts=pulumi.ResourceOptions(parent=self, depends_on=[*granted.grants, logs]),
        )

    def _key(self, name: str, shape: ClusterShape) -> pulumi.Input[str]:
        if shape.kms_key is not None:
            return shape.kms_key
        child = pulumi.ResourceOptions(parent=self)
        key = kms.Key(
            f"{name}-key",
            description=f"What EKS cluster {shape.cluster} stores",
            enable_key_rotation=True,
            deletion_window_in_days=_KEY_DELETION_DAYS,
            tags=shape.named("key"),
            opts=child,
        )
        kms.Alias(f"{name}-key-alias", name=f"alias/eks/{shape.cluster}", target_key_id=key.id, opts=child)
        return key.arn
