"""What must run on a cluster that somebody else made."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types.
from types import MappingProxyType
from typing import TypedDict

import pulumi

from capacity.catalog.versions import Addon
from components.answers import ReadObject
from components.cloud_names import check_choice

_DRIVER = "storage.k8s.io/v1:CSIDriver"

MARKS = MappingProxyType(
    {
        Addon.POD_IDENTITY_AGENT: ("apps/v1:DaemonSet", "kube-system/eks-pod-identity-agent"),
        Addon.EBS_DRIVER: (_DRIVER, "ebs.csi.aws.com"),
        Addon.S3_DRIVER: (_DRIVER, "s3.csi.aws.com"),
        Addon.EFS_DRIVER: (_DRIVER, "efs.csi.aws.com"),
        Addon.LUSTRE_DRIVER: (_DRIVER, "fsx.csi.aws.com"),
    }
)
"""The object by which a cluster shows that it has an add-on, from EKS or from the same project's chart.

Sources, read 2026-11-26: charts/eks-pod-identity-agent/templates/daemonset.yaml of aws/eks-pod-identity-agent; csidriver.yaml of the
charts of kubernetes-sigs/aws-ebs-csi-driver, aws-efs-csi-driver and aws-fsx-csi-driver, and of awslabs/mountpoint-s3-csi-driver.
"""


class ExistingClusterPartsArgs(TypedDict):
    """Arguments of ExistingClusterParts."""

    addons: list[str]
    """Required add-ons, by EKS name, such as aws-mountpoint-s3-csi-driver."""


class ExistingClusterParts(pulumi.ComponentResource):
    """Existing add-ons, which are only read and never changed, however they were installed.

    If one is missing the provider ends the run, also in a preview: "resource ... does not exist", for a resource named NAME-needs-ADDON.
    Raises ValueError for an add-on that no object shows.
    """

    found: pulumi.Output[list[str]]
    """The add-ons that were asked for, known once all were found."""

    def __init__(self, name: str, args: ExistingClusterPartsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        for addon in args["addons"]:
            check_choice(f"ExistingClusterParts {name}: addons", addon, sorted(each.value for each in MARKS))
        super().__init__("flexspot:index:ExistingClusterParts", name, {**args}, opts)
        read: list[pulumi.Resource] = []
        for addon in args["addons"]:
            token, identity = MARKS[Addon(addon)]
            read.append(ReadObject(f"{name}-needs-{addon}", token, identity, pulumi.ResourceOptions(parent=self)))
        self.found = pulumi.Output.all(*(each.urn for each in read)).apply(lambda _: list(args["addons"]))
        self.register_outputs({"found": self.found})
