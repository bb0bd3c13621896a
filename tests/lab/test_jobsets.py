"""Rendered JobSets under their real controller and real Kueue: they run, meet, survive interruptions, and restart after failures."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from jobset_controller import JOB_SETS, JOBSET, job_sets
from kubernetes.client.exceptions import ApiException
from lab_fixtures import CHECKOUT
from queue_fixtures import condition_of, pools_of
from test_cpu_work import cpu_node
from torchrun_ends import UNDER_THE_LAUNCHER
from workload_fixtures import NODES, end, job_of, spot_platform, submit, uids, wait_for_pods

from flexspot.capacity.plan.cpu_work import OTHER_WORK
from flexspot.capacity.workloads.kinds import objects_of
from flexspot.lab.cluster import condition
from flexspot.lab.exercise.play import NODE, UNTIL_RELEASED, WORKLOAD, release, run_time_of_pods
from flexspot.lab.progress import Silence
from flexspot.lab.tools.build import ensure_tools, family_named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from queue_fixtures import QueuePlatform
    from queue_objects import Register

    from flexspot.lab.cluster import Cluster, KubeObject
    from flexspot.lab.control_plane import LabControlPlane

# On one lab: Kueue may need two minutes to see the kind, on each.
pytestmark = [
    pytest.mark.lab,
    pytest.mark.xdist_group("jobsets"),
    pytest.mark.nightly(
        tested_by="test_a_job_set_is_accepted, "
        "test_a_jobset_starts_all_pods_anew_after_a_failure_but_not_after_its_deadline, "
        "test_with_ray_the_end_of_the_first_pod_is_that_of_the_job"
    ),
]

SET = "gang"
JOB_OF_SET = "gang-pods-0"
PODS = 3
CRASH = 1


@pytest.fixture(scope="module")
def served(lab: LabControlPlane) -> Iterator[Cluster]:
    with job_sets(lab.home, ensure_tools(CHECKOUT / ".tools", Silence(), wanted=(family_named(JOBSET),))) as cluster:
        yield cluster


@pytest.fixture
def platform(served: Cluster, register: Register) -> Iterator[QueuePlatform]:
    with spot_platform(served, register) as deployed:
        yield deployed


def wait_for_set(platform: QueuePlatform, look: Callable[[KubeObject], object], what: str) -> KubeObject:
    """Return the JobSet of team alpha as soon as `look` returns a true value for it."""

    def found(sets: list[KubeObject]) -> KubeObject | None:
        return next((each for each in sets if look(each)), None)

    return platform.cluster.wait_for(JOB_SETS, found, f"the JobSet: {what}", namespace=platform.own("alpha"))


def restarts(each: KubeObject) -> int:
    return int(each.get("status", {}).get("restarts", 0))


def finish(platform: QueuePlatform) -> None:
    """Let the pods finish their work. Return once the JobSet has finished, too."""
    release(platform.cluster, platform.own("alpha"))
    wait_for_set(platform, lambda each: condition(each, "Completed"), "completed")


def test_it_waits_for_quota_runs_and_completes(platform: QueuePlatform) -> None:
    submit(platform, "checkpointed-job", "first", pods=8)
    wait_for_pods(platform, "first", 8)
    submit(platform, "checkpointed-job", SET, pods=PODS, jobset=True)

    def looked_at(found: list[KubeObject]) -> KubeObject | None:
        return next((quota for each in found if is_of_the_set(each) and (quota := condition_of(each, "QuotaReserved"))), None)

    waits = platform.cluster.wait_for(WORKLOAD, looked_at, "Kueue to look at the JobSet", namespace=platform.own("alpha"))
    assert waits["status"] == "False"
    assert wait_for_set(platform, lambda _: True, "is there")["spec"]["suspend"] is True

    release(platform.cluster, platform.own("alpha"), "first")
    wait_for_pods(platform, SET, PODS)
    finish(platform)


def is_of_the_set(workload: KubeObject) -> bool:
    return any((owner["kind"], owner["name"]) == ("JobSet", SET) for owner in workload["metadata"].get("ownerReferences", ()))


def test_its_pods_meet_at_the_name_in_their_environment(platform: QueuePlatform) -> None:
    submit(platform, "checkpointed-job", SET, pods=PODS, jobset=True)
    pods = wait_for_pods(platform, SET, PODS)

    first = next(each for each in pods if each["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] == "0")
    addresses = {
        variable.get("value") for pod in pods for variable in pod["spec"]["containers"][0]["env"] if variable["name"] == "MASTER_ADDR"
    }
    assert addresses == {f"{first['spec']['hostname']}.{first['spec']['subdomain']}"}
    [service] = [
        each
        for each in platform.cluster.list("v1/Service", platform.own("alpha"))
        if each["metadata"]["name"] == first["spec"]["subdomain"]
    ]
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["publishNotReadyAddresses"] is True, "ranks look for each other before they are ready"
    assert service["spec"]["selector"].items() <= first["metadata"]["labels"].items()
    finish(platform)


def test_an_eviction_a_lost_node_and_the_ends_that_follow_cost_it_no_restart(platform: QueuePlatform) -> None:
    submit(platform, "checkpointed-job", SET, pods=PODS, jobset=True, retries=1)
    pods = wait_for_pods(platform, SET, PODS)

    platform.cluster.evict(pods[0]["metadata"]["name"], platform.own("alpha"))
    end(platform, pods[1], UNDER_THE_LAUNCHER)
    for node in sorted({each["spec"]["nodeName"] for each in pods}):
        platform.cluster.delete(NODE, node)
    platform.add_nodes("l4-spot", NODES)
    wait_for_pods(platform, SET, PODS, instead_of=uids(pods))

    assert restarts(wait_for_set(platform, lambda _: True, "is there")) == 0
    assert job_of(platform, JOB_OF_SET)["status"].get("failed", 0) == 0
    finish(platform)


def test_a_crash_of_one_pod_restarts_all_until_the_limit_of_restarts(platform: QueuePlatform) -> None:
    submit(platform, "checkpointed-job", SET, pods=PODS, jobset=True, retries=1)
    pods = wait_for_pods(platform, SET, PODS)

    end(platform, pods[0], CRASH)
    wait_for_set(platform, lambda each: restarts(each) == 1, "began anew")
    again = wait_for_pods(platform, SET, PODS, instead_of=uids(pods))
    assert not {*uids(again)} & {*uids(pods)}, "all of them: ranks cannot do without one that begins anew"
    end(platform, again[0], CRASH)

    failed = wait_for_set(platform, lambda each: condition(each, "Failed"), "failed")
    assert condition_of(failed, "Failed")["reason"] == "ReachedMaxRestarts"  # pyrefly: ignore[unsupported-operation] -- looked for above


def test_a_fatal_exit_code_ends_it_without_another_try(platform: QueuePlatform) -> None:
    submit(platform, "checkpointed-job", SET, pods=PODS, jobset=True, fatal_exit_codes=[42])
    pods = wait_for_pods(platform, SET, PODS)

    end(platform, pods[0], 42)

    failed = wait_for_set(platform, lambda each: condition(each, "Failed"), "failed")
    assert restarts(failed) == 0
    assert condition_of(failed, "Failed")["reason"] == "FailJobSetFailurePolicyAction"  # pyrefly: ignore[unsupported-operation] -- likewise


def test_preemption_suspends_it_and_counts_nothing(platform: QueuePlatform) -> None:
    submit(platform, "checkpointed-job", SET, pods=8, jobset=True)
    wait_for_pods(platform, SET, 8)

    submit(platform, "checkpointed-job", "high", team="beta", pods=4)
    wait_for_pods(platform, "high", 4, "beta")
    wait_for_set(platform, lambda each: each["spec"]["suspend"], "suspended")
    platform.finish("beta", "high")
    wait_for_pods(platform, SET, 8)

    assert restarts(wait_for_set(platform, lambda _: True, "is there")) == 0
    finish(platform)


def test_with_ray_the_end_of_the_first_pod_ends_the_set(platform: QueuePlatform) -> None:
    submit(platform, "checkpointed-job", SET, pods=PODS, jobset=True, launcher="ray", command=["python", "main.py"])
    pods = wait_for_pods(platform, SET, PODS)

    [first] = [each for each in pods if each["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] == "0"]
    end(platform, first, 0)

    # The Job ends the others, though each would continue.
    wait_for_set(platform, lambda each: condition(each, "Completed"), "completed")


def test_its_launchers_leave_gpu_nodes_to_the_gpus_of_others(platform: QueuePlatform) -> None:
    """A launcher is one pod of one vCPU on each host that it gets. On GPU nodes it would take what another team's pods need."""
    for _ in range(2):
        platform.cluster.create(cpu_node(platform))
    [workers] = objects_of(platform.plan, "checkpointed-job", {**REQUEST, "name": SET, "team": platform.own("alpha")})
    [replicated] = workers["spec"]["replicatedJobs"]
    replicated["template"]["spec"]["template"]["metadata"].setdefault("annotations", {}).update(run_time_of_pods(UNTIL_RELEASED))
    workers["spec"]["replicatedJobs"].append(launchers_of(replicated))
    with pytest.raises(ApiException, match="requests no GPU and may run on GPU nodes"):
        platform.cluster.create(workers)

    pod = workers["spec"]["replicatedJobs"][1]["template"]["spec"]["template"]["spec"]
    expression = {"key": "karpenter.k8s.aws/instance-gpu-name", "operator": "DoesNotExist"}
    terms = [{"matchExpressions": [expression]}]
    pod["affinity"]["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    platform.cluster.create(workers)
    pods = wait_for_pods(platform, SET, 4)
    assert pools_of(platform.cluster, [each for each in pods if "launchers" in each["metadata"]["name"]]) == {OTHER_WORK}

    # All that alpha's worker leaves of a node's vCPU.
    submit(platform, "checkpointed-job", "rest", team="beta", gpus=3, cpu="47")
    wait_for_pods(platform, "rest", 1, "beta")
    platform.finish("beta", "rest")
    finish(platform)


REQUEST = {"workload_class": "training", "image": "trainer:1", "cpu": "1", "memory": "1Gi", "pods": 2, "jobset": True}


def launchers_of(workers: KubeObject) -> KubeObject:
    """Return two pods without GPUs, on different hosts."""
    launchers: KubeObject = json.loads(json.dumps(workers)) | {"name": "launchers"}
    spec = launchers["template"]["spec"]["template"]["spec"]
    amounts = {"cpu": "1", "memory": "1Gi"}
    spec["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
    launchers["template"]["spec"]["template"]["metadata"]["labels"]["role"] = "launcher"
    apart = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"role": "launcher"}}}
    del spec["tolerations"]
    spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    return launchers
