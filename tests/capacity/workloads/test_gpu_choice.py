"""Requests for a GPU model or for GPU memory go to pools with both, or are refused with the available ones."""

from __future__ import annotations

from typing import Any

import plan_settings
import pytest
from autopilot_settings import autopilot_settings
from plan_settings import local, pool, team
from workload_plans import IMAGE, plan_of, pod_of, pools_of

from flexspot.capacity.plan.build import build_plan
from flexspot.capacity.settings.stack_file import parse_settings
from flexspot.capacity.workloads.kinds import objects_of
from flexspot.capacity.workloads.requests import WorkloadError

TRAINING: dict[str, Any] = {"name": "bert", "team": "red", "workload_class": "training", "image": IMAGE}


@pytest.mark.parametrize(
    "stack,fields,pools",
    [
        ("prod-gke", {"gpu_models": ["h100"], "gpus": 8}, ["h100-reserved", "h100-queued"]),
        ("prod-gke", {"gpu_models": ["nvidia-tesla-a100"], "gpus": 4}, ["a100-flex"]),
        ("prod-gke", {"gpu_models": ["a100-40gb", "l4"], "gpus": 4}, ["a100-flex"]),
        ("prod-gke", {"gpu_models": ["a100-40gb", "l4"]}, ["l4-spot"]),
        ("prod-gke", {"gpu_memory_gb": 80, "gpus": 8}, ["h100-reserved", "h100-queued"]),
        ("prod-gke", {"gpu_memory_gb": 40, "gpus": 4}, ["a100-flex"]),
        ("prod-gke", {"gpu_memory_gb": 24}, ["l4-spot"]),
        ("prod-eks", {"gpu_models": ["a100"]}, ["a100-spot"]),
        ("prod-eks", {"gpu_memory_gb": 80}, ["h100-reserved"]),
        ("local", {"gpu_memory_gb": 24}, ["l4-spot"]),
    ],
)
def test_the_affinity_names_the_pools_with_the_requested_gpus(stack: str, fields: dict[str, Any], pools: list[str]) -> None:
    assert pools_of(pod_of(stack, **fields)) == pools


def test_vcpu_and_memory_of_a_pod_depend_on_the_remaining_machines() -> None:
    """Of the class's smallest machine the share would be smaller than an H100's."""
    assert pod_of("prod-gke", gpu_models=["h100"], gpus=8)["containers"][0]["resources"]["requests"]["memory"] == "1404Gi"


def test_where_the_autoscaler_chooses_among_pools_gpu_labels_select_the_flavors_in_kueue() -> None:
    """Such a flavor names no pool. With an affinity to pools only, Kueue would admit the job to GPUs that its pods may not use."""
    climbing = {"training": {"fallback": "stock-out", "capacity": ["spot", "on-demand"]}}
    machines = {"a100": "p4d.24xlarge", "a100-large": "p4de.24xlarge", "h100": "p5.48xlarge", "l4": "g6.xlarge"}
    pools = [pool(name, machine, "spot", 1, "training") for name, machine in machines.items()]
    plan = plan_settings.plan_of(local(*pools, classes=climbing, teams=[team("red", shares=dict.fromkeys(machines, 1))]))
    assert {flavor.name for flavor in plan.flavors} == {"any-a100-40gb", "any-a100-80gb", "any-h100-80gb", "any-l4"}

    [job] = objects_of(plan, "checkpointed-job", {**TRAINING, "gpu_memory_gb": 80})
    affinity = job["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    terms = [{each["key"]: each["values"] for each in term["matchExpressions"]} for term in affinity["nodeSelectorTerms"]]

    name, memory = "karpenter.k8s.aws/instance-gpu-name", "karpenter.k8s.aws/instance-gpu-memory"
    pools = {"karpenter.sh/nodepool": ["a100-large", "h100"]}
    assert terms == [{**pools, "flexspot.dev/flavor": [f"any-{gpu}-80gb"], memory: ["81920"], name: [gpu]} for gpu in ("a100", "h100")]
    [any_of_them] = objects_of(plan, "checkpointed-job", TRAINING)
    assert pools_of(any_of_them["spec"]["template"]["spec"]) == ["a100", "a100-large", "h100", "l4"]


def test_a_choice_of_pools_is_refused_with_a_compute_class_that_uses_all_of_them() -> None:
    """GKE accepts no other selector there: without a refusal an 80 GB model would go to 24 GB GPUs."""
    written = {"name": "chat", "team": "search", "workload_class": "inference", "image": IMAGE}
    plan = plan_of("prod-gke")
    assert objects_of(plan, "model-server", {**written, "gpu_models": ["l4"]}), "every pool of the class has it"

    with pytest.raises(WorkloadError) as refused:
        objects_of(plan, "model-server", {**written, "capacity": ["reserved"]})
    [problem] = refused.value.problems
    assert "GKE chooses among all pools of class inference" in str(problem)
    assert "add a separate class for them to the stack" in str(problem)


def test_on_autopilot_pods_select_the_gpu_itself_and_a_choice_that_no_label_tells_is_refused() -> None:
    settings = autopilot_settings()
    more = {"h100": "a3-highgpu-8g", "a100-large": "a2-ultragpu-8g", "a100-small": "a2-highgpu-8g"}
    for name, machine in more.items():
        settings["pools"].append({"name": name, "machine": machine, "capacity_type": "spot", "max_nodes": 1, "serves": ["training"]})
        settings["teams"][0]["shares"][name] = 8
    next(each for each in settings["pools"] if each["name"] == "t4-spot")["serves"].append("training")
    plan = build_plan(parse_settings(settings, "settings"))
    written = {"name": "bert", "team": "research", "workload_class": "training", "image": IMAGE}

    [job] = objects_of(plan, "checkpointed-job", {**written, "gpu_models": ["h100"]})
    assert job["spec"]["template"]["spec"]["nodeSelector"]["cloud.google.com/gke-accelerator"] == "nvidia-h100-80gb"
    with pytest.raises(WorkloadError, match="is met only by a100-large, a100-small, but GKE chooses among all pools of class training"):
        objects_of(plan, "checkpointed-job", {**written, "gpu_models": ["a100"]})


@pytest.mark.parametrize(
    "option,gb", [({"mig_partition": "1g.10gb"}, 10), ({"gpu_sharing": {"strategy": "time-sharing", "clients_per_gpu": 4}}, 20), ({}, 80)]
)
def test_a_part_of_a_gpu_has_a_part_of_its_memory(option: dict[str, Any], gb: int) -> None:
    settings = autopilot_settings()
    settings["cluster"], settings["classes"] = {"min_version": "1.35"}, {}
    desk = {"name": "h100-desk", "machine": "a3-highgpu-8g", "capacity_type": "on-demand", "max_nodes": 1, "serves": ["inference"]}
    settings["pools"] = [pool("l4", "g2-standard-4", "spot", 1, "training"), {**desk, **option}]
    settings["teams"] = [{"name": "red", "shares": {"l4": 1}}]
    plan = build_plan(parse_settings(settings, "settings"))

    assert {each.name: each.gpu_memory_gb for each in plan.pools} == {"h100-desk": gb, "l4": 24}
