"""The shipped local stack, deployed by the real engine through the policy pack to a real control plane."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from checkout_fixtures import CHECKOUT, forget_stacks

from flexspot.capacity.settings.teams import CohortSettings
from flexspot.infra.declaring import program
from flexspot.infra.declaring.program import KUBECONFIG_VARIABLE
from flexspot.infra.deployment.engine import StackRun
from flexspot.lab.cluster import Cluster, condition
from flexspot.lab.engine import engine_for, state_url
from flexspot.lab.processes import running_parts
from flexspot.lab.progress import Silence

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from flexspot.capacity.catalog.node_images import ImageBook
    from flexspot.capacity.catalog.price_book import PriceBook
    from flexspot.capacity.plan.model import Plan
    from flexspot.capacity.settings.platform import PlatformSettings
    from flexspot.lab.cluster import KubeObject
    from flexspot.lab.control_plane import LabControlPlane
    from flexspot.lab.tools.build import Tools

OBJECTS = 63
"""Objects of the cluster that the local stack declares."""

pytestmark = [pytest.mark.lab, pytest.mark.engine]

KINDS = (
    "karpenter.sh/v1/NodePool",
    "karpenter.kwok.sh/v1alpha1/KWOKNodeClass",
    "kueue.x-k8s.io/v1beta2/ResourceFlavor",
    "kueue.x-k8s.io/v1beta2/Cohort",
    "kueue.x-k8s.io/v1beta2/ClusterQueue",
    "kueue.x-k8s.io/v1beta2/LocalQueue",
    "scheduling.k8s.io/v1/PriorityClass",
    "v1/Namespace",
    "v1/ResourceQuota",
    "v1/LimitRange",
    "v1/Service",
    "v1/ServiceAccount",
    "networking.k8s.io/v1/NetworkPolicy",
    "rbac.authorization.k8s.io/v1/Role",
    "rbac.authorization.k8s.io/v1/RoleBinding",
    "rbac.authorization.k8s.io/v1/ClusterRole",
    "rbac.authorization.k8s.io/v1/ClusterRoleBinding",
    "kueue.x-k8s.io/v1beta2/WorkloadPriorityClass",
    "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy",
    "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicyBinding",
    "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy",
    "admissionregistration.k8s.io/v1/MutatingAdmissionPolicyBinding",
)


def changed(counts: Mapping[str, int]) -> dict[str, int]:
    return {kind: count for kind, count in counts.items() if kind != "same"}


def ignore(_line: str) -> None:
    """Discard a line of output."""


@pytest.fixture
def on_lab(lab: LabControlPlane) -> Cluster:
    return Cluster(lab.home.kubeconfig)


@pytest.fixture
def run(lab: LabControlPlane, tools: Tools, monkeypatch: pytest.MonkeyPatch) -> Iterator[StackRun]:
    """Yield the engine's run of the local stack, and destroy the stack afterwards."""
    home = lab.home
    monkeypatch.setenv(KUBECONFIG_VARIABLE, str(home.kubeconfig))
    with engine_for(home.kubeconfig, tools) as engine:
        stack_run = StackRun("local", home.folder / "project", state_url(home), engine.root, engine.environment)
        yield stack_run
        lab.start(tools, Silence())
        stack_run.destroy(ignore)
    forget_stacks(home)


def names(cluster: Cluster) -> set[str]:
    """Return the objects on the API server that have the stack's labels."""
    found = {kind: cluster.list(kind, labels="flexspot.dev/environment=local") for kind in KINDS}
    return {
        f"{kind}/{each['metadata'].get('namespace', '')}/{each['metadata']['name']}" for kind, objects in found.items() for each in objects
    }


def test_up_deploys_everything_then_changes_nothing_and_destroy_leaves_nothing(
    run: StackRun, on_lab: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A killed engine truncates the state in between. An edit of teams and departments is kept by Kueue as written."""
    shipped = CHECKOUT / "stacks" / "Pulumi.local.yaml"
    before = shipped.read_text()
    assert run.up(ignore)["create"] >= OBJECTS
    assert len(names(on_lab)) == OBJECTS
    assert changed(run.preview(ignore)) == {}

    assert run.backend_url is not None
    state = Path(run.backend_url.removeprefix("file://")) / ".pulumi" / "stacks" / "flexspot" / "local.json"
    state.write_text(state.read_text()[:5000])
    # A killed engine leaves the attributes next to the state like this. Without the file, the engine reads the state as well.
    state.with_name("local.json.attrs").write_text("")
    lines: list[str] = []
    run.up(lines.append)
    assert lines[0].startswith("An earlier run was killed while it wrote the state")
    assert len(names(on_lab)) == OBJECTS, "nothing is doubled"

    with_departments(monkeypatch)
    run.up(ignore)
    assert_departments(on_lab)
    assert changed(run.up(ignore)) == {}
    assert shipped.read_text() == before

    run.destroy(ignore)
    assert names(on_lab) == set()


def with_departments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Edit the stack: one team gets a department, both get limits, and one GPU belongs to no team."""
    real = program.build_plan
    research = CohortSettings(name="research", shares={"l4-spot": 1}, borrowing_limits={"l4-spot": 2})

    def edited(settings: PlatformSettings, source: str, prices: PriceBook, images: ImageBook) -> Plan:
        alpha, beta = settings.teams
        alpha = alpha.model_copy(
            update={"cohort": "research", "shares": {"l4-spot": 1}, "borrowing_limits": {"l4-spot": 1}, "lending_limits": {"l4-spot": 0}}
        )
        beta = beta.model_copy(update={"shares": {"l4-spot": 1}})
        return real(settings.model_copy(update={"cohorts": (research,), "teams": (alpha, beta)}), source, prices, images)

    monkeypatch.setattr(program, "build_plan", edited)


def assert_departments(on_lab: Cluster) -> None:
    def all_active(queues: list[KubeObject]) -> bool:
        return [(condition(queue, "Active") or {}).get("status") for queue in queues] == ["True"] * 4

    on_lab.wait_for("kueue.x-k8s.io/v1beta2/ClusterQueue", all_active, "the ClusterQueues to be active")
    owned = {each["metadata"]["name"]: each["spec"] for each in on_lab.list("kueue.x-k8s.io/v1beta2/Cohort")}
    gpus = {name: spec["resourceGroups"][0]["flavors"][0]["resources"][2] for name, spec in owned.items()}
    assert gpus["ai-platform"]["nominalQuota"] == "1", "two GPUs are the teams', one is the department's, one is left"
    assert (gpus["research"]["nominalQuota"], gpus["research"]["borrowingLimit"]) == ("1", "2")
    assert owned["research"]["parentName"] == "ai-platform"


@pytest.mark.nightly(tested_by="test_calls_wait_for_a_restart_of_the_api_server, test_a_creation_with_a_lost_answer_is_repeated")
def test_a_restart_of_the_api_server_does_not_break_an_update(run: StackRun, lab: LabControlPlane, tools: Tools, on_lab: Cluster) -> None:
    struck = threading.Event()
    started: list[str] = []

    def restart() -> None:
        assert struck.wait(120), "the update never came to the point at which the server is killed"
        server = running_parts(lab.home)["kube-apiserver"].process
        server.kill()
        server.wait(10)
        started.extend(lab.start(tools, Silence()).started)

    def strike(line: str) -> None:
        if "NodePool" in line:
            struck.set()

    with ThreadPoolExecutor(1) as other:
        restarted = other.submit(restart)
        run.up(strike)
        restarted.result()

    assert "kube-apiserver" in started
    assert len(names(on_lab)) == OBJECTS
    assert changed(run.up(ignore)) == {}
