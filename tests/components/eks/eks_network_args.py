"""Arguments of EksNetwork for its tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flexspot.components.eks.network import EksNetworkArgs

ZONES = ["us-east-1a", "us-east-1b", "us-east-1c"]
TAGS = {"environment": "prod", "owner": "ml-platform"}


def network_args(**changes: Any) -> EksNetworkArgs:
    # pyrefly: ignore[bad-return] -- some arguments are invalid on purpose
    return {
        "cluster": "prod",
        "region": "us-east-1",
        "vpc_cidr": "10.0.0.0/16",
        "zones": ZONES,
        "private_cidrs": ["10.0.0.0/18", "10.0.64.0/18", "10.0.128.0/18"],
        "public_cidrs": ["10.0.192.0/22", "10.0.196.0/22", "10.0.200.0/22"],
        "tags": TAGS,
    } | changes
