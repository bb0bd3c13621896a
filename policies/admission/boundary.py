"""One rule of a team's guarantee, in CEL, and what such rules go by."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from capacity.catalog.work_labels import QUEUE_PRIORITY_LABEL
from policies.admission.cel import entry, text, text_at, texts
from policies.admission.form import POD_SETS
from policies.inventory.pod_gpus import POD_MAKERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


QUEUED_KINDS = ("Job", "JobSet", "CronJob")
"""Kinds that queues admit (capacity.plan.kueue_configuration.FRAMEWORKS), and what makes them."""

_WITHOUT_GPUS = ("DaemonSet", "PodTemplate")

UNQUEUED_KINDS = tuple(dict.fromkeys(kind for _, kind in POD_MAKERS if kind not in (*QUEUED_KINDS, *_WITHOUT_GPUS)))
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


def problem_if(condition: str, problem: str) -> str:
    """A list with a problem where a condition holds."""
    return f"(({condition}) ? [{problem}] : [])"


def of_pods(condition: str, problem: str) -> str:
    """A problem of each pod set `p` for which a condition holds."""
    return f"{POD_SETS}.filter(p, {condition}).map(p, {problem})"


def of_namespace(named: Mapping[str, Iterable[str]]) -> str:
    """Those of the names that are of the namespace that is asked about.

    A literal in the order of the names: a mapping, of which the facts are one, has none, and what is told must not change by itself.
    """
    by_namespace = ", ".join(f"{text(namespace)}: {texts(sorted(names))}" for namespace, names in sorted(named.items()))
    return f"{{{by_namespace}}}[?request.namespace].orValue([])"
