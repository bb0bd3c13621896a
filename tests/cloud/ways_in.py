"""Callers that can reach the API server of a cluster, by the cluster's own inputs as the clouds document them.

Sources: Google's page on network isolation, and AWS's on a cluster's endpoint. Routes are assumed to exist: only what a stack's settings
open is checked.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network
from typing import TYPE_CHECKING, Any

from cloud_refusals import EKS_CLUSTER, GKE_CLUSTER

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cloud_folder import CloudFolder, Held

OFFICE = "203.0.113.7"
"""An internet address in the documentation's range, which dev-eks lets in."""

PRIVATE = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")

SUBNETWORK = "gcp:compute/subnetwork:Subnetwork"
VPC = "aws:ec2/vpc:Vpc"
RULE = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"


def kept_out(cloud: CloudFolder, server: str) -> str:
    """Return why the runner gets no answer at a cluster's address. Empty if it is let in, or if the cloud did not create the cluster."""
    runner = cloud.settings.get("runner", OFFICE)
    for held in (*cloud.of(GKE_CLUSTER), *cloud.of(EKS_CLUSTER)):
        known = str(held.outputs["endpoint"]).removeprefix("https://") == server.removeprefix("https://")
        if known and held.inputs and not _is_let_in(cloud, held, IPv4Address(runner)):
            return f"dial tcp {server.removeprefix('https://')}: i/o timeout (from {runner})"
    return ""


def _is_let_in(cloud: CloudFolder, cluster: Held, runner: IPv4Address) -> bool:
    if cluster.token == EKS_CLUSTER:
        ranges = [each.inputs["cidrBlock"] for each in cloud.of(VPC)]
        ranges += [each.inputs["cidrIpv4"] for each in cloud.of(RULE) if each.inputs.get("cidrIpv4")]
        return eks_lets_in(cluster.inputs, runner, ranges)
    subnets = [each for each in cloud.of(SUBNETWORK) if each.identity == cluster.inputs.get("subnetwork")]
    own = [each.inputs["ipCidrRange"] for each in subnets]
    own += [second["ipCidrRange"] for each in subnets for second in each.inputs.get("secondaryIpRanges", [])]
    return gke_lets_in(cluster.inputs, runner, own)


def gke_lets_in(cluster: Mapping[str, Any], runner: IPv4Address, own: Iterable[str]) -> bool:
    """Return whether GKE lets a caller in. IAM decides for the DNS name.

    An address accepts the authorized ranges; the private one also accepts the ranges of the nodes and pods (`own`).
    """
    ways = cluster["controlPlaneEndpointsConfig"]
    if ways["dnsEndpointConfig"].get("allowExternalTraffic"):
        return True
    if not ways["ipEndpointsConfig"]["enabled"]:
        return False
    authorized = [each["cidrBlock"] for each in (cluster.get("masterAuthorizedNetworksConfig") or {}).get("cidrBlocks", [])]
    if _inside(runner, PRIVATE):
        return _inside(runner, (*own, *authorized))
    return not cluster["privateClusterConfig"]["enablePrivateEndpoint"] and _inside(runner, authorized)


def eks_lets_in(cluster: Mapping[str, Any], runner: IPv4Address, inside: Iterable[str]) -> bool:
    """Return whether EKS lets a caller in.

    The public address accepts its ranges; the private one accepts the VPC and what its security group lets in (`inside`).
    """
    network = cluster["vpcConfig"]
    if network.get("endpointPublicAccess") and _inside(runner, network.get("publicAccessCidrs") or ["0.0.0.0/0"]):
        return True
    return bool(network.get("endpointPrivateAccess")) and _inside(runner, inside)


def _inside(address: IPv4Address, ranges: Iterable[str]) -> bool:
    return any(address in IPv4Network(each) for each in ranges)
