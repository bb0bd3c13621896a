"""The CEL form of a rule, and variables that forms share. Name, code and messages are those of the rule."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from flexspot.capacity.catalog.node_labels import QUEUE_PRIORITY_LABEL
from flexspot.policies.admission.cel import (
    FURTHER_PLACES,
    PLACES,
    either,
    entry,
    every,
    mapping,
    mapping_at,
    sentence,
    text,
    text_at,
    texts,
)
from flexspot.policies.admission.checkpoints import checkpoint_variables
from flexspot.policies.admission.pods import ASKS, SERVES_NODES, pod_sets, queued_metadata
from flexspot.policies.admission.scheduling_options import QUEUE_NAME, WAYS
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
    "places": PLACES,
    "furtherPlaces": FURTHER_PLACES,
    "podSets": pod_sets(),
    # Pods that serve the nodes themselves are not work.
    "work": f"{POD_SETS}.filter(p, !({SERVES_NODES}))",
    "gpuWork": f"{WORK}.filter(p, {ASKS})",
    **dict(checkpoint_variables(checkpoint_on_ephemeral_volume.defaults())),
    "annotations": f"[{mapping_at('object', 'metadata', 'annotations')}] + "
    f"{POD_SETS}.map(p, {mapping_at('p.template', 'metadata', 'annotations')})",
    "queueLabels": queued_metadata("labels"),
    "facts": mapping({}),
    "queue": QUEUE_NAME,
    "ways": WAYS,
}

_USED = re.compile(r"\bvariables\.(\w+)")


def used_by(expressions: Iterable[str], facts: Mapping[str, str], checkpoints: Parameters | None = None) -> list[tuple[str, str]]:
    """Return the shared variables that expressions need, in order of their dependencies. `facts` is one of them.

    `checkpoints` are the parameters of the rule about checkpoint places. Default: as shipped.
    """
    shared = {**_SHARED, "facts": mapping(facts), **(dict(checkpoint_variables(checkpoints)) if checkpoints else {})}
    names: set[str] = set()
    todo = list(expressions)
    while todo:
        found = {name for name in _USED.findall(todo.pop()) if name in shared} - names
        names |= found
        todo += [shared[name] for name in found - {"facts"}]
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

IS_QUEUED_KIND, IS_UNQUEUED_KIND = (f"object.kind in {texts(kinds)}" for kinds in (QUEUED_KINDS, UNQUEUED_KINDS))

PRIORITY = text_at("p.pod", "priorityClassName")
"""PriorityClass of the pods of `p`. Empty if there is none."""

QUEUE_PRIORITY = entry("variables.queueLabels", text(QUEUE_PRIORITY_LABEL))
"""Class of the object's priority in its queue. Empty if there is none."""


@dataclass(frozen=True)
class Guarantee:
    """Facts of a plan that the rules of a team's guarantee use."""

    queues: Mapping[str, tuple[str, ...]]
    """Names of the GPU queues of each team's namespace."""
    cpu_queues: Mapping[str, tuple[str, ...]]
    """Names of the queues for work without GPUs of each team's namespace."""
    queued: Mapping[str, int | None]
    """PriorityClasses of queued work, with the longest run in seconds. None: no limit."""
    unqueued: tuple[str, ...]
    """PriorityClasses of other work."""
    longest_grace: int
    """Longest grace period in seconds."""
    facts: Mapping[str, str]
    projects: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Projects of each namespace. Its work must not name others."""

    @property
    def namespaces(self) -> tuple[str, ...]:
        """Namespaces of teams."""
        return tuple(sorted(self.queues))


@dataclass(frozen=True)
class Boundary:
    """One rule of the guarantee."""

    name: str
    title: str
    """Text that is shown if the problem cannot be evaluated."""
    problems: str
    """CEL for a list of problems, each a complete text."""


def boundary(name: str, title: str, *lists: str) -> Boundary:
    """Return a rule. Each of `lists` is CEL for some of its problems."""
    return Boundary(name, title, " + ".join(lists))


def problem_if(condition: str, message: str, remedy: str, /, **parts: str) -> str:
    """Return CEL for a list with the problem, worded by `explain`, if the condition is true."""
    return f"(({condition}) ? [{explain(message, remedy, **parts)}] : [])"


def for_each(listed: str, element: str, message: str, remedy: str, /, **parts: str) -> str:
    """Return CEL for a problem of each element of a list. `parts` may use the element's name."""
    return f"{listed}.map({element}, {explain(message, remedy, **parts)})"


def of_pods(condition: str, message: str, remedy: str, /, **parts: str) -> str:
    """Return CEL for a problem of each pod set `p` that meets a condition. `where` is the path to it."""
    return for_pods(condition, explain(message, remedy, where="p.where", **parts))


def for_pods(condition: str, problem: str) -> str:
    """Return CEL for a problem, itself CEL, of each pod set `p` that meets a condition."""
    return f"{POD_SETS}.filter(p, {condition}).map(p, {problem})"


def of_namespace(named: Mapping[str, Iterable[str]]) -> str:
    """Return CEL for the names of the request's namespace.

    A literal in the order of the names. The facts are a map, which has no order, but messages must not change between evaluations.
    """
    by_namespace = ", ".join(f"{text(namespace)}: {texts(sorted(names))}" for namespace, names in sorted(named.items()))
    return f"{{{by_namespace}}}[?request.namespace].orValue([])"
