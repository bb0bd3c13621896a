"""The guides' tables of the effects of a change, generated from the reviewed tables of stack_changes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from program_declarations import STACKS

from flexspot.infra.deployment.api_refusals import known_refusals

if TYPE_CHECKING:
    from pathlib import Path

BEGIN = "<!-- every setting, written by tests/cloud/test_stack_changes.py -->"
END = "<!-- end of every setting -->"

GUIDES = STACKS.parent / "docs" / "guides"

_HELD = {
    "cluster": "the cluster, with everything that runs on it",
    "network": "the network",
    "subnet": "the subnets of a zone",
    "pool": "the pool, with its nodes and what runs on them",
    "bucket": "buckets, with everything in them",
    "file-system": "file systems, with everything in them",
    "team-storage": "a team's namespace or volumes, with everything in them",
}

_NOTHING, _IN_PLACE, _ANEW = "no resource changes", "in place", "in place, and parts are made anew that hold nothing"


def guide(cloud: str) -> Path:
    return GUIDES / f"{cloud}.md"


def effect(does: dict[str, Any]) -> str:
    """Return a change's effect in the words of the guide."""
    if (refused := does.get("the cloud refuses")) and "preview refuses for" not in does:
        return f"refused by the cloud, which `preview` says: {'; '.join(known_refusals()[rule].words for rule in refused)}"
    replaced, deleted = (_kinds(does.get(key, [])) for key in ("replaces", "deletes"))
    if "cluster" in replaced or "cluster" in deleted:
        # Its contents are deleted with it.
        replaced, deleted = (
            [each for each in kinds if each in {"cluster", "network", "bucket", "file-system"}] for kinds in (replaced, deleted)
        )
    words = [f"makes anew: {' and '.join(_HELD[each] for each in replaced)}"] if replaced else []
    words += [f"deletes: {' and '.join(_HELD[each] for each in deleted)}"] if deleted else []
    if words and does.get("preview refuses for"):
        words.append("the preview refuses it while `cluster.deletion_protection` holds")
    if words:
        return "; ".join(words)
    if "also replaces" in does:
        return _ANEW
    return _IN_PLACE if does else _NOTHING


def _kinds(names: list[str]) -> list[str]:
    found = {"subnet" if re.search(r" network-(public|private|control-plane)-", each) else each.partition(" ")[0] for each in names}
    return [each for each in _HELD if each in found]


def part(cloud: str, rows: dict[str, Any]) -> str:
    """Return the generated part of a guide."""
    effects: dict[str, list[str]] = {}
    for setting, edits in rows.items():
        if isinstance(edits, str):
            effects.setdefault(f"no change of its own: {edits}", []).append(f"`{setting}`")
            continue
        by_effect: dict[str, list[str]] = {}
        for edit in edits:
            by_effect.setdefault(effect(edit["does"]), []).append(edit["edit"])
        for each, words in by_effect.items():
            # Which edit it is matters only where the edits of a setting differ.
            effects.setdefault(each, []).append(f"`{setting}`" if len(by_effect) == 1 else f"`{setting}` ({'; '.join(words)})")
    order = [_NOTHING, _IN_PLACE, _ANEW]
    listed = sorted(effects, key=lambda each: (order.index(each) if each in order else len(order), each))
    lines = ["| an edit of | does |", "|---|---|", *(f"| {', '.join(effects[each])} | {each} |" for each in listed)]
    stack = "prod-" + cloud
    about = (
        f"Every setting, each edited once in the shipped stacks (`{stack}` where it can be) and compared by what the providers replace. "
        "`*` stands for any entry. Names of resources: tests/cloud/snapshots."
    )
    return "\n".join([BEGIN, "", about, "", *lines, "", END])


def with_part(text: str, made: str) -> str:
    """Return a guide's text with its generated part updated."""
    before, _, rest = text.partition(BEGIN)
    return before + made + rest.partition(END)[2]
