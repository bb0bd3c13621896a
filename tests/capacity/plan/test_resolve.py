"""Resolving machines, GPUs and classes, the problems of unknown ones, and the vCPU and memory of a GPU."""

from __future__ import annotations

from typing import Any

import pytest
from plan_settings import eks, gke, local, plan_of, pool, pool_of, refusals, route_of, team

from flexspot.capacity.catalog.machines import Vendor, machines_of
from flexspot.capacity.plan.model import Amount
from flexspot.capacity.plan.queues import with_gpus
from flexspot.capacity.plan.resolve import node_amount


@pytest.mark.parametrize(
    "machine,problem,instead",
    [
        ("g4ad.xlarge", "has AMD GPUs (amd.com/gpu)", "g4dn and g6"),
        ("g6f.large", "has a part of a GPU", "g6.xlarge and gr6.4xlarge have a whole L4"),
        ("inf1.xlarge", "has the first Inferentia", "inf2 has the second one"),
        ("trn2u.48xlarge", "is a part of an UltraServer", "trn2.48xlarge has the same devices"),
    ],
)
def test_a_machine_with_an_unsupported_accelerator_is_refused_with_a_reason(machine: str, problem: str, instead: str) -> None:
    [refused] = refusals(eks(pool("p", machine, "spot", 1, "training")))

    assert (refused.rule, refused.path, refused.value) == ("machine-not-served", "pools.0.machine", repr(machine))
    assert problem in refused.problem
    assert instead in refused.allowed


def test_a_pool_with_alternatives_counts_as_the_largest_machine() -> None:
    settings = eks(
        pool("p", "g6.xlarge", "spot", 3, "training", alternatives=["g6.4xlarge", "g6.2xlarge"]), teams=[team("red", shares={"p": 1})]
    )

    plan = plan_of(settings)

    assert pool_of(plan, "p").machines == ("g6.xlarge", "g6.4xlarge", "g6.2xlarge")
    assert pool_of(plan, "p").ceiling == Amount(3, 48, 196_608), "the largest machine, not the named one"
    assert plan.queues[0].quotas[0].nominal == Amount(1, 16, 65_536), "vCPU and memory never run out before the GPUs"


def test_the_two_sizes_of_an_a100_are_not_the_same_gpu() -> None:
    # facts/apis.md G5
    [problem] = refusals(eks(pool("p", "p4d.24xlarge", "spot", 1, "training", alternatives=["p4de.24xlarge"])))

    assert problem.problem == "has 8 x a100-80gb, but p4d.24xlarge has 8 x a100-40gb"


def test_a_pool_determines_the_number_of_attached_gpus() -> None:
    four = pool_of(plan_of(gke(pool("p", "n1-standard-8", "spot", 2, "training", gpus_per_node=4))), "p")

    assert (four.gpus_per_node, four.ceiling) == (4, Amount(8, 16, 61_440))


@pytest.mark.parametrize("ceiling", [{"max_nodes": 3}, {"max_gpus": 24}, {"max_nodes": 3, "max_gpus": 24}])
def test_a_ceiling_is_in_nodes_or_in_gpus(ceiling: dict[str, int]) -> None:
    found = pool_of(plan_of(eks({**pool("p", "p5.48xlarge", "spot", 3, "training"), "max_nodes": None, **ceiling})), "p")

    assert (found.max_nodes, found.ceiling) == (3, Amount(24, 576, 6_291_456))


def test_one_field_of_a_shipped_class_is_changed_and_the_others_stay() -> None:
    settings = local(pool("p", "g6.xlarge", "spot", 1, "training"))

    shipped = route_of(plan_of(settings), "training")
    changed = route_of(plan_of(settings | {"classes": {"training": {"run_limit_hours": 3}}}), "training")

    assert (shipped.max_run_seconds, changed.max_run_seconds) == (168 * 3600, 3 * 3600)
    assert (changed.priority_class, changed.checkpoint, changed.grace_seconds) == ("gpu-training", True, 90)


@pytest.mark.parametrize("field,value", [("priority", None), ("capacity", None), ("disruption", None), ("capacity", ["spot", "spot"])])
def test_an_invalid_field_of_a_class_is_refused_with_its_path(field: str, value: Any) -> None:
    problems = refusals(local(pool("p", "g6.xlarge", "spot", 1, "training"), classes={"training": {field: value}}))

    assert [problem.path for problem in problems] == [f"classes.training.{field}"]


AWS = machines_of(Vendor.AWS)


def test_gpus_have_vcpu_and_memory_in_proportion() -> None:
    assert with_gpus([Amount(8, 192, 2_097_152)], 2) == Amount(2, 48, 524_288)
    assert with_gpus([Amount(8, 192, 2_097_152)], 0) == Amount(0, 0, 0)


def test_parts_of_a_vcpu_or_mebibyte_are_rounded_up() -> None:
    assert with_gpus([Amount(3, 10, 100)], 1) == Amount(1, 4, 34)
    assert with_gpus([Amount(3, 10, 100)], 2) == Amount(2, 7, 67)


def test_of_several_kinds_of_node_the_largest_vcpu_and_memory_per_gpu_count() -> None:
    assert with_gpus([Amount(4, 48, 400), Amount(1, 64, 50)], 4) == Amount(4, 256, 400)


def test_a_node_of_several_machines_counts_as_the_largest_in_each_way() -> None:
    assert node_amount([AWS["g6.xlarge"], AWS["g6.4xlarge"], AWS["g6.2xlarge"]], 1) == Amount(1, 16, 65_536)
