"""The policy that lets a Job end before it is stopped. It also applies to Kubernetes and Kueue."""

from __future__ import annotations

import pytest
from cel_evaluator import judged
from guarded_work import DEADLINE, STOPS, Object, job, pod

KUEUE = "system:serviceaccount:kueue-system:kueue-controller-manager"


def ending(*conditions: str, suspend: bool = True, **status: str) -> Object:
    made = job(pod(), ends={**DEADLINE, "suspend": suspend})
    return {**made, "status": {"conditions": [{"type": each, "status": "True"} for each in conditions], **status}}


def broken(new: Object, old: Object, sender: str = KUEUE) -> set[str] | None:
    found = judged(STOPS, new, old=old, sender=sender)
    return None if found is None else {rule for rule, each in found.items() if each}


@pytest.mark.parametrize(
    "conditions,is_refused",
    [
        (["SuccessCriteriaMet"], True),
        (["FailureTarget"], True),
        (["SuccessCriteriaMet", "Complete"], False),
        (["FailureTarget", "Failed"], False),
        ([], False),
    ],
)
def test_a_job_whose_result_is_decided_is_not_suspended(conditions: list[str], *, is_refused: bool) -> None:
    running, stopped = ending(*conditions, suspend=False), ending(*conditions)

    for sender in (KUEUE, "ann@acme.com"):
        assert broken(stopped, running, sender) == ({"stopped-at-its-end"} if is_refused else set())
    assert broken(stopped, stopped) is None, "it was suspended before"
    assert broken(running, stopped) is None, "it goes on"


@pytest.mark.parametrize(
    "conditions,is_refused",
    [([], True), (["SuccessCriteriaMet"], True), (["FailureTarget", "Suspended"], True), (["Suspended"], False)],
)
def test_a_job_keeps_its_start_time_until_kubernetes_has_counted_its_ended_pods(conditions: list[str], *, is_refused: bool) -> None:
    started = ending(*conditions, startTime="2026-11-26T10:00:00Z")

    for sender in (KUEUE, "system:serviceaccount:kube-system:job-controller"):
        assert broken(ending(*conditions), started, sender) == ({"start-of-an-ending"} if is_refused else set())
    assert broken(started, ending(*conditions)) is None, "it is started"
