"""Declarations of a program in the form of a Terraform state or of a cluster's objects after `up`. Not a test."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, cast

from program_declarations import UNKNOWN

from flexspot.capacity.adopting.found import Block

if TYPE_CHECKING:
    from program_declarations import Declarations

TYPES = {
    "gcp:container/cluster:Cluster": "google_container_cluster",
    "gcp:container/nodePool:NodePool": "google_container_node_pool",
    "aws:eks/cluster:Cluster": "aws_eks_cluster",
    "aws:eks/nodeGroup:NodeGroup": "aws_eks_node_group",
}
MAPS = {"labels", "resourceLabels", "tags"}
"""Attributes with keys that users choose."""

SINGULAR = {"taints": "taint", "guestAccelerators": "guest_accelerator", "cidrBlocks": "cidr_blocks", "resourceLimits": "resource_limits"}


def terraform(name: str, value: Any) -> tuple[str, Any]:
    """Return an input of Pulumi's bridged provider in the form of the Terraform provider: names with _, and each block a list."""
    spelled = SINGULAR.get(name) or re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
    if name in MAPS:
        return spelled, value
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return spelled, None if "$unknown" in fields or "$secret" in fields else [dict(terraform(*each) for each in fields.items())]
    if isinstance(value, list):
        listed = cast("list[Any]", value)
        return spelled, [dict(terraform(*one) for one in each.items()) if isinstance(each, dict) else each for each in listed]
    return spelled, value


def state_of(declarations: Declarations) -> bytes:
    """Return the output of `terraform show -json` for the cloud's resources, with the cluster's ARN, which only AWS knows."""
    resources: list[dict[str, Any]] = []
    for each in declarations.made.values():
        if kind := TYPES.get(each.type):
            values = dict(terraform(*one) for one in each.inputs.items())
            if kind == "aws_eks_cluster":
                values["arn"] = f"arn:aws:eks:us-east-1:111122223333:cluster/{values['name']}"
            resources.append({"address": f"{kind}.{each.name}", "mode": "managed", "type": kind, "values": values})
        elif each.type.startswith(("kubernetes:karpenter", "kubernetes:kueue", "kubernetes:core/v1:ResourceQuota")):
            address = f"kubernetes_manifest.{each.name}"
            resources.append({"address": address, "mode": "managed", "type": "kubernetes_manifest", "values": {"object": manifest(each)}})
    return json.dumps({"format_version": "1.0", "values": {"root_module": {"resources": resources}}}).encode()


def manifest(declared: Any) -> dict[str, Any]:
    """Return a declared Kubernetes object in the form of the cluster."""
    return {"kind": declared.type.rpartition(":")[2], **declared.inputs}


def objects_of(declarations: Declarations) -> list[Block]:
    """Return the objects of the cluster."""
    text = json.dumps([manifest(each) for each in declarations.made.values() if each.type.startswith("kubernetes:")])
    return [Block(each) for each in json.loads(text.replace(UNKNOWN, "unknown"))]
