"""Submissions while another user is faster, or while the server refuses a part. The server is in memory."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from kubernetes.client.exceptions import ApiException

from flexspot.capacity.values.errors import ExplainedError
from flexspot.infra.jobs import submission
from flexspot.infra.jobs.access import JOB, JOB_SET, MAP, POD, WORKLOAD, TeamCluster, explained
from flexspot.infra.jobs.state import State
from flexspot.infra.jobs.submission import Script, follow, states_of, stop, submit

if TYPE_CHECKING:
    from collections.abc import Callable

    from flexspot.capacity.workloads.pods import KubeObject

SCRIPT = Script("train.py", "print('mine')")


@dataclass(frozen=True)
class Memory(TeamCluster):
    """Objects by kind and name, each with a unique uid. `refuse` decides which creations fail."""

    held: dict[str, dict[str, Any]] = field(default_factory=lambda: {kind: {} for kind in (JOB, JOB_SET, MAP, POD, WORKLOAD)})
    refuse: list[Callable[[Any, bool], ApiException | None]] = field(default_factory=list)
    numbers: Any = field(default_factory=itertools.count)

    def create(self, each: KubeObject, *, dry_run: bool = False) -> KubeObject:
        kind, name = f"{each['apiVersion']}/{each['kind']}", each["metadata"].get("name", f"generated-{next(self.numbers)}")
        for refusal in self.refuse:
            if error := refusal(each, dry_run):
                raise error
        if name in self.held[kind]:
            raise ApiException(status=409, reason="Conflict")
        made = {**each, "metadata": {**each["metadata"], "name": name, "uid": f"u{next(self.numbers)}"}}
        if not dry_run:
            self.held[kind][name] = made
        return made

    def find(self, kind: str, name: str) -> KubeObject | None:
        return self.held[kind].get(name)

    def delete(self, kind: str, name: str, uid: str | None = None) -> None:
        there = self.held[kind].get(name)
        if there is not None and uid not in {None, there["metadata"]["uid"]}:
            raise ApiException(status=409, reason="Conflict")
        self.held[kind].pop(name, None)

    def list(self, kind: str, labels: str = "") -> list[KubeObject]:  # noqa: ARG002 -- there is one workload
        return [*self.held[kind].values()]


def job(name: str = "bert", **status: Any) -> KubeObject:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": {"app.kubernetes.io/name": "bert"}},
        "spec": {"suspend": True, "parallelism": 1, "template": {"spec": {"containers": [{"name": "main"}]}}},
        "status": status,
    }


DONE = {"conditions": [{"type": "Complete", "status": "True"}]}


def memory() -> Memory:
    return Memory(None, "nlp")  # pyrefly: ignore[bad-argument-type] -- nothing is asked of it


def test_script_belongs_to_the_job_of_its_name() -> None:
    cluster = memory()
    cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "bert-script"}, "data": {"old.py": ""}})

    assert submit(cluster, [job()], SCRIPT) == []

    sent = cluster.held[MAP]["bert-script"]
    assert sent["data"] == {"train.py": SCRIPT.text}
    assert [each["uid"] for each in sent["metadata"]["ownerReferences"]] == [cluster.held[JOB]["bert"]["metadata"]["uid"]]


def test_a_slower_submission_changes_nothing_of_a_faster_one() -> None:
    cluster = memory()
    submit(cluster, [job()], Script("train.py", "print('theirs')"))
    # The slower one has looked for jobs before the faster one created its job.
    late = Memory(None, "nlp", {**cluster.held, JOB: {}}, [lambda each, _: conflict() if each["kind"] == "Job" else None])  # pyrefly: ignore[bad-argument-type] -- nothing is asked of it

    with pytest.raises(ExplainedError, match="the object was changed at the same time") as refused:
        submit(late, [job()], SCRIPT)

    assert "`flexspot jobs list`" in refused.value.remedy
    assert cluster.held[MAP]["bert-script"]["data"] == {"train.py": "print('theirs')"}


def conflict() -> ApiException:
    return ApiException(status=409, reason="Conflict")


def test_an_ended_job_stays_until_the_server_accepts_the_next_one() -> None:
    cluster = memory()
    cluster.create(job(**DONE))
    cluster.refuse.append(lambda _, dry_run: ApiException(status=403, reason="denied request") if dry_run else None)

    with pytest.raises(ExplainedError, match="bert was not submitted"):
        submit(cluster, [job()], SCRIPT)

    assert set(cluster.held[JOB]) == {"bert"}
    cluster.refuse.clear()
    assert submit(cluster, [job()], SCRIPT) == ["bert"]


def test_a_batch_that_is_refused_in_part_leaves_nothing() -> None:
    cluster = memory()
    cluster.refuse.append(lambda each, _: ApiException(status=403, reason="exceeded quota") if each["metadata"]["name"] == "two" else None)

    with pytest.raises(ExplainedError, match="the cluster rejects it"):
        submit(cluster, [job("one"), job("two")], SCRIPT)

    assert not cluster.held[JOB]
    assert not cluster.held[MAP]


def test_a_job_that_replaced_the_listed_one_is_not_stopped() -> None:
    cluster = memory()
    cluster.create(job(**DONE))
    seen = states_of(cluster, "bert")
    cluster.delete(JOB, "bert")
    theirs = cluster.create(job())

    with pytest.raises(ExplainedError, match="the job was not stopped: the object was changed at the same time"):
        stop(cluster, seen)

    assert cluster.held[JOB]["bert"] is theirs


@pytest.mark.parametrize(
    "status,words,problem",
    [
        (403, 'jobs.batch is forbidden: User "ann" cannot create resource "jobs"', "you lack the permission"),
        (403, 'User "system:anonymous" cannot list resource "jobs"', "the cluster does not accept your credentials"),
        (401, "Unauthorized", "the cluster does not accept your credentials"),
        (403, 'admission webhook "vjob.kb.io" denied the request: no', "the cluster rejects it"),
        (422, "ValidatingAdmissionPolicy 'flexspot-x' denied request: no", "the cluster rejects it"),
        (403, "exceeded quota: team-quota", "the cluster rejects it"),
        (409, "already exists", "the object was changed at the same time"),
        (429, "too many requests", "the API server is overloaded or broken"),
        (503, "etcdserver: leader changed", "the API server is overloaded or broken"),
    ],
)
def test_the_message_names_the_kind_of_refusal(status: int, words: str, problem: str) -> None:
    error = ApiException(status=status, reason="")
    error.body = f'{{"message": {words!r}}}'.replace("'", '"') if '"' not in words else None
    error.reason = words

    found = explained(error, "bert was not submitted")

    assert found.problem == f"bert was not submitted: {problem}."
    assert found.evidence == (words,)


def test_a_busy_server_does_not_end_following(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = memory()
    cluster.create(job(**DONE))
    answers = iter([503, 429, 0])
    lines: list[str] = []
    job_states = submission.job_states
    monkeypatch.setattr(submission, "_POLL_SECONDS", 0.0)

    def states_after(where: TeamCluster, work: str) -> Any:
        if status := next(answers):
            raise ApiException(status=status, reason="leader changed")
        return job_states(where, work)

    monkeypatch.setattr(submission, "job_states", states_after)

    assert follow(cluster, "bert", lines.append, lines.append) is State.DONE
    assert lines == ["the jobs cannot be listed: the API server is overloaded or broken; looking again", "bert is done"]
