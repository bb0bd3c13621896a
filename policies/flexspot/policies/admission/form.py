"""A rule's form in CEL, and the variables that forms share. Name, code and words are the rule's own."""

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
    """`problems` makes, of the rule's parameters, CEL for a list of what is wrong with `object`, each a text that `told` makes.

    It is empty for an object that keeps the rule, and may use `request`, `namespaceObject` and the variables of this module.
    `kinds` names the rule's parameter that lists the kinds it is about; empty where all that match are meant.
    """

    rule: Rule
    matches: tuple[ObjectKind, ...]
    problems: Callable[[Parameters], str]
    kinds: str = ""

    def matched(self, parameters: Parameters) -> tuple[ObjectKind, ...]:
        """The kinds that the rule is about."""
        return tuple(each for each in self.matches if not self.kinds or each.kind in parameters.texts(self.kinds))


def told(message: str, remedy: str, **parts: str) -> str:
    """CEL for one problem in the words of the rule: sentences with fields in braces, and CEL for what goes there."""
    return sentence(f"{message}. To fix it: {remedy}", **parts)


def of_each(pods: str, problem: str) -> str:
    """The problems of a list of pod sets: `problem` is CEL for the one of the pod set `p`, an empty text where there is none."""
    return f"{pods}.map(p, {problem}).filter(s, s != {text('')})"


POD_SETS, WORK, GPU_WORK = "variables.podSets", "variables.work", "variables.gpuWork"

_SHARED: Mapping[str, str] = {
    "places": PLACES,
    "furtherPlaces": FURTHER_PLACES,
    "podSets": pod_sets(),
    # What serves the nodes themselves is no work.
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
    """The shared variables that expressions need, each after those that it needs itself; `facts` is one of them.

    `checkpoints` are the parameters of the rule that looks where checkpoints are written. Default: as shipped.
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


_NAME = text_at("object", "metadata", "name")
_FULL = f"object.kind + '/' + request.namespace + '/' + {_NAME}"
_SPELLINGS = (f"object.apiVersion + '/' + {_FULL}", _FULL, f"object.kind + '/' + {_NAME}", _NAME)
"""How an object may be called where it is suppressed: see flexspot.policies.values.finding.ConfiguredSuppression."""


def accepted_in_settings(suppressions: Iterable[ConfiguredSuppression]) -> str:
    """Whether the settings suppress a rule for the object, and until no day that is past; `suppressions` are the rule's own."""
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
    """As fnmatch takes it, in the regular expressions of CEL."""
    made = {"*": ".*", "?": "."}
    # Of what is split at a group every other part is what the group took.
    parts = enumerate(_SIGN.split(objects))
    return f"^(?:{''.join(made.get(part, part.replace('[!', '[^', 1)) if place % 2 else re.escape(part) for place, part in parts)})$"


QUEUED_KINDS = ("Job", "JobSet", "CronJob")
"""Kinds that queues admit (flexspot.capacity.plan.kueue_configuration.FRAMEWORKS), and what makes them."""

_WITHOUT_GPUS = ("DaemonSet", "PodTemplate")

UNQUEUED_KINDS = tuple(dict.fromkeys(kind for _, kind in KINDS if kind not in (*QUEUED_KINDS, *_WITHOUT_GPUS)))
"""Kinds that queues do not admit, those of operators included: their GPUs are the part of a team's that is for services.

A DaemonSet is refused itself, and a PodTemplate makes no pods.
"""

IS_QUEUED_KIND, IS_UNQUEUED_KIND = (f"object.kind in {texts(kinds)}" for kinds in (QUEUED_KINDS, UNQUEUED_KINDS))

PRIORITY = text_at("p.pod", "priorityClassName")
"""The PriorityClass of the pods of `p`; empty where there is none."""

QUEUE_PRIORITY = entry("variables.queueLabels", text(QUEUE_PRIORITY_LABEL))
"""The object's place in its queue, by a class; empty where there is none."""


@dataclass(frozen=True)
class Guarantee:
    """What the rules go by.

    The names of the queues of each team's namespace, `queues` of GPUs and `cpu_queues` of work without any, the PriorityClasses of queued
    work, each with the longest run in seconds (None: its class has no limit), those of other work, and the longest grace period in seconds;
    `projects` are those of the namespaces whose work may name no other.
    """

    queues: Mapping[str, tuple[str, ...]]
    cpu_queues: Mapping[str, tuple[str, ...]]
    queued: Mapping[str, int | None]
    unqueued: tuple[str, ...]
    longest_grace: int
    facts: Mapping[str, str]
    projects: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])

    @property
    def namespaces(self) -> tuple[str, ...]:
        """Teams' namespaces."""
        return tuple(sorted(self.queues))


@dataclass(frozen=True)
class Boundary:
    """One rule: `problems` is CEL for a list of what is wrong, each a whole text; `title` is told where that cannot be said."""

    name: str
    title: str
    problems: str


def boundary(name: str, title: str, *lists: str) -> Boundary:
    """A rule of which each of `lists` is CEL for a part of what is wrong."""
    return Boundary(name, title, " + ".join(lists))


def problem_if(condition: str, message: str, remedy: str, /, **parts: str) -> str:
    """A list with a problem, as `told` words it, where a condition holds."""
    return f"(({condition}) ? [{told(message, remedy, **parts)}] : [])"


def for_each(listed: str, element: str, message: str, remedy: str, /, **parts: str) -> str:
    """A problem of each element of a list, under its name in the parts."""
    return f"{listed}.map({element}, {told(message, remedy, **parts)})"


def of_pods(condition: str, message: str, remedy: str, /, **parts: str) -> str:
    """A problem of each pod set `p` for which a condition holds; `where` is the path to it."""
    return for_pods(condition, told(message, remedy, where="p.where", **parts))


def for_pods(condition: str, problem: str) -> str:
    """A problem in CEL of each pod set `p` for which a condition holds."""
    return f"{POD_SETS}.filter(p, {condition}).map(p, {problem})"


def of_namespace(named: Mapping[str, Iterable[str]]) -> str:
    """Those of the names that are of the namespace that is asked about.

    A literal in the order of the names: a mapping, of which the facts are one, has none, and what is told must not change by itself.
    """
    by_namespace = ", ".join(f"{text(namespace)}: {texts(sorted(names))}" for namespace, names in sorted(named.items()))
    return f"{{{by_namespace}}}[?request.namespace].orValue([])"
