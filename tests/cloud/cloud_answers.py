"""Answers of the clouds about a new or changed resource: its inputs, the table's outputs, and those that need more than a text."""

from __future__ import annotations

import time
import zlib
from typing import TYPE_CHECKING, Any

from cloud_refusals import EKS_CLUSTER, GKE_CLUSTER, NODE_GROUP

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cloud_resources import ResourceKind

POOL = "gcp:container/nodePool:NodePool"

CLIENT_KEY = "a-clients-key-that-nobody-may-see"
"""Client key in the outputs of a GKE cluster, where the real provider has a secret."""


def known_values(kind: ResourceKind, place: Mapping[str, Any], inputs: Mapping[str, Any], identity: str | None = None) -> dict[str, Any]:
    """Return the values that ids and outputs are built from: location, inputs, id, and a number that is unique to the resource.

    Raises KeyError if an input that is part of the id is missing.
    """
    known: dict[str, Any] = {**place, **inputs}
    if kind.token == NODE_GROUP and "nodeGroupName" not in known:
        # Terraform makes a name unique by appending 26 digits to the prefix.
        known["nodeGroupName"] = identity.partition(":")[2] if identity else f"{inputs['nodeGroupNamePrefix']}{time.time_ns():026d}"
    known["id"] = identity or kind.new_id(known)
    known["number"] = f"{zlib.crc32(known['id'].encode()):017d}"
    return known


def outputs_of(kind: ResourceKind, known: dict[str, Any], inputs: dict[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the outputs of a resource. `settings` are the cloud's, including the control plane behind its clusters."""
    outputs = {**kind.answered({"minMasterVersion": "", **known}), **inputs, "id": known["id"]}
    if kind.token.startswith("aws:"):
        outputs.setdefault("region", known["region"])
        if "tags" in inputs:
            outputs["tagsAll"] = inputs["tags"]
    if kind.token == GKE_CLUSTER:
        outputs |= _gke_cluster(known, inputs, settings["control_plane"])
    elif kind.token == EKS_CLUSTER:
        outputs |= _eks_cluster(known, inputs, settings["control_plane"])
    elif kind.token == NODE_GROUP:
        outputs["nodeGroupName"] = known["nodeGroupName"]
        outputs["resources"] = [{"autoscalingGroups": [{"name": f"eks-{known['nodeGroupName']}"}], "remoteAccessSecurityGroupId": ""}]
    elif kind.token == POOL:
        zones: list[str] = inputs.get("nodeLocations") or []
        groups = [f"https://www.googleapis.com/compute/v1/projects/{known['project']}/zones/{zone}/instanceGroupManagers" for zone in zones]
        outputs |= {"instanceGroupUrls": groups, "managedInstanceGroupUrls": groups, "nodeCount": inputs.get("initialNodeCount", 0)}
    return outputs


def _gke_cluster(known: Mapping[str, Any], inputs: Mapping[str, Any], control_plane: Mapping[str, str]) -> dict[str, Any]:
    """Return a cluster's outputs.

    Both its address and its DNS name, whose certificate a public authority would have signed, lead to the control plane.
    """
    endpoints: dict[str, Any] = inputs.get("controlPlaneEndpointsConfig") or {}
    named: dict[str, Any] = {**(endpoints.get("dnsEndpointConfig") or {}), "endpoint": control_plane["host"]}
    private: dict[str, Any] = inputs.get("privateClusterConfig") or {}
    return {
        "endpoint": control_plane["host"],
        "masterAuth": {**(inputs.get("masterAuth") or {}), "clusterCaCertificate": control_plane["ca"], "clientKey": CLIENT_KEY},
        "controlPlaneEndpointsConfig": {**endpoints, "dnsEndpointConfig": named},
        "privateClusterConfig": {**private, "privateEndpoint": control_plane["host"], "peeringName": f"gke-n{known['number']}-peer"},
    }


def _eks_cluster(known: Mapping[str, Any], inputs: Mapping[str, Any], control_plane: Mapping[str, str]) -> dict[str, Any]:
    number = known["number"]
    issuer = f"https://oidc.eks.{known['region']}.amazonaws.com/id/{number}"
    network = {**inputs["vpcConfig"], "clusterSecurityGroupId": f"sg-{number}", "vpcId": f"vpc-{number}"}
    return {
        "endpoint": f"https://{control_plane['host']}",
        "certificateAuthority": {"data": control_plane["ca"]},
        "identities": [{"oidcs": [{"issuer": issuer}]}],
        "vpcConfig": network,
        "createdAt": "2026-11-22T08:00:00Z",
    }
