"""What people with a team's rights may not do to what is another team's, rule by rule, in CEL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.catalog.node_labels import ENVIRONMENT_LABEL, TEAM_LABEL
from capacity.catalog.work_labels import PROJECT_LABEL, QUEUE_PRIORITY_LABEL
from policies.admission.boundary import (
    IS_QUEUED_KIND,
    IS_UNQUEUED_KIND,
    PRIORITY,
    QUEUE_PRIORITY,
    Boundary,
    Guarantee,
    of_namespace,
    of_pods,
    problem_if,
)
from policies.admission.cel import every, first_of, list_at, mapping_at, text, text_at, texts
from policies.admission.form import told
from policies.admission.pod_boundaries import DEVICES, PLACED, POD_SECURITY, SIZE, TOLERATIONS, grace_of_pods
from policies.admission.pods import ASKS
from policies.admission.queue_boundaries import deadlines, queues_of_work

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_LABELS = mapping_at("object", "metadata", "labels")
_POD_LABELS = mapping_at("p.template", "metadata", "labels")
_IS_UPDATE = "(request.operation == 'UPDATE')"

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
    + of_pods(
        f"size({list_at('p.template', 'metadata', 'finalizers')}) > 0",
        told("{where}: its pods have finalizers, and would stay when their work is gone", "leave finalizers out", where="p.where"),
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
    return Boundary(
        "priority-of-others",
        "work has the priority of a class that is meant for its kind",
        of_pods(
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
            f"{IS_QUEUED_KIND} && {of_queue} != '' && !({of_queue} in {queued})",
            told(
                f"label {QUEUE_PRIORITY_LABEL} is {{name}}, which is no class of queued work",
                f"name one of these, or leave it out: {listed}",
                name=of_queue,
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
            of_pods(
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


_BILLED = (
    f"{_other(_LABELS)}.map(k, "
    + told(
        "label {key} is {value}, and the namespace's is {own}: it would be billed to others",
        "leave it out",
        key="k",
        value=f"{_LABELS}[k]",
        own="namespaceObject.metadata.labels[k]",
    )
    + ")",
    of_pods(
        f"size({_other(_POD_LABELS)}) > 0",
        told("{where}: a label of its pods names another team than the namespace's", "leave it out", where="p.where"),
    ),
)


def _billed(guarantee: Guarantee) -> Boundary:
    return Boundary(
        "billed-to-others",
        "work is billed to the team of its namespace, and to projects of that team",
        " + ".join([*_BILLED, *(_projects(guarantee.projects) if guarantee.projects else ())]),
    )


def _projects(by_namespace: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    own = of_namespace(by_namespace)

    def other(labels: str) -> str:
        return every(f"size({own}) > 0", f"{key} in {labels}", f"!({labels}[{key}] in {own})")

    key = text(PROJECT_LABEL)
    named = f"{own}.join(', ')"
    yield problem_if(
        other(_LABELS),
        told(
            f"label {PROJECT_LABEL} is {{name}}, which is no project of this team: it would be billed to others",
            "name one of these, or leave it out: {own}",
            name=f"{_LABELS}[{key}]",
            own=named,
        ),
    )
    yield of_pods(
        other(_POD_LABELS),
        told(
            f"{{where}}: label {PROJECT_LABEL} of its pods is {{name}}, which is no project of this team: it would be billed to others",
            "name one of these, or leave it out: {own}",
            where="p.where",
            name=f"{_POD_LABELS}[{key}]",
            own=named,
        ),
    )


def boundaries(guarantee: Guarantee) -> Iterator[Boundary]:
    """The rules of what comes and changes."""
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
