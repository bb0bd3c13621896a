"""What EKS Auto Mode leaves to be installed or switched on: drivers of storage, metrics-server, network policies."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
from typing import NotRequired

import pulumi
from pulumi_kubernetes.core.v1 import ConfigMap
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from capacity.catalog.versions import RECOMMENDED, auto_mode
from components.cloud_names import NAMESPACE, check_cluster_name, check_place
from components.eks.addons import AddonInstaller
from components.eks.cluster_args import AddonsShape
from components.shared_args import RoleOptionsArgs, check_role_options


class AutoAddonsArgs(RoleOptionsArgs):
    """Arguments of AutoAddons; those of add-ons are those of EksCluster."""

    cluster: str
    """The cluster's name, 1 to 100 characters."""

    cluster_name: pulumi.Input[str]
    """The same name, known once the cluster exists."""

    account: str
    """The account id, 12 digits."""

    partition: NotRequired[str]
    """aws, aws-cn or aws-us-gov. Default: aws."""

    region: str
    """The region, such as us-east-1."""

    addon_versions: NotRequired[dict[str, str]]
    """Versions of add-ons by name, or `recommended`, as for EksCluster. Default: EKS's default on the day an add-on is created."""

    version: NotRequired[str]
    """The cluster's Kubernetes version, such as 1.35; required if an add-on's version is `recommended`. Default: unknown."""

    efs_driver: NotRequired[bool]
    """Whether to install the add-on aws-efs-csi-driver. Default: False."""

    lustre_driver: NotRequired[bool]
    """Whether to install the add-on aws-fsx-csi-driver. Default: False."""

    metrics_server: NotRequired[bool]
    """Whether to install the add-on metrics-server. Default: True."""

    labels: dict[str, str]
    """Labels of Kubernetes objects."""

    tags: NotRequired[dict[str, str]]
    """Tags of add-ons and their roles. Default: none."""


class AutoAddons(pulumi.ComponentResource):
    """The add-ons that Auto Mode does not include, and the ConfigMap without which it accepts a NetworkPolicy but does not enforce it.

    Add-ons only become healthy once they run, so make this depend on nodes for them: AutoSystemPool. Raises ValueError for names and places
    that AWS would refuse. Nothing here was applied to a live account.
    """

    versions: pulumi.Output[dict[str, str]]
    """The versions of add-ons that are asked for, known once they are there."""

    def __init__(self, name: str, args: AutoAddonsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        where = f"AutoAddons {name}:"
        check_cluster_name(where, args["cluster"])
        check_place(where, args["account"], args.get("partition", "aws"), args["region"])
        check_role_options(where, args.get("iam_path"), args.get("permissions_boundary"))
        if RECOMMENDED in args.get("addon_versions", {}).values() and not args.get("version"):
            raise ValueError(f"{where} version is missing, and an add-on's is {RECOMMENDED}; it must be a version such as 1.35; name it")
        super().__init__("flexspot:index:AutoAddons", name, {**args}, opts)
        policies = ConfigMap(
            f"{name}-network-policies",
            metadata=ObjectMetaArgs(name="amazon-vpc-cni", namespace=NAMESPACE, labels=args["labels"]),
            # awsdocs/amazon-eks-user-guide, latest/ug/automode/auto-net-pol.adoc at 01385604, "Enable Network Policy Controller".
            data={"enable-network-policy-controller": "true"},
            opts=pulumi.ResourceOptions(parent=self),
        )
        shape = AddonsShape(
            cluster=args["cluster"],
            account=args["account"],
            partition=args.get("partition", "aws"),
            region=args["region"],
            version=args.get("version", ""),
            addon_versions=args.get("addon_versions", {}),
            efs_driver=args.get("efs_driver", False),
            lustre_driver=args.get("lustre_driver", False),
            metrics_server=args.get("metrics_server", True),
            tags=args.get("tags", {}),
            iam_path=args.get("iam_path"),
            permissions_boundary=args.get("permissions_boundary"),
        )
        installed = AddonInstaller(name, shape, args["cluster_name"], self).after_nodes([], but=auto_mode().addons)
        # Not an output: what waits for drivers and network policies.
        self.ready: list[pulumi.Resource] = [policies, *installed]
        self.versions = pulumi.Output.from_input(args.get("addon_versions", {}))
        self.register_outputs({"versions": self.versions})
