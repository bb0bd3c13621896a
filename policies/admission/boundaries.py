"""What people with a team's rights may not do to what is another team's, rule by rule, in CEL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from capacity.catalog.node_labels import ENVIRONMENT_LABEL, GPU_RESOURCE, TEAM_LABEL
from capacity.workloads.requests import QUEUE_LABEL, QUEUE_PRIORITY_LABEL
from policies.admission.cel import (
    MOST_PLACES,
    either,
    entry,
    every,
    first_of,
    list_at,
    mapping_at,
    optional,
    text,
    text_at,
    texts,
)
from policies.admission.form import POD_SETS, told
from policies.admission.pod_security import VIOLATIONS
from policies.admission.pods import ALL_CONTAINERS, ASKS
from policies.admission.scheduling_options import QUEUE
from policies.inventory.pod_gpus import ELEMENTS, POD_MAKERS
from policies.rules.grace_exceeds_notice import RULE as GRACE_RULE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

QUEUED_KINDS = ("Job", "JobSet", "CronJob")
"""Kinds that queues admit (capacity.plan.kueue_configuration.FRAMEWORKS), and what makes them."""

UNQUEUED_KINDS = ("Pod", "Deployment", "ReplicaSet", "StatefulSet", "ReplicationController", "LeaderWorkerSet", "Notebook")
"""Kinds that queues do not admit; a part of a team's GPUs is theirs."""

LONGEST_NOTICE_SECONDS = GRACE_RULE.defaults().number("longest-seconds")
"""The longest notice of a Spot interruption; a grace period up to it is in order everywhere."""


@dataclass(frozen=True)
class Guarantee:
    """What the rules go by: teams' namespaces, the PriorityClasses of queued and of other work, and the longest grace period in seconds."""

    namespaces: tuple[str, ...]
    queued: tuple[str, ...]
    unqueued: tuple[str, ...]
    longest_grace: int
    facts: Mapping[str, str]


@dataclass(frozen=True)
class Boundary:
    """One rule: `problems` is CEL for a list of what is wrong, each a whole text; `title` is told where that cannot be said."""

    name: str
    title: str
    problems: str


def problem_if(condition: str, problem: str) -> str:
    """A list with a problem where a condition holds."""
    return f"(({condition}) ? [{problem}] : [])"


def _of_pods(condition: str, problem: str) -> str:
    """A problem of each pod set `p` for which a condition holds."""
    return f"{POD_SETS}.filter(p, {condition}).map(p, {problem})"


_LABELS = mapping_at("object", "metadata", "labels")
_POD_LABELS = mapping_at("p.template", "metadata", "labels")
_IS_UPDATE = "(request.operation == 'UPDATE')"
_IS_QUEUED_KIND, _IS_UNQUEUED_KIND = (f"object.kind in {texts(kinds)}" for kinds in (QUEUED_KINDS, UNQUEUED_KINDS))

# A controller's reference makes Kueue take the object for a part of work that is admitted already, and the garbage collector for another's.
_CONTROLLED = f"{list_at('object', 'metadata', 'ownerReferences')}.filter(o, o.?controller.orValue(false))"
_CONTROLLED_BEFORE = f"{list_at('oldObject', 'metadata', 'ownerReferences')}.exists(b, b.uid == o.uid)"
OWNERS = Boundary(
    "owner-of-ones-own",
    "only controllers write ownerReferences with controller: true",
    f"{_CONTROLLED}.filter(o, !({_IS_UPDATE} && {_CONTROLLED_BEFORE}))"
    ".map(o, "
    + told(
        "metadata.ownerReferences makes it a part of {kind} {name}, and so of what its queue has admitted",
        "leave ownerReferences out; controllers write them",
        kind=text_at("o", "kind"),
        name=text_at("o", "name"),
    )
    + ")",
)

# With a finalizer of its own a deleted Job keeps its pods, and its queue has forgotten it.
_KEPT = "f in ['foregroundDeletion']"
_BEFORE = f"({_IS_UPDATE} && f in {list_at('oldObject', 'metadata', 'finalizers')})"
FINALIZERS = Boundary(
    "finalizer-of-ones-own",
    "only controllers write finalizers",
    f"{list_at('object', 'metadata', 'finalizers')}.filter(f, !({_KEPT}) && !{_BEFORE}).map(f, "
    + told("metadata.finalizers names {name}: deleted, it would keep its nodes outside of its queue", "leave finalizers out", name="f")
    + ") + "
    + _of_pods(
        f"size({list_at('p.template', 'metadata', 'finalizers')}) > 0",
        told("{where}: its pods have finalizers, and would stay when their work is gone", "leave finalizers out", where="p.where"),
    ),
)


def _priorities(guarantee: Guarantee) -> Boundary:
    written = text_at("p.pod", "priorityClassName")
    queued, unqueued = texts(guarantee.queued), texts(guarantee.unqueued)
    of_queue = entry("variables.queueLabels", text(QUEUE_PRIORITY_LABEL))
    listed = ", ".join(guarantee.queued) or "none"
    services = ", ".join(guarantee.unqueued) or "none"
    of_plan = texts(("", *guarantee.queued, *guarantee.unqueued))
    wrong = first_of(
        (_IS_QUEUED_KIND, f"{written} != '' && !({written} in {queued})"),
        (_IS_UNQUEUED_KIND, f"{ASKS} ? !({written} in {unqueued}) : !({written} in {of_plan})"),
        otherwise=f"!({written} in {of_plan})",
    )
    allowed = first_of(
        (_IS_QUEUED_KIND, text(listed)),
        (f"{_IS_UNQUEUED_KIND} && ({ASKS})", text(services)),
        otherwise=text(", ".join([*guarantee.queued, *guarantee.unqueued]) or "none"),
    )
    named = first_of((f"{written} == ''", text("not said")), otherwise=written)
    return Boundary(
        "priority-of-others",
        "work has the priority of a class that is meant for its kind",
        _of_pods(
            wrong,
            told(
                "{where}.priorityClassName is {name}, which is not for this kind of work",
                "name one of these: {allowed}",
                where="p.where",
                name=named,
                allowed=allowed,
            ),
        )
        + " + "
        + problem_if(
            f"{_IS_QUEUED_KIND} && {of_queue} != '' && !({of_queue} in {queued})",
            told(
                f"label {QUEUE_PRIORITY_LABEL} is {{name}}, which is no class of queued work",
                f"name one of these, or leave it out: {listed}",
                name=of_queue,
            ),
        ),
    )


_KEY = f"{text(QUEUE)} + request.namespace + '.' + variables.queue"
_QUEUES = (
    f"variables.facts.filter(k, k.startsWith({text(QUEUE)} + request.namespace + '.'))"
    f".map(k, k.substring(size({text(QUEUE)} + request.namespace) + 1)).join(', ')"
)
QUEUES = Boundary(
    "work-past-the-queue",
    "work that asks for GPUs names a queue of its namespace",
    problem_if(
        every(
            _IS_QUEUED_KIND,
            either(
                f"variables.queue != '' && !(({_KEY}) in variables.facts)",
                f"variables.queue == '' && {POD_SETS}.exists(p, {ASKS})",
            ),
        ),
        told(
            f"label {QUEUE_LABEL} is {{name}}, which is no queue of this namespace: it would run past the queues, or wait for ever",
            "name one of these: {queues}",
            name=first_of(("variables.queue == ''", text("not there")), otherwise="variables.queue"),
            queues=first_of((f"size({_QUEUES}) == 0", text("there is none; ask who runs the platform")), otherwise=_QUEUES),
        ),
    ),
)

PREBUILT = ("kueue.x-k8s.io/prebuilt-workload-name", "kueue.x-k8s.io/pod-group-name", "kueue.x-k8s.io/managed")
"""Labels by which Kueue would take work for some that it has admitted, or for pods that it has looked at."""

LABELS = Boundary(
    "label-of-kueues-own",
    "labels that Kueue writes itself are not written by people",
    " + ".join(
        [
            f"{texts(PREBUILT)}.filter(k, k in {_LABELS}).map(k, "
            + told("label {name} says what Kueue alone knows", "leave it out", name="k")
            + ")",
            _of_pods(
                f"{texts(PREBUILT)}.exists(k, k in {_POD_LABELS})",
                told("{where}: a label of its pods says what Kueue alone knows", "leave out labels of kueue.x-k8s.io", where="p.where"),
            ),
        ]
    ),
)

_OF_NAMESPACE = mapping_at("namespaceObject", "metadata", "labels")


def _other(labels: str) -> str:
    return (
        f"{texts((TEAM_LABEL, ENVIRONMENT_LABEL))}.filter(k, k in {labels} && k in {_OF_NAMESPACE} && "
        f"{labels}[k] != namespaceObject.metadata.labels[k])"
    )


BILLED = Boundary(
    "billed-to-others",
    "work is billed to the team of its namespace",
    f"{_other(_LABELS)}.map(k, "
    + told(
        "label {key} is {value}, and the namespace's is {own}: it would be billed to others",
        "leave it out",
        key="k",
        value=f"{_LABELS}[k]",
        own="namespaceObject.metadata.labels[k]",
    )
    + ") + "
    + _of_pods(
        f"size({_other(_POD_LABELS)}) > 0",
        told("{where}: a label of its pods names another team than the namespace's", "leave it out", where="p.where"),
    ),
)

_MANAGERS = ("", "kubernetes.io/job-controller", "jobset.sigs.k8s.io/jobset-controller")
_SCHEDULER = text_at("p.pod", "schedulerName")
PLACED = Boundary(
    "placed-by-hand",
    "the platform's own scheduler and controllers place and run the work",
    " + ".join(
        [
            _of_pods(
                f"{text_at('p.pod', 'nodeName')} != ''",
                told("{where}.nodeName puts pods on a node, whoever it is for", "leave it out", where="p.where"),
            ),
            _of_pods(
                f"!({_SCHEDULER} in ['', 'default-scheduler'])",
                told(
                    "{where}.schedulerName is {name}, which does not run here or knows no taints",
                    "leave it out",
                    where="p.where",
                    name=_SCHEDULER,
                ),
            ),
            _of_pods(
                f"size({list_at('p.pod', 'schedulingGates')}) > 0",
                told("{where}.schedulingGates keeps pods from starting while their quota is held", "leave it out", where="p.where"),
            ),
            _of_pods(
                f"size({list_at('p.pod', 'resourceClaims')}) > 0",
                told("{where}.resourceClaims asks for devices that no queue counts", f"ask for {GPU_RESOURCE}", where="p.where"),
            ),
            problem_if(
                f"object.kind == 'JobSet' && !({text_at('object', 'spec', 'managedBy')} in {texts(_MANAGERS)})",
                told(
                    "spec.managedBy is {name}, and nothing here runs it: it would hold its quota and never start",
                    "leave it out",
                    name=text_at("object", "spec", "managedBy"),
                ),
            ),
            _of_pods(
                f"{text_at('p', 'job', 'managedBy')} != '' && !({text_at('p', 'job', 'managedBy')} in {texts(_MANAGERS)})",
                told("{where}: its Job's managedBy names what does not run here: it would never start", "leave it out", where="p.where"),
            ),
            problem_if(
                "object.kind == 'DaemonSet'", told("a DaemonSet is on every node, outside of every queue", "use a Job or a Deployment")
            ),
        ]
    ),
)

SYSTEM_TAINTS = ("CriticalAddonsOnly", "flexspot.dev/system", "node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
"""Taints of nodes that are the platform's own."""

_TOLERATED = list_at("p.pod", "tolerations")
_TOLERATION_KEY = text_at("t", "key")
TOLERATIONS = Boundary(
    "tolerates-too-much",
    "pods tolerate the taints of nodes that are meant for them",
    " + ".join(
        [
            _of_pods(
                f"{_TOLERATED}.exists(t, {_TOLERATION_KEY} == '')",
                told("{where}.tolerations has one without a key: it tolerates every taint", "name the taint's key", where="p.where"),
            ),
            _of_pods(
                f"{_TOLERATED}.exists(t, {_TOLERATION_KEY} in {texts(SYSTEM_TAINTS)})",
                told("{where}.tolerations leads to the nodes of the platform's own controllers", "take it out", where="p.where"),
            ),
            _of_pods(
                every(
                    f"!({ASKS})",
                    # What queues admit gets the tolerations of its flavor from Kueue, also where a Job has pods with and without GPUs.
                    f"{_TOLERATED}.exists(t, {_TOLERATION_KEY}.startsWith('nvidia.com/'))",
                    f"!{POD_SETS}.exists(q, {ASKS.replace('p.pod', 'q.pod')})",
                ),
                told(
                    "{where}.tolerations leads to GPU nodes, and no container has a limit on " + GPU_RESOURCE,
                    "take the toleration out, or ask for GPUs",
                    where="p.where",
                ),
            ),
        ]
    ),
)

_VISIBLE = "NVIDIA_VISIBLE_DEVICES"
_SHOWN = f"{text_at('e', 'name')} == {text(_VISIBLE)} && !({text_at('e', 'value')} in ['none', 'void'] && !e.?valueFrom.hasValue())"
_SEEING = f"{ALL_CONTAINERS}.filter(c, {list_at('c', 'env')}.exists(e, {_SHOWN}))"
DEVICES = Boundary(
    "sees-gpus-of-others",
    "containers see the GPUs that they are given",
    _of_pods(
        f"size({_SEEING}) > 0",
        told(
            "{where}: container {name} sets " + _VISIBLE + ", which shows it GPUs of others on its node",
            "leave it out: a container sees what it asked for",
            where="p.where",
            name=text_at(f"{_SEEING}[0]", "name"),
        ),
    ),
)


_SAID = ", ".join(f"({condition}) ? {text(words)} : ''" for words, condition in VIOLATIONS.items())
_VIOLATED = f"[{_SAID}].filter(w, w != '')"
POD_SECURITY = Boundary(
    "pods-that-never-start",
    "work makes pods that the namespace takes",
    _of_pods(
        f"object.kind != 'Pod' && size({_VIOLATED}) > 0",
        told(
            "{where}: the namespace takes no pods with {found}: it would hold its quota and never start",
            "write what Pod Security restricted asks for",
            where="p.where",
            found=f"{_VIOLATED}.join('; ')",
        ),
    ),
)

_LISTED = [
    list_at("object", *path.split(f".{ELEMENTS}")[0].split("."))
    for path in dict.fromkeys(path for maker in POD_MAKERS.values() for path in maker.paths if ELEMENTS in path)
]
SIZE = Boundary(
    "more-than-is-looked-at",
    f"rules look at {MOST_PLACES} parts of a kind",
    _of_pods(
        f"size({ALL_CONTAINERS}) > {MOST_PLACES}",
        told(
            f"{{where}} has {{count}} containers, of which rules would look at {MOST_PLACES}",
            f"use {MOST_PLACES} or fewer",
            where="p.where",
            count=f"size({ALL_CONTAINERS})",
        ),
    )
    + " + "
    + problem_if(
        either(*(f"size({each}) > {MOST_PLACES}" for each in _LISTED)),
        told(f"it has more than {MOST_PLACES} groups of pods, of which rules would look at {MOST_PLACES}", f"use {MOST_PLACES} or fewer"),
    ),
)


def _grace(guarantee: Guarantee) -> Boundary:
    written = f"int({optional('p.pod', 'terminationGracePeriodSeconds')}.orValue(0))"
    most = guarantee.longest_grace
    return Boundary(
        "grace-beyond-the-platforms",
        "GPUs come back within the longest grace period",
        _of_pods(
            f"({ASKS}) && {written} > {most}",
            told(
                f"{{where}}.terminationGracePeriodSeconds is {{grace}}; the longest here is {most}, and so long others wait for their GPUs",
                f"use {most} or less",
                where="p.where",
                grace=written,
            ),
        ),
    )


def boundaries(guarantee: Guarantee) -> Iterator[Boundary]:
    """The rules of what comes and changes."""
    yield from (
        OWNERS,
        FINALIZERS,
        _priorities(guarantee),
        QUEUES,
        LABELS,
        BILLED,
        PLACED,
        TOLERATIONS,
        DEVICES,
        POD_SECURITY,
        SIZE,
        _grace(guarantee),
    )
