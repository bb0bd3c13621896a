"""Full names of networks and subnetworks of Google Cloud: whose they are, and of which region."""

from __future__ import annotations

import re
from dataclasses import dataclass

_FULL = re.compile(
    r"(?:https://[^/]+/compute/[^/]+/)?projects/(?P<project>[^/]+)/(?:regions/(?P<region>[^/]+)/subnetworks|global/networks)/(?P<name>[^/]+)"
)


@dataclass(frozen=True)
class NetworkName:
    """A network (`region` is None) or a subnetwork, by its full name."""

    project: str
    region: str | None
    name: str


def full_name(written: str) -> NetworkName | None:
    """What a full name, or the address of one, says; None for a short name, which is of the stack's own project and region."""
    match = _FULL.fullmatch(written)
    return None if match is None else NetworkName(match["project"], match["region"], match["name"])
