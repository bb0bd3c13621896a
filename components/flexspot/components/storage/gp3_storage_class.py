"""The default storage class on EKS, which has none by itself."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
from typing import NotRequired, TypedDict

import pulumi
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs
from pulumi_kubernetes.storage.v1 import StorageClass

from flexspot.capacity.values.errors import SettingsProblem
from flexspot.components.shared_args import publish, refuse

CLASS_NAME = "gp3"
DRIVER = "ebs.csi.aws.com"
AUTO_MODE_DRIVER = "ebs.csi.eks.amazonaws.com"
"""Auto Mode's own driver (EKS user guide, "Create a storage class"). Neither driver attaches volumes of the other."""

_DEFAULT = "storageclass.kubernetes.io/is-default-class"


class Gp3StorageClassArgs(TypedDict):
    """Arguments of Gp3StorageClass."""

    name: NotRequired[str]
    """The class's name. Default: gp3."""

    default: NotRequired[bool]
    """If true, claims without a class use it. Default: True."""

    labels: dict[str, str]
    """Labels of the object."""

    driver: NotRequired[str]
    """The EBS driver: ebs.csi.eks.amazonaws.com in EKS Auto Mode. Default: ebs.csi.aws.com, that of the add-on."""


class Gp3StorageClass(pulumi.ComponentResource):
    """Encrypted gp3 volumes of the EBS driver, created in the zone of the first pod that uses them.

    They can grow, and are deleted with their claim.

    EKS creates a class gp2 that is neither encrypted nor, since 1.30, the default (EKS user guide, "Review release notes for Kubernetes
    versions on standard support", 1.30), so a claim without a class would wait forever. The key is the account's EBS key, the only one that
    the driver's role may use. Raises ValueError for an empty name.
    """

    name: pulumi.Output[str]
    """The class's name, known once it exists."""

    def __init__(self, name: str, args: Gp3StorageClassArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        called = args.get("name", CLASS_NAME)
        if not called:
            problem, remedy = "must be the name of a Kubernetes object", f"leave it out for {CLASS_NAME}"
            refuse(f"Gp3StorageClass {name}", SettingsProblem("name", "''", problem, remedy))
        super().__init__("flexspot:index:Gp3StorageClass", name, {**args}, opts)
        made = StorageClass(
            f"{name}-storage-class",
            metadata=ObjectMetaArgs(
                name=called, labels=args["labels"], annotations={_DEFAULT: "true"} if args.get("default", True) else None
            ),
            provisioner=args.get("driver", DRIVER),
            # Values of parameters are text (kubernetes-sigs/aws-ebs-csi-driver, docs/parameters.md).
            parameters={"type": "gp3", "encrypted": "true"},
            volume_binding_mode="WaitForFirstConsumer",
            allow_volume_expansion=True,
            reclaim_policy="Delete",
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.name = made.id.apply(lambda _: called)
        publish(self)
