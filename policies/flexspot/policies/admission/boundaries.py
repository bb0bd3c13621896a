"""Rules against changes to what belongs to other teams, by people with a team's rights, in CEL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexspot.capacity.catalog.accelerators import RESOURCES
from flexspot.capacity.catalog.node_labels import ENVIRONMENT_LABEL, PROJECT_LABEL, QUEUE_LABEL, QUEUE_PRIORITY_LABEL, TEAM_LABEL
from flexspot.policies.admission.cel import either, every, first_of, let, list_at, mapping_at, optional, text, text_at, texts
from flexspot.policies.admission.form import (
    IS_QUEUED_KIND,
    IS_UNQUEUED_KIND,
    POD_SETS,
    PRIORITY,
    QUEUE_PRIORITY,
    Boundary,
    Guarantee,
    boundary,
    explain,
    for_each,
    for_pods,
    of_namespace,
    of_pods,
    problem_if,
)
from flexspot.policies.admission.pod_boundaries import DEVICES, PLACED, POD_SECURITY, SIZE, TOLERATIONS, grace_of_pods
from flexspot.policies.admission.pods import ASKS, JOB_AT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


_LABELS = mapping_at("object", "metadata", "labels")
_POD_LABELS = mapping_at("p.template", "metadata", "labels")
_IS_UPDATE = "(request.operation == 'UPDATE')"

# With a controller's reference Kueue treats the object as a part of admitted work, and the garbage collector as a dependent.
_CONTROLLED = f"{list_at('object', 'metadata', 'ownerReferences')}.filter(o, o.?controller.orValue(false))"
_CONTROLLED_BEFORE = f"{list_at('oldObject', 'metadata', 'ownerReferences')}.exists(b, b.uid == o.uid)"
OWNERS = boundary(
    "owner-of-ones-own",
    "only controllers write ownerReferences with controller: true",
    for_each(
        f"{_CONTROLLED}.filter(o, !({_IS_UPDATE} && {_CONTROLLED_BEFORE}))",
        "o",
        "metadata.ownerReferences makes it a part of {kind} {name}, and so of what its queue has admitted",
        "leave ownerReferences out; controllers write them",
        kind=text_at("o", "kind"),
        name=text_at("o", "name"),
    ),
)

# A deleted Job with its own finalizer keeps its pods, but its queue no longer counts it.
_KEPT = "f in ['foregroundDeletion']"
_BEFORE = f"({_IS_UPDATE} && f in {list_at('oldObject', 'metadata', 'finalizers')})"
FINALIZERS = boundary(
    "finalizer-of-ones-own",
    "only controllers write finalizers",
    for_each(
        f"{list_at('object', 'metadata', 'finalizers')}.filter(f, !({_KEPT}) && !{_BEFORE})",
        "f",
        "metadata.finalizers names {name}: deleted, it would keep its nodes outside of its queue",
        "leave finalizers out",
        name="f",
    ),
    of_pods(
        f"size({list_at('p.template', 'metadata', 'finalizers')}) > 0",
        "{where}: its pods have finalizers, and would stay when their work is gone",
        "leave finalizers out",
    ),
)


def _priorities(guarantee: Guarantee) -> Boundary:
    written = PRIORITY
    queued, unqueued = texts(guarantee.queued), texts(guarantee.unqueued)
    of_queue = QUEUE_PRIORITY
    listed = ", ".join(guarantee.queued) or "none"
    services = ", ".join(guarantee.unqueued) or "none"
    of_plan = texts(("", *guarantee.queued, *guarantee.unqueued))
    wrong = first_of(
        (IS_QUEUED_KIND, f"{written} != '' && !({written} in {queued})"),
        (IS_UNQUEUED_KIND, f"{ASKS} ? !({written} in {unqueued}) : !({written} in {of_plan})"),
        otherwise=f"!({written} in {of_plan})",
    )
    allowed = first_of(
        (IS_QUEUED_KIND, text(listed)),
        (f"{IS_UNQUEUED_KIND} && ({ASKS})", text(services)),
        otherwise=text(", ".join([*guarantee.queued, *guarantee.unqueued]) or "none"),
    )
    named = first_of((f"{written} == ''", text("not said")), otherwise=written)
    return boundary(
        "priority-of-others",
        "work has a priority class for its kind",
        of_pods(
            wrong,
            "{where}.priorityClassName is {name}, which is not for this kind of work",
            "name one of these: {allowed}",
            name=named,
            allowed=allowed,
        ),
        problem_if(
            f"{IS_QUEUED_KIND} && {of_queue} != '' && !({of_queue} in {queued})",
            f"label {QUEUE_PRIORITY_LABEL} is {{name}}, which is no class of queued work",
            f"name one of these, or leave it out: {listed}",
            name=of_queue,
        ),
    )


PREBUILT = ("kueue.x-k8s.io/prebuilt-workload-name", "kueue.x-k8s.io/pod-group-name", "kueue.x-k8s.io/managed")
"""Labels with which Kueue would treat work as admitted already, or pods as checked already."""

LABELS = boundary(
    "label-of-kueues-own",
    "labels that Kueue writes itself are not written by people",
    for_each(f"{texts(PREBUILT)}.filter(k, k in {_LABELS})", "k", "label {name} says what Kueue alone knows", "leave it out", name="k"),
    of_pods(
        f"{texts(PREBUILT)}.exists(k, k in {_POD_LABELS})",
        "{where}: a label of its pods says what Kueue alone knows",
        "leave out labels of kueue.x-k8s.io",
    ),
)

_OF_NAMESPACE = mapping_at("namespaceObject", "metadata", "labels")


def _other(labels: str) -> str:
    return (
        f"{texts((TEAM_LABEL, ENVIRONMENT_LABEL))}.filter(k, k in {labels} && k in {_OF_NAMESPACE} && "
        f"{labels}[k] != namespaceObject.metadata.labels[k])"
    )


_BILLED = (
    for_each(
        _other(_LABELS),
        "k",
        "label {key} is {value}, and the namespace's is {own}: it would be billed to others",
        "leave it out",
        key="k",
        value=f"{_LABELS}[k]",
        own="namespaceObject.metadata.labels[k]",
    ),
    of_pods(f"size({_other(_POD_LABELS)}) > 0", "{where}: a label of its pods names another team than the namespace's", "leave it out"),
)


def _billed(guarantee: Guarantee) -> Boundary:
    return boundary(
        "billed-to-others",
        "work is billed to the team of its namespace, and to projects of that team",
        *_BILLED,
        *(_projects(guarantee.projects) if guarantee.projects else ()),
    )


def _projects(by_namespace: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    own = of_namespace(by_namespace)

    def other(labels: str) -> str:
        return every(f"size({own}) > 0", f"{key} in {labels}", f"!({labels}[{key}] in {own})")

    key = text(PROJECT_LABEL)
    named = f"{own}.join(', ')"
    yield problem_if(
        other(_LABELS),
        f"label {PROJECT_LABEL} is {{name}}, which is no project of this team: it would be billed to others",
        "name one of these, or leave it out: {own}",
        name=f"{_LABELS}[{key}]",
        own=named,
    )
    yield of_pods(
        other(_POD_LABELS),
        f"{{where}}: label {PROJECT_LABEL} of its pods is {{name}}, which is no project of this team: it would be billed to others",
        "name one of these, or leave it out: {own}",
        name=f"{_POD_LABELS}[{key}]",
        own=named,
    )


def boundaries(guarantee: Guarantee) -> Iterator[Boundary]:
    """Yield the rules about objects that are created or updated."""
    yield from (
        OWNERS,
        FINALIZERS,
        _priorities(guarantee),
        *queues_of_work(guarantee),
        LABELS,
        _billed(guarantee),
        PLACED,
        TOLERATIONS,
        DEVICES,
        POD_SECURITY,
        SIZE,
        grace_of_pods(guarantee),
        deadlines(guarantee),
    )


_REQUESTS_GPUS = f"{POD_SETS}.exists(p, {ASKS})"
_NAMED = first_of(("variables.queue == ''", text("not there")), otherwise="variables.queue")
_NONE = "there is none; ask the platform's operators"


def _joined(queues: str) -> str:
    return let("own", queues, first_of(("size(own) == 0", text(_NONE)), otherwise="own.join(', ')"))


def queues_of_work(guarantee: Guarantee) -> Iterator[Boundary]:
    """Yield two rules: the queue must exist, and it must be for this kind of work.

    A JobSet in which only some pods have GPUs is work with GPUs. Its other pods get machines without GPUs by the queue's first flavor.
    """
    with_gpus, without = of_namespace(guarantee.queues), of_namespace(guarantee.cpu_queues)
    suitable = f"({_REQUESTS_GPUS} ? {with_gpus} : {without})"
    known = either(f"variables.queue in {with_gpus}", f"variables.queue in {without}")
    yield boundary(
        "work-past-the-queue",
        "work that asks for GPUs names a queue of its namespace",
        problem_if(
            every(
                IS_QUEUED_KIND,
                either(f"variables.queue != '' && !({known})", f"variables.queue == '' && {_REQUESTS_GPUS}"),
            ),
            f"label {QUEUE_LABEL} is {{name}}, which is no queue of this namespace: it would run past the queues, or wait for ever",
            "name one of these: {queues}",
            name=_NAMED,
            queues=_joined(suitable),
        ),
    )
    yield boundary(
        "work-in-the-wrong-queue",
        "work without GPUs is in a queue of machines without GPUs, and no other work is",
        problem_if(
            every(IS_QUEUED_KIND, _REQUESTS_GPUS, f"variables.queue in {without}"),
            f"label {QUEUE_LABEL} is {{name}}, whose machines have no GPUs: it would wait for ever",
            f"write {QUEUE_LABEL}: {{queues}}",
            name=_NAMED,
            queues=_joined(with_gpus),
        ),
        problem_if(
            every(
                IS_QUEUED_KIND,
                f"!({_REQUESTS_GPUS})",
                either(f"variables.queue in {with_gpus}", f"variables.queue == '' && size({without}) > 0"),
            ),
            f"no container has a limit on {' or '.join(RESOURCES)}, and label {QUEUE_LABEL} is {{name}}, which is for work with GPUs",
            f"write {QUEUE_LABEL}: {{queues}}",
            name=_NAMED,
            queues=_joined(without),
        ),
    )


_FIELD = "activeDeadlineSeconds"
_WRITTEN = f"int({optional('p', 'job', _FIELD)}.orValue(0))"
_CLASS = first_of((f"{PRIORITY} != ''", PRIORITY), otherwise=QUEUE_PRIORITY)
_MISSING = f"{{at}}.{_FIELD} is missing: the work might never end, and would keep its GPUs"

# A JobSet recreates a failed Job with a new deadline, unless a rule forbids it. The first rule that matches decides.
_RULES = list_at("object", "spec", "failurePolicy", "rules")
_REASONS = list_at("r", "onJobFailureReasons")
_ENDS = every(
    f"{text_at('r', 'action')} == 'FailJobSet'",
    either(f"size({_REASONS}) == 0", f"'DeadlineExceeded' in {_REASONS}"),
    f"size({list_at('r', 'targetReplicatedJobs')}) == 0",
)
_RESTARTS = either(f"int({optional('object', 'spec', 'failurePolicy', 'maxRestarts')}.orValue(0)) > 0", f"size({_RULES}) > 0")
_BEGINS_AGAIN = every(
    "object.kind == 'JobSet'",
    f"{POD_SETS}.exists(p, {ASKS})",
    _RESTARTS,
    f"!(size({_RULES}) > 0 && [{_RULES}[0]].all(r, {_ENDS}))",
)


def deadlines(guarantee: Guarantee) -> Boundary:
    """Return the rule that each Job of queued work with GPUs needs a deadline within its class's limit.

    Kueue's own limit (its label max-exec-time-seconds) adds up all admissions, so preempted work would lose time that it never had. A Job's
    deadline restarts with each admission.
    """
    seconds = {name: most or 0 for name, most in guarantee.queued.items()}
    # Without a class: the longest limit of any class, or none if a class has no limit.
    any_class = 0 if 0 in seconds.values() else max(seconds.values(), default=0)
    limits = ", ".join(f"{text(name)}: {most}" for name, most in seconds.items())
    most = f"{{{limits}}}[?({_CLASS})].orValue({any_class})"
    named = first_of((f"({_CLASS}) == ''", text("its class")), otherwise=f"'class ' + ({_CLASS})")
    missing = first_of(
        (f"{most} > 0", explain(_MISSING, f"write {_FIELD}: {{most}}, or less", at=JOB_AT, most=most)),
        otherwise=explain(_MISSING, f"write {_FIELD} with the seconds that it may run at most", at=JOB_AT),
    )
    long = explain(
        f"{{at}}.{_FIELD} is {{seconds}}, and {{named}} allows {{most}}",
        "write {most} or less; longer work saves checkpoints and is submitted again",
        at=JOB_AT,
        seconds=_WRITTEN,
        named=named,
        most=most,
    )
    wrong = either(f"{_WRITTEN} == 0", f"{most} > 0 && {_WRITTEN} > {most}")
    return boundary(
        "never-ends",
        "queued work with GPUs has a deadline within its class's limit",
        for_pods(every(IS_QUEUED_KIND, ASKS, wrong), first_of((f"{_WRITTEN} == 0", missing), otherwise=long)),
        problem_if(
            _BEGINS_AGAIN,
            "spec.failurePolicy recreates a Job that its deadline has ended",
            "begin its rules with {action: FailJobSet, onJobFailureReasons: [DeadlineExceeded]}",
        ),
    )
