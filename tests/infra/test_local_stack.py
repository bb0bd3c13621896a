"""The shipped local stack, deployed by the real engine through the policy pack to a real control plane."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from pulumi_kubernetes.batch.v1 import Job, JobSpecArgs
from pulumi_kubernetes.core.v1 import ContainerArgs, PodSpecArgs, PodTemplateSpecArgs

from capacity.explained_error import ExplainedError
from infra import engine as engine_module
from infra import program
from infra.engine import StackRun
from infra.program import CHECKOUT, KUBECONFIG_VARIABLE
from lab.cluster import Cluster
from lab.control_plane import ControlPlane
from lab.engine import engine_for, state_url
from lab.exercise.jobs import JOB, gpu_job, job_of, release, wait_for_completion, wait_for_preemption, wait_for_running
from lab.home import LabHome
from lab.processes import running_parts
from lab.progress import Silence

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from capacity.plan import Plan
    from capacity.settings import PlatformSettings
    from lab.tools.build import Tools

pytestmark = [pytest.mark.lab, pytest.mark.engine]

KINDS = (
    "karpenter.sh/v1/NodePool",
    "karpenter.kwok.sh/v1alpha1/KWOKNodeClass",
    "kueue.x-k8s.io/v1beta2/ResourceFlavor",
    "kueue.x-k8s.io/v1beta2/ClusterQueue",
    "kueue.x-k8s.io/v1beta2/LocalQueue",
    "scheduling.k8s.io/v1/PriorityClass",
    "v1/Namespace",
    "v1/ResourceQuota",
    "v1/LimitRange",
)


def changed(counts: Mapping[str, int]) -> dict[str, int]:
    return {kind: count for kind, count in counts.items() if kind != "same"}


def ignore(_line: str) -> None:
    """Output that no test looks at."""


@pytest.fixture(scope="module")
def own_lab(tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A lab for the stack alone."""
    control_plane = ControlPlane(LabHome(tmp_path_factory.mktemp("labs"), "stack"))
    control_plane.start(tools, Silence())
    yield control_plane
    control_plane.stop(Silence(), delete=True)


@pytest.fixture
def on_lab(own_lab: ControlPlane) -> Cluster:
    return Cluster(own_lab.home.kubeconfig)


@pytest.fixture
def run(own_lab: ControlPlane, tools: Tools, monkeypatch: pytest.MonkeyPatch) -> Iterator[StackRun]:
    """The engine over the local stack; the stack is destroyed afterwards."""
    home = own_lab.home
    monkeypatch.setenv(KUBECONFIG_VARIABLE, str(home.kubeconfig))
    with engine_for(home.kubeconfig, tools) as engine:
        stack_run = StackRun("local", home.folder / "project", state_url(home), engine.root, engine.environment)
        yield stack_run
        own_lab.start(tools, Silence())
        stack_run.destroy(ignore)


def names(cluster: Cluster) -> set[str]:
    """What of the stack's labels is on the API server."""
    found = {kind: cluster.list(kind, labels="flexspot.dev/environment=local") for kind in KINDS}
    return {
        f"{kind}/{each['metadata'].get('namespace', '')}/{each['metadata']['name']}" for kind, objects in found.items() for each in objects
    }


def test_up_deploys_everything_then_changes_nothing_and_destroy_leaves_nothing(run: StackRun, on_lab: Cluster) -> None:
    assert run.up(ignore)["create"] >= 18
    assert len(names(on_lab)) == 18

    assert changed(run.preview(ignore)) == {}
    assert changed(run.up(ignore)) == {}

    run.destroy(ignore)
    assert names(on_lab) == set()


def test_the_exercise_plays_on_the_stacks_own_queues(run: StackRun, on_lab: Cluster) -> None:
    run.up(ignore)
    for number in range(1, 5):
        on_lab.create(gpu_job(f"training-{number}", "team-alpha", "gpu-development", queue="default"))
    wait_for_running(on_lab, "team-alpha", 4)

    on_lab.create(gpu_job("urgent", "team-beta", "gpu-training", queue="default"))
    workload, preempted = wait_for_preemption(on_lab, "team-alpha")
    assert preempted["reason"] == "InCohortReclamation"
    wait_for_running(on_lab, "team-beta", 1)
    victim = on_lab.get(JOB, job_of(workload), "team-alpha")
    assert victim is not None
    assert victim["spec"]["suspend"] is True

    release(on_lab, "team-beta")
    wait_for_completion(on_lab, "team-beta", 1)
    wait_for_running(on_lab, "team-alpha", 4)
    release(on_lab, "team-alpha")
    wait_for_completion(on_lab, "team-alpha", 4)


def test_an_object_changed_by_hand_is_shown_by_refresh_and_up_names_who_changed_it(run: StackRun, on_lab: Cluster) -> None:
    run.up(ignore)
    pool = "karpenter.sh/v1/NodePool"
    on_lab.patch(pool, "l4-spot", {"spec": {"limits": {"nvidia.com/gpu": "400"}}})

    assert changed(run.refresh(ignore)) == {"update": 1}

    # Server-side apply takes nothing from another field manager by itself; nor does the real provider.
    with pytest.raises(ExplainedError, match="up of stack local did not succeed") as refused:
        run.up(ignore)
    assert "409 Conflict" in str(refused.value)
    on_lab.patch(pool, "l4-spot", {"spec": {"limits": {"nvidia.com/gpu": "4"}}})
    run.up(ignore)
    assert changed(run.preview(ignore)) == {}


def test_an_api_server_that_is_restarted_in_the_middle_does_not_break_the_update(
    run: StackRun, own_lab: ControlPlane, tools: Tools, on_lab: Cluster
) -> None:
    struck = threading.Event()
    started: list[str] = []

    def restart() -> None:
        assert struck.wait(120), "the update never came to the point at which the server is killed"
        server = running_parts(own_lab.home)["kube-apiserver"].process
        server.kill()
        server.wait(10)
        started.extend(own_lab.start(tools, Silence()).started)

    def strike(line: str) -> None:
        if "NodePool" in line:
            struck.set()

    with ThreadPoolExecutor(1) as other:
        restarted = other.submit(restart)
        run.up(strike)
        restarted.result()

    assert "kube-apiserver" in started
    assert len(names(on_lab)) == 18
    assert changed(run.up(ignore)) == {}


@pytest.mark.parametrize(
    "rule,mistake",
    [("gpu-pool-without-taint", {"taints": ()}), ("gpu-pool-without-limit", {"max_nodes": 0})],
)
def test_a_mistake_in_the_built_plan_stops_the_engine_with_rule_and_resource(
    rule: str, mistake: dict[str, object], run: StackRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = program.build_plan

    def spoilt(settings: PlatformSettings, source: str) -> Plan:
        plan = real(settings, source)
        return replace(plan, pools=(replace(plan.pools[0], **mistake), *plan.pools[1:]))  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(program, "build_plan", spoilt)

    with pytest.raises(ExplainedError, match="preview of stack local did not succeed") as refused:
        run.preview(ignore)

    assert any(rule in line and "l4-spot" in line for line in refused.value.evidence), refused.value.evidence


def test_a_gpu_job_without_gpu_limit_beside_the_plans_resources_stops_the_engine_with_rule_and_resource(run: StackRun) -> None:
    def with_job() -> None:
        program.main()
        container = ContainerArgs(name="trainer", image="trainer:1")
        pod = PodSpecArgs(restart_policy="Never", node_selector={"karpenter.k8s.aws/instance-gpu-name": "l4"}, containers=[container])
        Job("finetune", metadata={"name": "finetune"}, spec=JobSpecArgs(template=PodTemplateSpecArgs(spec=pod)))

    with pytest.raises(ExplainedError, match="preview of stack local did not succeed") as refused:
        replace(run, program=with_job).preview(ignore)

    assert "mend what the policies name" in refused.value.remedy
    assert "gpu-container-without-limit" in str(refused.value)
    assert "finetune" in str(refused.value)


def test_the_checkouts_own_stack_file_is_left_as_it_is(run: StackRun) -> None:
    before = (CHECKOUT / "stacks" / "Pulumi.local.yaml").read_text()

    run.up(ignore)

    assert (CHECKOUT / "stacks" / "Pulumi.local.yaml").read_text() == before
    assert engine_module.CHECKOUT == CHECKOUT
