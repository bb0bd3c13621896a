"""Objects of a plan's queues and of Kueue itself in the program's declarations."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pulumi
import pytest
import yaml
from program_declarations import KUEUE, plan_of, shipped

from flexspot.capacity.plan.build import build_plan
from flexspot.capacity.settings.stack_file import parse_settings
from flexspot.infra.declaring.platform_objects import declare_kueue, declare_queues

if TYPE_CHECKING:
    from flexspot.capacity.plan.model import Plan

Register = Callable[[Callable[[], object]], Any]

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


STACK_NAMES = ["local", "dev-gke", "prod-gke", "dev-eks", "prod-eks"]


@pytest.fixture
def queues(register: Register) -> Callable[[Plan], Any]:
    """Return a function that registers a plan's queues."""
    return lambda plan: register(lambda: declare_queues(plan, pulumi.ResourceOptions()))


@pytest.mark.parametrize("stack", ["local", "dev-gke", "dev-eks", "prod-eks"])
def test_without_queued_capacity_no_capacity_is_requested_before_a_job_starts(stack: str, queues: Callable[[Plan], Any]) -> None:
    made = queues(plan_of(stack))

    assert made.of(f"{KUEUE}:AdmissionCheck") == made.of(f"{KUEUE}:ProvisioningRequestConfig") == made.of(f"{KUEUE}:Topology") == []
    assert [each for each in made.of(f"{KUEUE}:ClusterQueue") if "admissionChecksStrategy" in each["spec"]] == []


def test_the_check_applies_to_queued_pools_and_only_in_their_queues(queues: Callable[[Plan], Any]) -> None:
    made = queues(plan_of("prod-gke"))

    [check] = made.of(f"{KUEUE}:AdmissionCheck")
    named = {
        each["metadata"]["name"]: each["spec"].get("admissionChecksStrategy", {}).get("admissionChecks")
        for each in made.of(f"{KUEUE}:ClusterQueue")
    }
    on_queued = [{"name": check["metadata"]["name"], "onFlavors": ["h100-queued"]}]
    of_cpu_work = dict.fromkeys(["nlp-cpu", "vision-cpu", "search-cpu", "ads-cpu"])
    assert named == {"nlp": on_queued, "vision": on_queued, "search": None, "ads": None, **of_cpu_work}


def test_weights_stop_policies_and_topology_are_those_of_the_plan(queues: Callable[[Plan], Any]) -> None:
    made = queues(build_plan(parse_settings(PLACED, "test")))

    specs = {each["metadata"]["name"]: each["spec"] for each in made.of(f"{KUEUE}:ClusterQueue")}
    assert {name: (spec["fairSharing"]["weight"], spec["stopPolicy"]) for name, spec in specs.items()} == {
        "red": ("1", "HoldAndDrain"),
        "blue": ("2", "None"),
        "red-cpu": ("1", "HoldAndDrain"),
        "blue-cpu": ("2", "None"),
    }
    [topology] = made.of(f"{KUEUE}:Topology")
    placed = [each["spec"]["topologyName"] for each in made.of(f"{KUEUE}:ResourceFlavor") if "topologyName" in each["spec"]]
    assert placed == [topology["metadata"]["name"]]


@pytest.mark.parametrize("stack,timeout,requeues", [("dev-gke", "2700s", 10), ("prod-gke", "21600s", 3), ("prod-eks", "2700s", 10)])
def test_kueues_timeout_for_nodes_fits_the_plans_capacity(stack: str, timeout: str, requeues: int, register: Register) -> None:
    settings: Any = parse_settings(shipped(stack), stack)

    [release] = register(lambda: declare_kueue(plan_of(stack), pulumi.ResourceOptions(), settings)).of("kubernetes:helm.sh/v3:Release")

    waits = yaml.safe_load(release["values"]["managerConfig"]["controllerManagerConfigYaml"])["waitForPodsReady"]
    assert (waits["timeout"], waits["requeuingStrategy"]["backoffLimitCount"]) == (timeout, requeues)


def quotas_of(spec: dict[str, Any]) -> dict[str, dict[str, dict[str, str]]]:
    """Return the quotas of a queue or a cohort by flavor and resource, in order. It has only one resource group."""
    [group] = spec["resourceGroups"]
    assert all([each["name"] for each in flavor["resources"]] == group["coveredResources"] for flavor in group["flavors"])
    return {flavor["name"]: {each["name"]: each for each in flavor["resources"]} for flavor in group["flavors"]}


@pytest.mark.parametrize("stack", STACK_NAMES)
def test_work_without_gpus_has_queues_without_gpus_and_a_separate_cohort(stack: str, queues: Callable[[Plan], Any]) -> None:
    plan = plan_of(stack)
    made = queues(plan)
    by_name = {each["metadata"]["name"]: each["spec"] for each in made.of(f"{KUEUE}:ClusterQueue")}
    local = {(each["metadata"]["namespace"], each["metadata"]["name"]): each["spec"] for each in made.of(f"{KUEUE}:LocalQueue")}
    of_gpus = {each["cohortName"] for name, each in by_name.items() if not name.endswith("-cpu")}

    for team in plan.teams:
        spec = by_name[local[team.namespace, "cpu"]["clusterQueue"]]
        [quota] = quotas_of(spec).values()
        assert set(quota) == {"cpu", "memory"}
        assert spec["cohortName"] not in of_gpus
        assert spec["namespaceSelector"] == {"matchLabels": {"kubernetes.io/metadata.name": team.namespace}}


@pytest.mark.parametrize("stack", STACK_NAMES)
def test_launchers_come_first_in_a_queue_of_gpus_and_take_no_quota_from_others(stack: str, queues: Callable[[Plan], Any]) -> None:
    plan = plan_of(stack)
    assert plan.cpu_work is not None
    for each in queues(plan).of(f"{KUEUE}:ClusterQueue"):
        quotas = quotas_of(each["spec"])
        if "nvidia.com/gpu" not in next(iter(quotas.values())):
            continue
        first = quotas.pop(plan.cpu_work.flavor)
        assert next(iter(quotas_of(each["spec"]))) == plan.cpu_work.flavor
        assert {name: (limits["borrowingLimit"], limits["lendingLimit"]) for name, limits in first.items()} == {
            "cpu": ("0", "0"),
            "memory": ("0", "0"),
            "nvidia.com/gpu": ("0", "0"),
        }
        assert first["nvidia.com/gpu"]["nominalQuota"] == "0"
        assert int(first["cpu"]["nominalQuota"]) > 0


def test_a_queue_with_only_topologies_has_no_launchers(queues: Callable[[Plan], Any]) -> None:
    """With a flavor without a topology in the queue, Kueue would assign jobs without a topology request to it and admit them nowhere."""
    teams = [{"name": "red", "shares": {"h100": 8}}, {"name": "blue", "shares": {"h100": 0, "l4": 1}}]
    plan = build_plan(parse_settings(PLACED | {"teams": teams}, "test"))
    assert plan.cpu_work is not None

    by_name = {each["metadata"]["name"]: set(quotas_of(each["spec"])) for each in queues(plan).of(f"{KUEUE}:ClusterQueue")}

    assert plan.cpu_work.flavor not in by_name["red"]
    assert plan.cpu_work.flavor in by_name["blue"]
    own = {each.namespace: (each.nominal.vcpu, each.launchers.vcpu) for each in plan.cpu_work.queues}
    assert own == {"red": (24, 0), "blue": (18, 6)}, "half of 48 each"


def test_without_a_limit_there_is_no_queue_of_work_without_gpus(queues: Callable[[Plan], Any]) -> None:
    settings = shipped("dev-eks")
    settings["cluster"]["other_work"] = {"max_vcpu": 0}
    plan = build_plan(parse_settings(settings, "test"))

    assert plan.cpu_work is None
    made = queues(plan)
    assert {each["metadata"]["name"] for each in made.of(f"{KUEUE}:LocalQueue")} == {"default"}
    assert {each["metadata"]["name"] for each in made.of(f"{KUEUE}:ResourceFlavor")} == {each.name for each in plan.flavors}
