"""Machines of Compute Engine that a stack file describes: used like those of the catalog, and never against them."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from plan_settings import gke, plan_of, pool, pool_of, refusals, team

from capacity.catalog.machines import Cloud, machines_of
from capacity.cost.costed_plan import costed, shipped_use
from capacity.cost.plan_cost import plan_cost
from capacity.plan.build import price_book_of
from capacity.plan.model import Amount
from capacity.settings.stack_file import parse_settings

if TYPE_CHECKING:
    from pathlib import Path

GPU = {"name": "nvidia-r100", "count": 8, "memory_mib": 294912}
NEW: dict[str, Any] = {"name": "a5-highgpu-8g", "vcpu": 224, "memory_mib": 4063232, "gpu": GPU, "bundled_local_ssd_disks": 32}
A4_HIGH = machines_of(Cloud.GCP)["a4-highgpu-8g"]


def with_machine(machine: dict[str, Any], pool_machine: str = "a5-highgpu-8g", **pool_fields: Any) -> dict[str, Any]:
    """GKE with a described machine, and a pool of two nodes of one."""
    kind = pool_fields.pop("capacity_type", "spot")
    return gke(
        pool("p", pool_machine, kind, 2, "training", **pool_fields),
        machines=[machine],
        classes={"training": {"capacity": ["flex-start", "spot", "on-demand"]}},
        teams=[team("red", shares={"p": 8})],
    )


def as_described(name: str) -> dict[str, Any]:
    """A machine of the catalog in the words of a description."""
    machine = machines_of(Cloud.GCP)[name]
    assert machine.gpu is not None
    return {
        "name": name,
        "vcpu": machine.vcpu,
        "memory_mib": machine.memory_mib,
        "gpu": {"name": machine.gpu.name, "count": machine.gpu.count, "memory_mib": machine.gpu.memory_mib},
        "bundled_local_ssd_disks": machine.bundled_local_ssd_disks,
        "boot_disk": machine.boot_disk.value,
        "compact_placement": machine.compact_placement,
        "flex_start": machine.flex_start,
    }


def test_a_pool_of_a_described_machine_is_planned_as_of_any_other() -> None:
    plan = plan_of(with_machine(NEW))

    made = pool_of(plan, "p")
    assert made.ceiling == Amount(16, 448, 8_126_464)
    assert (made.accelerator, made.gpu_model, made.gpus_per_node) == ("nvidia-r100", "nvidia-r100", 8)
    assert made.labels["cloud.google.com/gke-accelerator"] == "nvidia-r100"
    assert plan.accelerators == {"nvidia-r100": 16}, "the cluster's limit of auto-provisioning"
    assert plan.own_machines["a5-highgpu-8g"].bundled_local_ssd_disks == 32


@pytest.mark.parametrize(
    "change,pool_fields,rule",
    [
        ({}, {"capacity_type": "flex-start"}, "machine-not-in-dws"),
        ({}, {"compact_placement": True, "zones": ["us-central1-a"]}, "no-compact-placement"),
    ],
)
def test_what_its_description_does_not_have_is_refused_of_its_pool(change: dict[str, Any], pool_fields: dict[str, Any], rule: str) -> None:
    refused = {each.rule for each in refusals(with_machine(NEW | change, **pool_fields))}
    taken = plan_of(with_machine(NEW | {"flex_start": True, "compact_placement": True}, **pool_fields))

    assert refused == {rule}
    assert pool_of(taken, "p").machines == ("a5-highgpu-8g",)


def test_a_price_that_is_given_counts_with_its_day_and_one_that_is_not_is_unknown(tmp_path: Path) -> None:
    price = {"on_demand_usd_per_hour": 150.5, "as_of": "2026-11-24"}
    priced, plain = (with_machine(NEW | more, capacity_type="on-demand") for more in ({"price": price}, {}))

    worst = {}
    for name, written in {"priced": priced, "plain": plain}.items():
        book = price_book_of(parse_settings(written, "test"), tmp_path, "test")
        [line] = [each for each in plan_cost(costed(plan_of(written)), book, shipped_use()).lines if each.section == "pool"]
        worst[name] = (line.figures and line.figures.worst_usd, line.unknown)

    assert worst["plain"][0] is None
    assert "on-demand price of a5-highgpu-8g in us-central1" in worst["plain"][1]
    usd, _ = worst["priced"]
    assert usd is not None
    assert usd >= Decimal("219730.00"), "two nodes at 150.50 for 730 hours, and their disks"


def test_a_description_agrees_with_the_catalog_or_is_refused_field_by_field() -> None:
    right = as_described("a4-highgpu-8g")
    wrong = right | {"vcpu": 8, "boot_disk": "pd-balanced", "flex_start": not A4_HIGH.flex_start, "bundled_local_ssd_disks": 1}

    [told] = [each for each in plan_of(with_machine(right, "a4-highgpu-8g")).warnings if each.path == "machines.0"]
    refused = {each.path: each.allowed for each in refusals(with_machine(wrong, "a4-highgpu-8g"))}

    assert told.rule == "machine-in-catalog"
    assert set(refused) == {f"machines.0.{field}" for field in ("vcpu", "boot_disk", "flex_start", "bundled_local_ssd_disks")}
    assert all("as Compute Engine describes it" in each for each in refused.values())


def test_zones_of_a_description_are_those_of_the_region_and_decide_where_nodes_may_be() -> None:
    outside = refusals(with_machine(NEW | {"zones": ["us-east1-b"]}))
    elsewhere = refusals(with_machine(NEW | {"zones": ["us-central1-f"]}))

    assert ("zone-outside-region", "machines.0.zones.0") in {(each.rule, each.path) for each in outside}
    assert elsewhere
    assert all("us-central1-f" in each.allowed for each in elsewhere)


@pytest.mark.parametrize("name", ["ct6e-standard-4t", "ct5p-hightpu-1t", "ct4p-hightpu-4t"])
def test_a_tpu_is_not_described_away(name: str) -> None:
    [problem] = [each for each in refusals(with_machine(NEW | {"name": name}, "g2-standard-4")) if "machines" in each.path]

    assert problem.rule == "machine-not-served"
