"""What the program makes of a plan's queues, and of Kueue itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pulumi
import pytest
import yaml

from capacity.plan.build import build_plan
from capacity.settings.platform import EksSettings, GkeSettings
from capacity.settings.stack_file import parse_settings, read_stack_file
from capacity.settings.teams import Queueing
from infra.platform_objects import declare_kueue
from infra.queue_objects import declare_queues

if TYPE_CHECKING:
    from capacity.plan.model import Plan

Register = Callable[[Callable[[], object]], Any]

KUEUE = "kubernetes:kueue.x-k8s.io/v1beta2"
STACKS = Path(__file__).resolve().parents[2] / "stacks"

PLACED: dict[str, Any] = {
    "cloud": "gke",
    "environment": "test",
    "owner": "ann",
    "project": "acme-ai-test",
    "region": "us-central1",
    "zones": ["us-central1-a"],
    "pools": [
        {"name": "h100", "machine": "a3-highgpu-8g", "capacity_type": "queued", "max_nodes": 4, "topology": True, "serves": ["training"]},
        {"name": "l4", "machine": "g2-standard-8", "capacity_type": "spot", "max_nodes": 4, "serves": ["interactive"]},
    ],
    "teams": [{"name": "red", "shares": {"h100": 8, "l4": 0}, "stop": "drain"}, {"name": "blue", "weight": 2, "shares": {"l4": 1}}],
}


def settings_of(stack: str) -> GkeSettings | EksSettings:
    settings = read_stack_file(STACKS / f"Pulumi.{stack}.yaml")
    assert isinstance(settings, GkeSettings | EksSettings)
    return settings


def plan_of(stack: str) -> Plan:
    return build_plan(read_stack_file(STACKS / f"Pulumi.{stack}.yaml"))


@pytest.fixture
def queues(register: Register) -> Callable[[Plan], Any]:
    """What the program registers of a plan's queues."""
    return lambda plan: register(lambda: declare_queues(plan, pulumi.ResourceOptions()))


@pytest.mark.parametrize("stack", ["local", "dev-gke", "dev-eks", "prod-eks"])
def test_without_queued_capacity_nothing_is_asked_for_before_a_job_starts(stack: str, queues: Callable[[Plan], Any]) -> None:
    made = queues(plan_of(stack))

    assert made.of(f"{KUEUE}:AdmissionCheck") == made.of(f"{KUEUE}:ProvisioningRequestConfig") == made.of(f"{KUEUE}:Topology") == []
    assert [each for each in made.of(f"{KUEUE}:ClusterQueue") if "admissionChecksStrategy" in each["spec"]] == []


def test_the_check_stands_before_queued_pools_and_only_in_the_queues_that_have_them(queues: Callable[[Plan], Any]) -> None:
    made = queues(plan_of("prod-gke"))

    [check] = made.of(f"{KUEUE}:AdmissionCheck")
    named = {
        each["metadata"]["name"]: each["spec"].get("admissionChecksStrategy", {}).get("admissionChecks")
        for each in made.of(f"{KUEUE}:ClusterQueue")
    }
    on_queued = [{"name": check["metadata"]["name"], "onFlavors": ["h100-queued"]}]
    assert named == {"nlp": on_queued, "vision": on_queued, "search": None, "ads": None}


def test_weights_stops_and_topology_are_the_plans(queues: Callable[[Plan], Any]) -> None:
    made = queues(build_plan(parse_settings(PLACED, "test")))

    specs = {each["metadata"]["name"]: each["spec"] for each in made.of(f"{KUEUE}:ClusterQueue")}
    assert {name: (spec["fairSharing"]["weight"], spec["stopPolicy"]) for name, spec in specs.items()} == {
        "red": ("1", "HoldAndDrain"),
        "blue": ("2", "None"),
    }
    [topology] = made.of(f"{KUEUE}:Topology")
    placed = [each["spec"]["topologyName"] for each in made.of(f"{KUEUE}:ResourceFlavor") if "topologyName" in each["spec"]]
    assert placed == [topology["metadata"]["name"]]


@pytest.mark.parametrize("stack,timeout,requeues", [("dev-gke", "2700s", 10), ("prod-gke", "21600s", 3), ("prod-eks", "2700s", 10)])
def test_kueue_waits_for_nodes_as_long_as_the_plans_capacity_needs(stack: str, timeout: str, requeues: int, register: Register) -> None:
    plan, settings = plan_of(stack), settings_of(stack)

    [release] = register(lambda: declare_kueue(plan, pulumi.ResourceOptions(), settings)).of("kubernetes:helm.sh/v3:Release")

    waits = yaml.safe_load(release["values"]["managerConfig"]["controllerManagerConfigYaml"])["waitForPodsReady"]
    assert (waits["timeout"], waits["requeuingStrategy"]["backoffLimitCount"]) == (timeout, requeues)


def test_kueue_runs_on_the_nodes_for_controllers(register: Register) -> None:
    tolerations = [{"key": "CriticalAddonsOnly", "operator": "Exists", "effect": "NoSchedule"}]
    plan, settings = plan_of("dev-eks"), settings_of("dev-eks")

    def declare() -> None:
        selector = {"flexspot.dev/system": "true"}
        declare_kueue(plan, pulumi.ResourceOptions(), settings, node_selector=selector, tolerations=tolerations)

    [release] = register(declare).of("kubernetes:helm.sh/v3:Release")

    manager = release["values"]["controllerManager"]
    assert (manager["nodeSelector"], manager["tolerations"]) == ({"flexspot.dev/system": "true"}, tolerations)


def test_a_kueue_that_is_there_already_is_not_installed(register: Register) -> None:
    plan, settings = plan_of("dev-gke"), settings_of("dev-gke")
    settings = settings.model_copy(update={"queueing": Queueing(existing_kueue=True)})

    assert register(lambda: declare_kueue(plan, pulumi.ResourceOptions(), settings)).of("kubernetes:helm.sh/v3:Release") == []
