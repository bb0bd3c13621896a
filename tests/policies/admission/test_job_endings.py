"""The policy that lets a Job end before it is stopped, whoever stops it: Kubernetes and Kueue as well."""

from __future__ import annotations

import pytest
from cel_evaluator import judged
from guarded_work import DEADLINE, STOPS, Object, job, pod

KUEUE = "system:serviceaccount:kueue-system:kueue-controller-manager"


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
def test_nobody_suspends_a_job_whose_pods_have_decided_how_it_ends(conditions: list[str], *, is_refused: bool) -> None:
    def changed(conditions: list[str], *, suspend: bool) -> Object:
        made = job(pod(), ends={**DEADLINE, "suspend": suspend})
        return {**made, "status": {"conditions": [{"type": each, "status": "True"} for each in conditions]} if conditions else {}}

    running, stopped = changed(conditions, suspend=False), changed(conditions, suspend=True)
    for sender in (KUEUE, "ann@acme.com"):
        found = judged(STOPS, stopped, old=running, sender=sender)
        assert found is not None
        assert {rule for rule, each in found.items() if each} == ({"stopped-at-its-end"} if is_refused else set())
    assert judged(STOPS, stopped, old=stopped, sender=KUEUE) is None, "it was suspended before"
    assert judged(STOPS, running, old=stopped, sender=KUEUE) is None, "it goes on"


STARTED = {"startTime": "2026-11-26T10:00:00Z"}


@pytest.mark.parametrize(
    "conditions,is_refused",
    [
        ([], True),
        (["SuccessCriteriaMet"], True),
        (["FailureTarget", "Suspended"], True),
        (["Suspended"], False),
    ],
)
def test_nobody_takes_the_start_time_of_a_job_before_kubernetes_has_counted_its_ended_pods(
    conditions: list[str], *, is_refused: bool
) -> None:
    def stopped(**started: str) -> Object:
        of_status = {"conditions": [{"type": each, "status": "True"} for each in conditions], **started}
        return {**job(pod(), ends={**DEADLINE, "suspend": True}), "status": of_status}

    for sender in (KUEUE, "system:serviceaccount:kube-system:job-controller"):
        found = judged(STOPS, stopped(), old=stopped(**STARTED), sender=sender)
        assert found is not None
        assert {rule for rule, each in found.items() if each} == ({"start-of-an-ending"} if is_refused else set())
    assert judged(STOPS, stopped(**STARTED), old=stopped(), sender=KUEUE) is None, "it is started"
