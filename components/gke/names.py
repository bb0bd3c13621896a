"""Names as Google Cloud accepts them."""

from __future__ import annotations

import re

from capacity.values.names import GCP_PROJECT

NETWORK_NAME_LENGTH = 63
"""Of networks, subnetworks, routers and their secondary ranges (RFC 1035)."""

CLUSTER_NAME_LENGTH = 40
ACCOUNT_ID_LENGTH = 30

_NAME = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?")


def check_name(where: str, name: str, longest: int, shortest: int = 1) -> None:
    """Raises ValueError, beginning with `where`, for a name that Google Cloud would refuse."""
    if not _NAME.fullmatch(name) or not shortest <= len(name) <= longest:
        raise ValueError(
            f"{where} is {name!r}; allowed are {shortest} to {longest} lower-case letters, digits and hyphens, a letter first, no hyphen "
            "last; rename it"
        )


def check_project(where: str, project: str) -> None:
    """Raises ValueError, beginning with `where`, for what cannot be the id of a project."""
    if not re.fullmatch(GCP_PROJECT, project):
        raise ValueError(
            f"{where} is {project!r}; allowed is a project's id, 6 to 30 lower-case letters, digits and hyphens, not its number or its "
            "display name; `gcloud projects list` shows it"
        )
