"""Labels as Google Cloud accepts them."""

from __future__ import annotations

import re

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
