"""Kubeconfigs for kubectl and Pulumi. They contain no secrets: the cloud's own command creates a token for its user."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeVar

import pulumi

from flexspot.capacity.settings.network import Access

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pulumi_gcp.container.outputs import ClusterControlPlaneEndpointsConfig

BlockT = TypeVar("BlockT")


def part_of(block: pulumi.Output[BlockT], read: Callable[[BlockT], str | None]) -> pulumi.Output[str]:
    """Return a part of a block that the cloud fills in.

    Such a block is also an input, so a preview may know the block without that part, which is then unknown. Outside a preview the part is
    empty if the cloud leaves it out.
    """

    def known(found: BlockT | None) -> pulumi.Input[str]:
        part = None if found is None else read(found)
        if not part and pulumi.runtime.is_dry_run():
            return pulumi.Output.from_input(pulumi.UNKNOWN)  # pyrefly: ignore[bad-return] -- the SDK's mark for any type
        return part or ""

    return block.apply(known)


def kubeconfig_of(context: str, server: str, certificate: str | None, command: Mapping[str, Any]) -> str:
    """Return a kubeconfig as JSON, which is also YAML.

    `context` is the name of the cluster, the user and the context. `server` begins with https://. `certificate` is base64, or None if the
    server has one of a public authority. `command` creates tokens: the fields of kubectl's `exec` except its version.
    """
    authority = {} if certificate is None else {"certificate-authority-data": certificate}
    written = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": context,
        "clusters": [{"name": context, "cluster": {"server": server, **authority}}],
        "contexts": [{"name": context, "context": {"cluster": context, "user": context}}],
        "users": [{"name": context, "user": {"exec": {"apiVersion": "client.authentication.k8s.io/v1beta1", **command}}}],
    }
    return json.dumps(written, indent=2)


def eks_credentials_command(cluster: str, region: str) -> str:
    """Return the command that adds the cluster to a user's own kubeconfig."""
    return f"aws eks update-kubeconfig --name {cluster} --region {region}"


def eks_kubeconfig(context: str, cluster: str, region: str, endpoint: str, certificate_authority: str) -> str:
    """Return a kubeconfig for EKS as JSON, which is also YAML.

    `context` is the cluster's ARN, as `aws eks update-kubeconfig` names it. `endpoint` begins with https://. `certificate_authority` is
    base64.
    """
    own = {
        "command": "aws",
        "args": ["eks", "get-token", "--cluster-name", cluster, "--region", region, "--output", "json"],
        "installHint": "Install version 2 of the AWS CLI",
        # The token is for the AWS identity that the user already has, so no input is needed.
        "interactiveMode": "Never",
    }
    return kubeconfig_of(context, endpoint, certificate_authority, own)


_FLAGS: dict[str, str] = {Access.PRIVATE: " --internal-ip", Access.DNS_IAM: " --dns-endpoint", Access.PUBLIC_CIDRS: ""}


def gke_credentials_command(cluster: str, region: str, project: str, access: str) -> str:
    """Return the command that adds the cluster to a user's own kubeconfig."""
    return f"gcloud container clusters get-credentials {cluster} --location {region} --project {project}{_FLAGS[access]}"


def context_name(cluster: str, region: str, project: str) -> str:
    """Return the name of the kubeconfig's context, as gcloud builds it."""
    return f"gke_{project}_{region}_{cluster}"


def gke_kubeconfig(context: str, host: str, ca_certificate: str | None) -> str:
    """Return a kubeconfig for GKE as JSON, which is also YAML.

    `ca_certificate` is base64, or None if the host has a certificate of a public authority, as a cluster's DNS name has.
    """
    plugin = {
        "command": "gke-gcloud-auth-plugin",
        "installHint": "Install it with: gcloud components install gke-gcloud-auth-plugin",
        "provideClusterInfo": True,
    }
    return kubeconfig_of(context, f"https://{host}", ca_certificate, plugin)


def dns_name_of(endpoints: ClusterControlPlaneEndpointsConfig) -> str | None:
    """Return the DNS name of the control plane, or None if it has none."""
    named = endpoints.dns_endpoint_config
    return named.endpoint if named else None
