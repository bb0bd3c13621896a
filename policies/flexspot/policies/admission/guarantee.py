"""The policies that keep a team's guarantee in the cluster: no way around the queue, and closed where a rule fails by itself.

Other rules are about mistakes, and one may accept them in writing. These are about what people with a team's rights could do to what is
another team's, or to claims of volumes that are the platform's; nobody accepts them, and what controllers make of admitted work is not
judged again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexspot.policies.admission.boundaries import boundaries
from flexspot.policies.admission.cel import either, every, list_at, optional, text, text_at, texts
from flexspot.policies.admission.form import (
    Boundary,
    Guarantee,
    boundary,
    problem_if,
    used_by,
)
from flexspot.policies.admission.pod_boundaries import LONGEST_NOTICE_SECONDS
from flexspot.policies.admission.policy import AdmissionPolicy, Expression, ResourceRule, of_pod_makers, validation, variable_of
from flexspot.policies.admission.scheduling_options import facts_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from flexspot.capacity.plan.model import CpuQueuePlan, Plan, QueuePlan


_CREATED, _DELETED = "request.operation == 'CREATE'", "request.operation == 'DELETE'"

_FREE = "leave it out: a class of storage makes a volume of your own"


def _static(claim: str) -> str:
    # No class at all asks for the cluster's own; an empty one for a volume that is there.
    return f"{optional(claim, 'spec', 'storageClassName')}.orValue('-') == ''"


_NAMED = text_at("object", "spec", "volumeName")
CLAIMS = boundary(
    "volume-of-the-platform",
    "volumes that are there, and the claims of them, are the platform's",
    problem_if(
        every(_CREATED, f"{_NAMED} != ''"),
        "spec.volumeName is {name}: a volume that is there was made for somebody",
        _FREE,
        name=_NAMED,
    ),
    problem_if(
        every(_CREATED, _static("object")),
        "spec.storageClassName is empty: it asks for a volume that is there, made for somebody",
        "name a class, or leave it out",
    ),
    problem_if(every(_CREATED, "has(object.spec.selector)"), "spec.selector asks for a volume that is there, made for somebody", _FREE),
    problem_if(
        every(_DELETED, _static("oldObject")), "it is a claim of the platform's, such as of checkpoints", "ask who runs the platform"
    ),
)
"""Beyond what quotas bound: how many claims there are, and of how much storage. A claim cannot be given another volume or class later."""

CHANGES_VOLUMES = "authorizer.group('').resource('persistentvolumes').check('delete').allowed()"
"""Whether the sender may delete volumes of the cluster: who runs the platform makes and deletes its claims, as `up` and `destroy` do."""


NAME = "flexspot-guarantee"
LEAVING, ENDING, OF_CLAIMS = (f"{NAME}-{of}" for of in ("leaving", "ending", "claims"))
"""The names of the policies: of what comes and changes, of what goes, of what is about to end by itself, and of claims of volumes."""


def guarantee_of(plan: Plan) -> Guarantee:
    """What follows from a plan."""
    queued = {route.priority_class: route.max_run_seconds for route in plan.routes if route.queued}
    every_class = {each.name for each in plan.priorities}
    return Guarantee(
        queues=_queues_of(plan, plan.queues),
        cpu_queues=_queues_of(plan, plan.cpu_work.queues if plan.cpu_work else ()),
        queued=dict(sorted(queued.items())),
        unqueued=tuple(sorted(every_class - queued.keys())),
        longest_grace=max([LONGEST_NOTICE_SECONDS, *(route.grace_seconds for route in plan.routes)]),
        facts=facts_of(plan),
        projects={team.namespace: team.projects for team in plan.teams if team.projects},
    )


def _queues_of(plan: Plan, queues: Sequence[QueuePlan | CpuQueuePlan]) -> dict[str, tuple[str, ...]]:
    return {team.namespace: tuple(each.local_queue for each in queues if each.namespace == team.namespace) for team in plan.teams}


_POLICY = text_at("request", "options", "propagationPolicy")
ORPHANS = boundary(
    "work-left-behind",
    "deleted work takes its pods with it",
    problem_if(
        f"{_POLICY} == 'Orphan' || {optional('request', 'options', 'orphanDependents')}.orValue(false)",
        "deleted with propagationPolicy Orphan, its pods would run on in no queue",
        "delete it with Background or Foreground",
    ),
)


def _has(version: str, *conditions: str) -> str:
    """Whether a Job has one of these conditions; `version` is object or oldObject."""
    return f"{list_at(version, 'status', 'conditions')}.exists(c, c.type in {texts(conditions)} && c.status == 'True')"


def _decided(version: str) -> str:
    return every(_has(version, "SuccessCriteriaMet", "FailureTarget"), f"!({_has(version, 'Complete', 'Failed')})")


_SUSPENDED, _WAS_SUSPENDED = (f"{optional(each, 'spec', 'suspend')}.orValue(false)" for each in ("object", "oldObject"))
_IS_STOPPED = every(_SUSPENDED, f"!{_WAS_SUSPENDED}")
_STARTED, _WAS_STARTED = (f"{optional(each, 'status', 'startTime')}.hasValue()" for each in ("object", "oldObject"))
_LOSES_ITS_START = every(_WAS_STARTED, f"!{_STARTED}")

STOPPED_AT_ITS_END = boundary(
    "stopped-at-its-end",
    "a Job whose pods have decided how it ends is not suspended",
    problem_if(
        every(_IS_STOPPED, _decided("oldObject")),
        "its pods have decided how it ends; suspended now, it would never be Complete or Failed, and would keep its GPUs",
        "wait until it is, or delete it",
    ),
)
"""Kueue 0.19 takes away the start time of a Job that it stops (pkg/controller/jobs/job/job_controller.go), and a Job without one cannot end
(Kubernetes 1.36.1, pkg/apis/batch/validation: startTime is required for a finished Job). Refused, Kueue tries until the Job has ended."""

START_OF_AN_ENDING = boundary(
    "start-of-an-ending",
    "a Job keeps its start time until Kubernetes has stopped it",
    problem_if(
        every(_LOSES_ITS_START, either(f"!({_has('object', 'Suspended')})", _decided("object"))),
        "Kubernetes has not yet counted its ended pods; if all have ended, it could not be Complete or Failed without a start time",
        "try again when it has the condition Suspended",
    ),
)
"""Kubernetes counts ended pods once a second (1.36.1, pkg/controller/job: syncJobBatchPeriod), and Kueue takes the start time away right
after it has suspended a Job. So a Job may be stopped when its last pod has ended and is not counted. Kubernetes counts before it calls a
Job Suspended."""

_VOLUME_CLAIMS = (ResourceRule("", ("persistentvolumeclaims",), ("CREATE", "DELETE")),)
_OF_JOBS = (ResourceRule("batch", ("jobs", "jobs/status"), ("UPDATE",)),)
_ENDS = (Expression("is-stopped", either(_IS_STOPPED, _LOSES_ITS_START)),)


def guarantee_policies(guarantee: Guarantee) -> tuple[AdmissionPolicy, ...]:
    """The policies, whose rules nobody accepts in writing: of what comes and goes, of claims, and one that holds for controllers, too."""
    by_people = Expression("sent-by-people", sent_by_people(guarantee.namespaces))
    return (
        _policy(
            NAME,
            tuple(boundaries(guarantee)),
            guarantee,
            of_pod_makers("CREATE", "UPDATE"),
            (by_people, Expression("changes-work", _CHANGES)),
        ),
        _policy(LEAVING, (ORPHANS,), guarantee, of_pod_makers("DELETE"), (by_people,)),
        _policy(OF_CLAIMS, (CLAIMS,), guarantee, _VOLUME_CLAIMS, (by_people, Expression("runs-no-platform", f"!{CHANGES_VOLUMES}"))),
        _policy(ENDING, (STOPPED_AT_ITS_END, START_OF_AN_ENDING), guarantee, _OF_JOBS, _ENDS),
    )


_METADATA = ("labels", "ownerReferences", "finalizers")
_CHANGED = either(
    *(f"object.?{field} != oldObject.?{field}" for field in ("spec", "template")),
    *(f"object.metadata.?{field} != oldObject.metadata.?{field}" for field in _METADATA),
)
_CHANGES = f"request.operation != 'UPDATE' || ({_CHANGED})"


def sent_by_people(namespaces: Iterable[str]) -> str:
    """Whether people sent it, or programs of theirs: whoever is neither Kubernetes' own nor a service account of no team's namespace."""
    user = "request.userInfo.username"
    account = every(f"{user}.startsWith('system:serviceaccount:')", f"!({user}.split(':')[2] in {texts(namespaces)})")
    return f"!({either(f'{user} in {texts(_KUBERNETES)}', f'{user}.startsWith({text(_NODES)})', account)})"


_KUBERNETES = ("system:kube-controller-manager", "system:apiserver")
_NODES = "system:node:"


def _policy(
    name: str, rules: tuple[Boundary, ...], guarantee: Guarantee, resources: tuple[ResourceRule, ...], conditions: tuple[Expression, ...]
) -> AdmissionPolicy:
    problems = [Expression(variable_of(each.name), each.problems) for each in rules]
    shared = [Expression(*each) for each in used_by((each.expression for each in problems), guarantee.facts)]
    return AdmissionPolicy(
        name=name,
        stops=True,
        guards=True,
        resource_rules=resources,
        conditions=conditions,
        variables=(*shared, *problems),
        validations=tuple(validation(each.name, f"{each.name}: ", each.title) for each in rules),
    )
