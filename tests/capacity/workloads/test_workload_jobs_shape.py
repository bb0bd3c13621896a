"""Jobs: failures that count, run times, and the relation of their pods."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from workload_plans import job_of, objects, pod_of, pools_of, variables

from flexspot.capacity.workloads.requests import GANG_SELECTOR, GANG_SERVICE, WorkloadError

GUIDES = Path(__file__).resolve().parents[3] / "docs" / "guides"


def test_pods_that_train_together_are_all_there_at_once_and_find_pod_0_by_name() -> None:
    [job] = objects("prod-eks", "checkpointed-job", pods=4, gpus=8, port=12_345)
    spec = job["spec"]
    pod = spec["template"]["spec"]

    assert (spec["completions"], spec["parallelism"], spec["completionMode"]) == (4, 4, "Indexed")
    assert (spec["backoffLimitPerIndex"], spec["maxFailedIndexes"]) == (3, 0), "no pod can continue without one that has failed for good"
    assert "backoffLimit" not in spec, "one count for all would delay a new pod for the interruptions of every other"
    assert pod["subdomain"] == GANG_SERVICE
    assert GANG_SELECTOR.items() <= spec["template"]["metadata"]["labels"].items(), "the team's Service names them"
    found = variables(pod)
    assert (found["MASTER_ADDR"], found["MASTER_PORT"], found["NNODES"]) == ("bert-0.flexspot-gang", "12345", "4")
    assert found["NPROC_PER_NODE"] == "8", "a process for each GPU"
    assert found["NODE_RANK"]["fieldRef"]["fieldPath"] == "metadata.annotations['batch.kubernetes.io/job-completion-index']"
    assert found["CHECKPOINT_DIR"] == "/checkpoints/bert", "they write one checkpoint together"
    assert found["FLEXSPOT_JOB"] == "nlp/bert"


@pytest.mark.parametrize("pods", [1, 4])
def test_commands_of_the_guides_name_variables_that_pods_have(pods: int) -> None:
    guides = "".join((GUIDES / name).read_text() for name in ("workloads.md", "training.md"))
    named = set(re.findall(r"\$\((\w+)\)", guides))

    assert {"NNODES", "NPROC_PER_NODE", "MASTER_ADDR"} < named
    assert named - variables(objects("prod-eks", "checkpointed-job", pods=pods)[0]["spec"]["template"]["spec"]).keys() == set()


def test_each_pod_of_a_batch_is_a_job_that_waits_runs_and_resumes_for_itself() -> None:
    jobs = objects("prod-eks", "queued-job", pods=12, retries=2, fatal_exit_codes=[3])

    assert [each["metadata"]["name"] for each in jobs] == [f"bert-{index}" for index in range(12)]
    for index, job in enumerate(jobs):
        spec = job["spec"]
        assert (spec["suspend"], spec["completions"], spec["parallelism"], spec["completionMode"]) == (True, 1, 1, "NonIndexed")
        assert (spec["backoffLimit"], spec["podFailurePolicy"]["rules"][2]["action"]) == (2, "FailJob"), "of this part alone"
        assert job["metadata"]["labels"]["app.kubernetes.io/name"] == "bert", "one label finds the whole batch"
        found = variables(spec["template"]["spec"])
        assert (found["JOB_COMPLETION_INDEX"], found["JOB_COMPLETIONS"]) == (str(index), "12")
        assert (found["CHECKPOINT_DIR"], found["FLEXSPOT_JOB"]) == (f"/checkpoints/bert/{index}", f"nlp/bert/{index}")
        assert (found["NNODES"], found["NODE_RANK"]) == ("1", "0"), "whatever its index, it is a world of its own"


def test_a_batch_may_have_more_pods_than_its_team_has_gpus_unless_it_is_one_job() -> None:
    assert len(objects("local", "queued-job", pods=50)) == 50
    with pytest.raises(WorkloadError, match=r"need 50 GPUs at once \(1 per pod\), but team team-alpha can use 4 of one kind"):
        objects("local", "queued-job", pods=50, at_once=50)


def test_pods_of_a_batch_of_one_job_are_retried_and_resume_each_for_itself() -> None:
    [job] = objects("prod-eks", "queued-job", pods=8, at_once=3, retries=2, fatal_exit_codes=[3, 2, 3])
    spec = job["spec"]

    assert (spec["completions"], spec["parallelism"], spec["backoffLimitPerIndex"]) == (8, 3, 2)
    assert "maxFailedIndexes" not in spec
    assert spec["podFailurePolicy"]["rules"][2] == {
        "action": "FailIndex",
        "onExitCodes": {"containerName": "main", "operator": "In", "values": [2, 3]},
    }
    names = list(found := variables(spec["template"]["spec"]))
    assert found["JOB_COMPLETIONS"] == "8"
    assert (found["CHECKPOINT_DIR"], found["FLEXSPOT_JOB"]) == ("/checkpoints/bert/$(JOB_INDEX)", "nlp/bert/$(JOB_INDEX)")
    assert names.index("JOB_INDEX") < min(map(names.index, ("CHECKPOINT_DIR", "FLEXSPOT_JOB"))), "a variable may name those before it alone"


def test_a_jobset_starts_all_pods_anew_after_a_failure_but_not_after_its_deadline() -> None:
    [jobset] = objects("prod-eks", "checkpointed-job", pods=2, jobset=True, retries=5, keep_seconds=60)
    [replicated] = jobset["spec"]["replicatedJobs"]
    job = replicated["template"]["spec"]

    assert (jobset["kind"], jobset["apiVersion"]) == ("JobSet", "jobset.x-k8s.io/v1alpha2")
    assert jobset["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "default"
    assert (jobset["spec"]["suspend"], jobset["spec"]["ttlSecondsAfterFinished"]) == (True, 60)
    assert jobset["spec"]["failurePolicy"]["maxRestarts"] == 5
    assert jobset["spec"]["failurePolicy"]["rules"][0]["onJobFailureReasons"] == ["DeadlineExceeded", "PodFailurePolicy"]
    assert (job["backoffLimitPerIndex"], job["maxFailedIndexes"]) == (0, 0)
    assert (job["podFailurePolicy"]["rules"][0]["action"], "suspend" in job) == ("Ignore", False)
    assert variables(job["template"]["spec"])["MASTER_ADDR"] == "bert-pods-0-0.bert"
    assert "subdomain" not in job["template"]["spec"], "the set makes the service and gives its name"


@pytest.mark.parametrize("fields,asked", [({}, "576000"), ({"run_seconds": 3600}, "4500"), ({"run_seconds": 576_000}, "576000")])
def test_dws_is_requested_for_the_jobs_time_and_a_boot(fields: dict[str, Any], asked: str) -> None:
    job = job_of("prod-gke", "flex-start-job", gpus=4, **fields)

    assert job["metadata"]["annotations"] == {"provreq.kueue.x-k8s.io/maxRunDurationSeconds": asked}
    assert job["spec"]["activeDeadlineSeconds"] == fields.get("run_seconds", 576_000)
    assert job["spec"]["template"]["metadata"]["annotations"]["cluster-autoscaler.kubernetes.io/safe-to-evict"] == "false"


@pytest.mark.parametrize(
    "kind,fields,pools",
    [
        ("flex-start-job", {"gpus": 4}, ["a100-flex"]),
        ("flex-start-job", {"pods": 2, "gpus": 8}, ["h100-queued"]),
        ("checkpointed-job", {"pods": 2, "gpus": 8}, ["h100-reserved", "h100-queued"]),
        ("queued-job", {"pods": 4, "gpus": 8, "at_once": 2}, ["h100-reserved"]),
        ("queued-job", {"pods": 4, "gpus": 8}, ["h100-reserved", "h100-queued"]),
    ],
)
def test_capacity_that_does_not_suit_how_pods_belong_together_is_left_out(kind: str, fields: dict[str, Any], pools: list[str]) -> None:
    # Flex-start nodes arrive one by one: a gang would pay for the first while it waits for the last. Nodes of one request arrive together,
    # for pods that exist at that time.
    assert pools_of(pod_of("prod-gke", kind, **fields)) == pools
