"""How kubectl and Pulumi reach an EKS cluster. No secret is in it: AWS's own command makes a token when there is need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from components.kubeconfig import kubeconfig_of

if TYPE_CHECKING:
    from pulumi_aws.eks.outputs import ClusterCertificateAuthority, ClusterVpcConfig


def credentials_command(cluster: str, region: str) -> str:
    """The command that writes the cluster into a person's own kubeconfig."""
    return f"aws eks update-kubeconfig --name {cluster} --region {region}"


def kubeconfig(context: str, cluster: str, region: str, endpoint: str, certificate_authority: str) -> str:
    """A kubeconfig as JSON, which is YAML, too.

    `context` is the cluster's ARN, as `aws eks update-kubeconfig` names it; `endpoint` begins with https://;
    `certificate_authority` is base64.
    """
    own = {
        "command": "aws",
        "args": ["eks", "get-token", "--cluster-name", cluster, "--region", region, "--output", "json"],
        "installHint": "Install version 2 of the AWS CLI",
        # The token is for an identity of AWS, which whoever runs it has already, and nothing is asked of a person.
        "interactiveMode": "Never",
    }
    return kubeconfig_of(context, endpoint, certificate_authority, own)


def certificate_of(authority: ClusterCertificateAuthority | None) -> str:
    """The certificate, base64; empty where nobody has said it, as in a test without a cloud."""
    return (authority.data or "") if authority else ""


def security_group_of(network: ClusterVpcConfig | None) -> str:
    """The security group that EKS makes for the cluster; empty where nobody has said it, as in a test without a cloud."""
    return (network.cluster_security_group_id or "") if network else ""
