"""What the endpoints of AWS's services are called; which there are by default stands in capacity.catalog.endpoints."""

from __future__ import annotations

S3 = "s3"
"""Images' layers, checkpoints and datasets: by a gateway endpoint, which costs nothing."""

_OF_CHINA = {"ec2", "ecr.api", "ecr.dkr", "eks", "sqs", "sts"}
"""Services whose endpoints have another prefix in China (aws-cdk, vpc-endpoint.ts, getDefaultEndpointPrefix)."""


def service_name(service: str, region: str) -> str:
    """The full name of a service's endpoint, such as com.amazonaws.us-east-1.sqs."""
    prefix = "cn.com.amazonaws" if region.startswith("cn-") and service in _OF_CHINA else "com.amazonaws"
    return f"{prefix}.{region}.{service}"
