"""Labels of nodes that say whose they are."""

from __future__ import annotations

from typing import Any


def owner_metadata(owner_labels: dict[str, str]) -> dict[str, Any]:
    """The metadata of a NodePool's template; nothing for no labels. A change of it is drift of the nodes that are there.

    Karpenter lets pods select by such labels, too; nothing here does.
    """
    return {"metadata": {"labels": dict(sorted(owner_labels.items()))}} if owner_labels else {}
