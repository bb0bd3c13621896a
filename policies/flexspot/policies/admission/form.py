"""The CEL form of a rule, and variables that forms share. Name, code and messages are those of the rule."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flexspot.policies.admission.cel import (
    FEW_PLACES,
    MOST_PLACES,
    either,
    every,
    mapping,
    mapping_at,
    places_between,
    sentence,
    text,
    text_at,
)
from flexspot.policies.admission.checkpoints import checkpoint_variables
from flexspot.policies.admission.pods import ASKS, SERVES_NODES, pod_sets, pod_templates, queued_metadata
from flexspot.policies.admission.scheduling_options import QUEUE_NAME, QUEUES_OF_NAMESPACE, WAYS
from flexspot.policies.inventory.pod_gpus import POD_MAKERS as KINDS
from flexspot.policies.rules.storage import checkpoint_on_ephemeral_volume
from flexspot.policies.values.finding import PREFIX, ConfiguredSuppression

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from flexspot.policies.inventory.pod_gpus import ObjectKind
    from flexspot.policies.judging import Parameters, Rule


@dataclass(frozen=True)
class Form:
    """A rule in CEL."""

    rule: Rule
    matches: tuple[ObjectKind, ...]
    """Kinds of objects that it judges."""
    problems: Callable[[Parameters], str]
    """Writes, with the rule's parameters, CEL for a list of problems of `object`, each a text by `explain`. Empty if the object passes.

    It may use `request`, `namespaceObject` and the variables of this module.
    """
    kinds: str = ""
    """Name of the rule's parameter that lists its kinds. Empty: all of `matches`."""

    def matched(self, parameters: Parameters) -> tuple[ObjectKind, ...]:
        """Return the kinds that the rule judges."""
        return tuple(each for each in self.matches if not self.kinds or each.kind in parameters.texts(self.kinds))


def explain(message: str, remedy: str, **parts: str) -> str:
    """Return CEL for one problem. `message` and `remedy` have fields in braces, which are replaced by `parts`, CEL expressions."""
    return sentence(f"{message}. To fix it: {remedy}", **parts)


def of_each(pods: str, problem: str) -> str:
    """Return CEL for the problems of a list of pod sets. `problem` is CEL for the problem of the pod set `p`, or an empty string."""
    return f"{pods}.map(p, {problem}).filter(s, s != {text('')})"


POD_SETS, WORK, GPU_WORK = "variables.podSets", "variables.work", "variables.gpuWork"

_SHARED: Mapping[str, str] = {
    "places": places_between(0, MOST_PLACES),
    "fewPlaces": places_between(0, FEW_PLACES),
    "podSets": pod_sets(),
    "oldPodSets": pod_templates("oldObject"),
    # Pods that serve the nodes themselves are not work.
    "work": f"{POD_SETS}.filter(p, !({SERVES_NODES}))",
    "gpuWork": f"{WORK}.filter(p, {ASKS})",
    **dict(checkpoint_variables(checkpoint_on_ephemeral_volume.defaults())),
    "annotations": f"[{mapping_at('object', 'metadata', 'annotations')}] + "
    f"{POD_SETS}.map(p, {mapping_at('p.template', 'metadata', 'annotations')})",
    "queueLabels": queued_metadata("labels"),
    "facts": mapping({}),
    "queues": QUEUES_OF_NAMESPACE,
    "queue": QUEUE_NAME,
    "ways": WAYS,
}

_USED = re.compile(r"\bvariables\.(\w+)")


def used_by(expressions: Iterable[str], further: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the variables that expressions need, in order of their dependencies: those of this module, and `further` by name."""
    shared = {**_SHARED, **further}
    names: set[str] = set()
    todo = list(expressions)
    while todo:
        found = {name for name in _USED.findall(todo.pop()) if name in shared} - names
        names |= found
        todo += [shared[name] for name in found]
    return [(name, expression) for name, expression in shared.items() if name in names]


def accepted(rule: str) -> str:
    """Return CEL that is true if an annotation of the object or its pod templates accepts a violation, with a reason and no expired date.

    CEL has no clock, so the date is compared with the object's creation, which the API server has set by then.
    """
    key = text(PREFIX + rule)
    today = text_at("object", "metadata", "creationTimestamp")
    until = "a.split(';').filter(s, s.trim().startsWith('until') && s.contains('='))"
    day = "s.split('=')[1].trim()"
    valid = f"({day} == '' || ({day}.matches({text(r'^[0-9]{4}-[0-9]{2}-[0-9]{2}$')}) && {today} <= {day} + 'T99'))"
    reason = "a.split(';')[0].trim() != ''"
    return f"variables.annotations.filter(m, {key} in m).map(m, m[{key}]).exists(a, {reason} && {until}.all(s, {valid}))"


_NAME = text_at("object", "metadata", "name")
_FULL = f"object.kind + '/' + request.namespace + '/' + {_NAME}"
_SPELLINGS = (f"object.apiVersion + '/' + {_FULL}", _FULL, f"object.kind + '/' + {_NAME}", _NAME)
"""Names by which a suppression may refer to the object: see flexspot.policies.values.finding.ConfiguredSuppression."""


def accepted_in_settings(suppressions: Iterable[ConfiguredSuppression]) -> str:
    """Return CEL that is true if the settings suppress a rule for the object, without an expired date.

    `suppressions` are those of the rule.
    """
    today = text_at("object", "metadata", "creationTimestamp")
    return either(
        *(
            every(
                f"[{', '.join(f'dyn({each})' for each in _SPELLINGS)}].exists(s, s.matches({text(_pattern(each.objects))}))",
                f"{today} <= {text(f'{each.suppression.until}T99')}" if each.suppression.until else "true",
            )
            for each in suppressions
        )
    )


_SIGN = re.compile(r"(\[[^\]]+\]|[*?])")


def _pattern(objects: str) -> str:
    """Return a pattern of fnmatch as a regular expression of CEL."""
    made = {"*": ".*", "?": "."}
    # Splitting at a group returns the matches of the group as every second part.
    parts = enumerate(_SIGN.split(objects))
    return f"^(?:{''.join(made.get(part, part.replace('[!', '[^', 1)) if place % 2 else re.escape(part) for place, part in parts)})$"


QUEUED_KINDS = ("Job", "JobSet", "CronJob")
"""Kinds that queues admit (flexspot.capacity.plan.kueue_configuration.FRAMEWORKS), and kinds that create these."""

_WITHOUT_GPUS = ("DaemonSet", "PodTemplate")

UNQUEUED_KINDS = tuple(dict.fromkeys(kind for _, kind in KINDS if kind not in (*QUEUED_KINDS, *_WITHOUT_GPUS)))
"""Kinds that queues do not admit, including those of operators. Their GPUs count to the team's share for services.

Excludes DaemonSets, which are refused, and PodTemplates, which create no pods.
"""
