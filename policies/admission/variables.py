"""The variables that forms share. Each is evaluated once for an object, and only if the policy's expression comes to it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from policies.admission.cel import PLACES, mapping, mapping_at, text, text_at
from policies.admission.pod_gpus import ASKS, SERVES_NODES
from policies.admission.pod_gpus import VARIABLES as CHECKPOINT_VARIABLES
from policies.admission.pod_sets import pod_sets, queued_metadata
from policies.admission.scheduling_options import QUEUE_NAME, WAYS
from policies.values.finding import PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

POD_SETS, WORK, GPU_WORK = "variables.podSets", "variables.work", "variables.gpuWork"

_SHARED: Mapping[str, str] = {
    "places": PLACES,
    "podSets": pod_sets(),
    # What serves the nodes themselves is no work.
    "work": f"{POD_SETS}.filter(p, !({SERVES_NODES}))",
    "gpuWork": f"{WORK}.filter(p, {ASKS})",
    **CHECKPOINT_VARIABLES,
    "annotations": f"[{mapping_at('object', 'metadata', 'annotations')}] + "
    f"{POD_SETS}.map(p, {mapping_at('p.template', 'metadata', 'annotations')})",
    "queueLabels": queued_metadata("labels"),
    "facts": mapping({}),
    "queue": QUEUE_NAME,
    "ways": WAYS,
}

_USED = re.compile(r"\bvariables\.(\w+)")


def used_by(expressions: Iterable[str], facts: Mapping[str, str]) -> list[tuple[str, str]]:
    """The shared variables that expressions need, each after those that it needs itself; `facts` is one of them."""
    names: set[str] = set()
    todo = list(expressions)
    while todo:
        found = {name for name in _USED.findall(todo.pop()) if name in _SHARED} - names
        names |= found
        todo += [_SHARED[name] for name in found]
    shared = {**_SHARED, "facts": mapping(facts)}
    return [(name, expression) for name, expression in shared.items() if name in names]


def accepted(rule: str) -> str:
    """Whether somebody wrote on the object, or on a pod template of it, why it may break a rule, and until no day that is past.

    There is no clock in CEL: the day is the one on which the object is made, which the API server has written into it by then.
    """
    key = text(PREFIX + rule)
    today = text_at("object", "metadata", "creationTimestamp")
    until = "a.split(';').filter(s, s.trim().startsWith('until') && s.contains('='))"
    day = "s.split('=')[1].trim()"
    valid = f"({day} == '' || ({day}.matches({text(r'^[0-9]{4}-[0-9]{2}-[0-9]{2}$')}) && {today} <= {day} + 'T99'))"
    reason = "a.split(';')[0].trim() != ''"
    return f"variables.annotations.filter(m, {key} in m).map(m, m[{key}]).exists(a, {reason} && {until}.all(s, {valid}))"
