"""That queued work with GPUs ends, and when its class says so at the latest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policies.admission.boundary import IS_QUEUED_KIND, PRIORITY, QUEUE_PRIORITY, Boundary, of_pods, problem_if
from policies.admission.cel import either, every, first_of, list_at, optional, text, text_at
from policies.admission.form import POD_SETS, told
from policies.admission.pods import ASKS, JOB_AT

if TYPE_CHECKING:
    from policies.admission.boundary import Guarantee

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
