"""Who reaches the API server of a cluster: whoever is where the cluster's own inputs let callers in from, as the clouds document it.

As Google's page on network isolation and AWS's on a cluster's endpoint say. Routes are taken to be there: what is looked at is what a
stack's settings open.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network
from typing import TYPE_CHECKING, Any

from cloud_refusals import EKS_CLUSTER, GKE_CLUSTER

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cloud_folder import CloudFolder, Held

OFFICE = "203.0.113.7"
"""An address of the internet: in the documentation's own range, which dev-eks lets in."""

PRIVATE = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")

SUBNETWORK = "gcp:compute/subnetwork:Subnetwork"
VPC = "aws:ec2/vpc:Vpc"
RULE = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"


def kept_out(cloud: CloudFolder, server: str) -> str:
    """Why nobody answers the runner at a cluster's address; empty where it is let in, and for a cluster that the cloud did not make."""
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
    """By the DNS name whom IAM lets in; by an address whoever is in an authorized range, and by the private one the ranges of the nodes
    and pods (`own`), too."""
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
    """By the public address its ranges; by the private one the VPC, and what its security group lets in (`inside`)."""
    network = cluster["vpcConfig"]
    if network.get("endpointPublicAccess") and _inside(runner, network.get("publicAccessCidrs") or ["0.0.0.0/0"]):
        return True
    return bool(network.get("endpointPrivateAccess")) and _inside(runner, inside)


def _inside(address: IPv4Address, ranges: Iterable[str]) -> bool:
    return any(address in IPv4Network(each) for each in ranges)
