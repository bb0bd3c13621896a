"""The policies that enforce a team's guarantee in the cluster. Work cannot bypass the queue, and a rule that cannot be evaluated refuses.

Other rules are about mistakes, which users may accept in writing. These rules protect other teams, and volume claims of the platform, from
people with a team's rights. They cannot be suppressed, and objects that controllers create from admitted work are not judged again.
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

_FREE = "remove it: a storage class creates a volume of your own"


def _static(claim: str) -> str:
    # A missing class requests the cluster's default class; an empty one requests an existing volume.
    return f"{optional(claim, 'spec', 'storageClassName')}.orValue('-') == ''"


_NAMED = text_at("object", "spec", "volumeName")
CLAIMS = boundary(
    "volume-of-the-platform",
    "existing volumes and their claims belong to the platform",
    problem_if(
        every(_CREATED, f"{_NAMED} != ''"),
        "spec.volumeName is {name}: existing volumes belong to the platform",
        _FREE,
        name=_NAMED,
    ),
    problem_if(
        every(_CREATED, _static("object")),
        "spec.storageClassName is empty: it requests an existing volume, which belongs to the platform",
        "name a class, or leave it out",
    ),
    problem_if(
        every(_CREATED, "has(object.spec.selector)"), "spec.selector requests an existing volume, which belongs to the platform", _FREE
    ),
    problem_if(
        every(_DELETED, _static("oldObject")), "it is a claim of the platform's, such as of checkpoints", "ask the platform's operators"
    ),
)
"""Adds to the quotas, which limit the number of claims and their storage. A claim cannot change its volume or class later."""

CHANGES_VOLUMES = "authorizer.group('').resource('persistentvolumes').check('delete').allowed()"
"""CEL that is true if the sender may delete the cluster's volumes.

Operators may: `up` and `destroy` create and delete the platform's claims.
"""


NAME = "flexspot-guarantee"
LEAVING, ENDING, OF_CLAIMS = (f"{NAME}-{of}" for of in ("leaving", "ending", "claims"))
"""Names of the policies about deleted objects, Jobs that are about to end, and volume claims. NAME is about created and updated objects."""


def guarantee_of(plan: Plan) -> Guarantee:
    """Return the guarantee of a plan."""
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
    """Return CEL that is true if a Job has one of these conditions. `version` is object or oldObject."""
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
"""Kueue 0.19 removes the start time of a Job that it stops (pkg/controller/jobs/job/job_controller.go), and a Job without one cannot end
(Kubernetes 1.36.1, pkg/apis/batch/validation: startTime is required for a finished Job). When refused, Kueue retries until the Job has
ended.
"""

START_OF_AN_ENDING = boundary(
    "start-of-an-ending",
    "a Job keeps its start time until Kubernetes has stopped it",
    problem_if(
        every(_LOSES_ITS_START, either(f"!({_has('object', 'Suspended')})", _decided("object"))),
        "Kubernetes has not yet counted its ended pods; if all have ended, it could not be Complete or Failed without a start time",
        "try again when it has the condition Suspended",
    ),
)
"""Kubernetes counts ended pods once a second (1.36.1, pkg/controller/job: syncJobBatchPeriod), but Kueue removes the start time right after
it suspends a Job. So a Job may be stopped when its last pod has ended but is not counted yet. Kubernetes counts pods before it sets the
condition Suspended.
"""

_VOLUME_CLAIMS = (ResourceRule("", ("persistentvolumeclaims",), ("CREATE", "DELETE")),)
_OF_JOBS = (ResourceRule("batch", ("jobs", "jobs/status"), ("UPDATE",)),)
_ENDS = (Expression("is-stopped", either(_IS_STOPPED, _LOSES_ITS_START)),)


def guarantee_policies(guarantee: Guarantee) -> tuple[AdmissionPolicy, ...]:
    """Return the policies, whose rules cannot be suppressed.

    They are about objects that are created, updated or deleted, about claims, and one applies to controllers, too.
    """
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
    """Return CEL that is true if people or their programs sent the request.

    Excludes users of Kubernetes itself, and service accounts outside teams' namespaces.
    """
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
