"""How kubectl and Pulumi reach a GKE cluster. No secret is in it: Google's plugin asks for a token when there is need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.settings.network import Access
from components.kubeconfig import kubeconfig_of

if TYPE_CHECKING:
    from pulumi_gcp.container.outputs import ClusterControlPlaneEndpointsConfig, ClusterMasterAuth

_FLAGS: dict[str, str] = {Access.PRIVATE: " --internal-ip", Access.DNS_IAM: " --dns-endpoint", Access.PUBLIC_CIDRS: ""}


def credentials_command(cluster: str, region: str, project: str, access: str) -> str:
    """The command that writes the cluster into a person's own kubeconfig."""
    return f"gcloud container clusters get-credentials {cluster} --location {region} --project {project}{_FLAGS[access]}"


def context_name(cluster: str, region: str, project: str) -> str:
    """The name of the kubeconfig's context, as gcloud makes it."""
    return f"gke_{project}_{region}_{cluster}"


def kubeconfig(context: str, host: str, ca_certificate: str | None) -> str:
    """A kubeconfig as JSON, which is YAML, too.

    `ca_certificate` is base64, or None where the host has a certificate of a public authority, as a cluster's DNS name has.
    """
    plugin = {
        "command": "gke-gcloud-auth-plugin",
        "installHint": "Install it with: gcloud components install gke-gcloud-auth-plugin",
        "provideClusterInfo": True,
    }
    return kubeconfig_of(context, f"https://{host}", ca_certificate, plugin)


def ca_certificate_of(auth: ClusterMasterAuth | None) -> str:
    """The certificate, base64; empty where nobody has said it, as in a test without a cloud."""
    return (auth.cluster_ca_certificate or "") if auth else ""


def dns_name_of(endpoints: ClusterControlPlaneEndpointsConfig | None) -> str:
    """The DNS name of the control plane; empty where nobody has said it, as in a test without a cloud."""
    named = endpoints.dns_endpoint_config if endpoints else None
    return (named.endpoint or "") if named else ""
