"""What Karpenter's NodePools put on their nodes: taints, and labels that say whose they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from components.shared_args import NodeTaint


def written_taint(taint: NodeTaint) -> dict[str, str]:
    """A taint without its value where that is empty: NodePool's definition has a pattern for values that an empty one does not match."""
    named = {"key": taint["key"], "effect": taint["effect"]}
    return {"key": taint["key"], "value": taint["value"], "effect": taint["effect"]} if taint["value"] else named


def startup_taints(taints: Iterable[NodeTaint]) -> dict[str, list[dict[str, str]]]:
    """The field of a node template; none where there are no taints, as the server drops an empty list."""
    written = [written_taint(taint) for taint in taints]
    return {"startupTaints": written} if written else {}


def owner_metadata(owner_labels: dict[str, str]) -> dict[str, Any]:
    """The metadata of a NodePool's template; nothing for no labels. A change of it is drift of the nodes that are there.

    Karpenter lets pods select by such labels, too; nothing here does.
    """
    return {"metadata": {"labels": dict(sorted(owner_labels.items()))}} if owner_labels else {}
