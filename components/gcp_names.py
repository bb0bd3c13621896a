"""Names and labels as Google Cloud accepts them."""

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


_LABELS = 64
_LABEL_KEY = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_LABEL_VALUE = re.compile(r"[a-z0-9_-]{0,63}")


def check_gcp_labels(owner: str, labels: dict[str, str]) -> None:
    """Raises ValueError for a label that Google Cloud refuses.

    The forms are those that the APIs state (such as gcp.parallelstore.Instance in pulumi_gcp), as is the number, 64 a resource.
    """
    if len(labels) > _LABELS:
        raise ValueError(f"{owner}: labels has {len(labels)} keys; a resource has at most {_LABELS}: leave some out")
    for key, value in labels.items():
        if not _LABEL_KEY.fullmatch(key):
            raise ValueError(
                f"{owner}: labels has the key {key!r}; a key is a lower-case letter and up to 62 of a-z, 0-9, - and _: "
                f"write {_key_suggestion(key)!r}"
            )
        if not _LABEL_VALUE.fullmatch(value):
            raise ValueError(f"{owner}: labels has {key}={value!r}; a value has at most 63 of a-z, 0-9, - and _: shorten or respell it")


def _key_suggestion(key: str) -> str:
    return re.sub(r"[^a-z0-9_-]+", "-", key.lower()).lstrip("-_0123456789")[:63] or "label"
