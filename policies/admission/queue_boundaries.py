"""Which queue work may name: one of its namespace, whose machines are those that it needs; and that work with GPUs in it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.catalog.accelerators import RESOURCES
from capacity.catalog.work_labels import QUEUE_LABEL
from policies.admission.boundary import IS_QUEUED_KIND, PRIORITY, QUEUE_PRIORITY, Boundary, Guarantee, of_namespace, of_pods, problem_if
from policies.admission.cel import either, every, first_of, let, list_at, optional, text, text_at
from policies.admission.form import POD_SETS, told
from policies.admission.pods import ASKS, JOB_AT

if TYPE_CHECKING:
    from collections.abc import Iterator


_ASKS_FOR_GPUS = f"{POD_SETS}.exists(p, {ASKS})"
_NAMED = first_of(("variables.queue == ''", text("not there")), otherwise="variables.queue")
_NONE = "there is none; ask who runs the platform"


def _joined(queues: str) -> str:
    return let("own", queues, first_of(("size(own) == 0", text(_NONE)), otherwise="own.join(', ')"))


def queues_of_work(guarantee: Guarantee) -> Iterator[Boundary]:
    """The two rules: that there is such a queue, and that it is for work of this sort.

    A set of jobs with GPUs in some of its pods alone is work with GPUs: its others get machines without any by the queue's first flavor.
    """
    with_gpus, without = of_namespace(guarantee.queues), of_namespace(guarantee.cpu_queues)
    suitable = f"({_ASKS_FOR_GPUS} ? {with_gpus} : {without})"
    known = either(f"variables.queue in {with_gpus}", f"variables.queue in {without}")
    yield Boundary(
        "work-past-the-queue",
        "work that asks for GPUs names a queue of its namespace",
        problem_if(
            every(
                IS_QUEUED_KIND,
                either(f"variables.queue != '' && !({known})", f"variables.queue == '' && {_ASKS_FOR_GPUS}"),
            ),
            told(
                f"label {QUEUE_LABEL} is {{name}}, which is no queue of this namespace: it would run past the queues, or wait for ever",
                "name one of these: {queues}",
                name=_NAMED,
                queues=_joined(suitable),
            ),
        ),
    )
    yield Boundary(
        "work-in-the-wrong-queue",
        "work without GPUs is in a queue of machines without GPUs, and no other work is",
        problem_if(
            every(IS_QUEUED_KIND, _ASKS_FOR_GPUS, f"variables.queue in {without}"),
            told(
                f"label {QUEUE_LABEL} is {{name}}, whose machines have no GPUs: it would wait for ever",
                f"write {QUEUE_LABEL}: {{queues}}",
                name=_NAMED,
                queues=_joined(with_gpus),
            ),
        )
        + " + "
        + problem_if(
            every(
                IS_QUEUED_KIND,
                f"!({_ASKS_FOR_GPUS})",
                either(f"variables.queue in {with_gpus}", f"variables.queue == '' && size({without}) > 0"),
            ),
            told(
                f"no container has a limit on {' or '.join(RESOURCES)}, and label {QUEUE_LABEL} is {{name}}, which is for work with GPUs",
                f"write {QUEUE_LABEL}: {{queues}}",
                name=_NAMED,
                queues=_joined(without),
            ),
        ),
    )


_FIELD = "activeDeadlineSeconds"
_WRITTEN = f"int({optional('p', 'job', _FIELD)}.orValue(0))"
_CLASS = first_of((f"{PRIORITY} != ''", PRIORITY), otherwise=QUEUE_PRIORITY)
_MISSING = f"{{at}}.{_FIELD} is not there: the work might never end, and keeps its GPUs"

# A set makes a failed Job anew, and with it its deadline, if none of its rules says otherwise; the first that fits decides.
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
    """That each Job of queued work with GPUs has a deadline of its class's limit or less.

    Kueue's own limit (its label max-exec-time-seconds) counts all admissions together, so that work which others preempt would lose time
    that it never had; a Job's deadline counts from each admission on.
    """
    seconds = {name: most or 0 for name, most in guarantee.queued.items()}
    # Of no class: the longest of any, or none if one of them has none.
    any_class = 0 if 0 in seconds.values() else max(seconds.values(), default=0)
    limits = ", ".join(f"{text(name)}: {most}" for name, most in seconds.items())
    most = f"{{{limits}}}[?({_CLASS})].orValue({any_class})"
    named = first_of((f"({_CLASS}) == ''", text("its class")), otherwise=f"'class ' + ({_CLASS})")
    missing = first_of(
        (f"{most} > 0", told(_MISSING, f"write {_FIELD}: {{most}}, or less", at=JOB_AT, most=most)),
        otherwise=told(_MISSING, f"write {_FIELD} with the seconds that it may run at most", at=JOB_AT),
    )
    long = told(
        f"{{at}}.{_FIELD} is {{seconds}}, and {{named}} allows {{most}}",
        "write {most} or less; longer work saves checkpoints and is submitted again",
        at=JOB_AT,
        seconds=_WRITTEN,
        named=named,
        most=most,
    )
    wrong = either(f"{_WRITTEN} == 0", f"{most} > 0 && {_WRITTEN} > {most}")
    return Boundary(
        "never-ends",
        "queued work with GPUs has a deadline within its class's limit",
        of_pods(every(IS_QUEUED_KIND, ASKS, wrong), first_of((f"{_WRITTEN} == 0", missing), otherwise=long))
        + " + "
        + problem_if(
            _BEGINS_AGAIN,
            told(
                "spec.failurePolicy makes a Job anew that its deadline has ended",
                "begin its rules with {action: FailJobSet, onJobFailureReasons: [DeadlineExceeded]}",
            ),
        ),
    )
