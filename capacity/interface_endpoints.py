"""Which services of AWS get an interface endpoint in a network of ours, by default; each is billed by the hour and zone."""

from __future__ import annotations

INTERFACE_SERVICES = {
    "ec2": "the CNI's addresses, names of nodes, Karpenter's machines, the EBS driver's volumes",
    "ecr.api": "the right to pull images",
    "ecr.dkr": "images; their layers come from S3",
    "eks": "Karpenter and people ask for the cluster's endpoint, nodes for its data",
    "eks-auth": "credentials by Pod Identity",
    "sqs": "Karpenter's notices of interruption, and work queues",
    "ssm": "Karpenter finds the AMI of an alias here",
    "sts": "credentials of roles, tokens of the API server",
}
"""By default, and why. EKS user guide, "Deploy private clusters with limited internet access", names all but sqs, which is in the EKS best
practices guide, Karpenter in private clusters, with ssm. Left out: logs, because nothing that is installed here writes to CloudWatch
from inside the VPC (the control plane's logs do not come this way), and elasticloadbalancing, because there is no load balancer controller.
The price list and IAM, which Karpenter calls, have no endpoint in most regions: those calls take the NAT."""

_NOT_OFFERED = {
    "eks": {"ap-east-2", "ap-southeast-5", "ap-southeast-7", "mx-central-1"},
    "eks-auth": {"ap-east-2", "ap-southeast-7", "mx-central-1"},
}
"""Regions without the endpoint (EKS user guide, "Access Amazon EKS using AWS PrivateLink", read 2026-11)."""


def default_services(region: str) -> list[str]:
    """The services that get an interface endpoint unless the caller says otherwise, sorted."""
    return sorted(service for service in INTERFACE_SERVICES if region not in _NOT_OFFERED.get(service, ()))
