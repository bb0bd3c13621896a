"""Machines that a stack file describes: they are used like catalogued ones, and must not contradict the catalog."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from plan_settings import eks, gke, plan_of, pool, pool_of, refusals, team

from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.catalog.machines import Vendor, machines_of
from flexspot.capacity.catalog.price_book import PriceFile
from flexspot.capacity.cost.costed_plan import costed, shipped_use
from flexspot.capacity.cost.plan_cost import plan_cost
from flexspot.capacity.plan.build import price_book_of
from flexspot.capacity.plan.model import Amount, plan_data
from flexspot.capacity.plan.resolve import machines_of_pool, own_price_rows
from flexspot.capacity.settings.stack_file import parse_settings
from flexspot.capacity.values.errors import SettingsError

if TYPE_CHECKING:
    from pathlib import Path


GPU = {"name": "r100", "count": 8, "memory_mib": 294912}
PRICE = {"on_demand_usd_per_hour": 150.5, "as_of": "2026-11-24"}
OTHER_FIELDS = {"vcpu": 224, "memory_mib": 2097152, "local_nvme_gb": 30400, "efa_interfaces": 32, "efa_first_card": 1}
NEW: dict[str, Any] = {"name": "p7.48xlarge", "gpu": GPU, **OTHER_FIELDS}


def with_machine(machine: dict[str, Any], pool_machine: str = "p7.48xlarge", **pool_fields: Any) -> dict[str, Any]:
    """Return EKS settings with a described machine, and a pool of two nodes."""
    kind = pool_fields.pop("capacity_type", "spot")
    return eks(
        pool("p", pool_machine, kind, 2, "training", **pool_fields),
        machines=[machine],
        classes={"training": {"capacity": ["reserved", "spot", "on-demand"]}},
        teams=[team("red", shares={"p": 1})],
    )


def test_a_pool_of_a_described_machine_is_planned_like_any_other() -> None:
    plan = plan_of(with_machine(NEW, efa=True))

    made = pool_of(plan, "p")
    assert made.ceiling == Amount(16, 448, 4_194_304)
    assert (made.accelerator, made.gpu_model, made.gpus_per_node) == ("r100", "r100", 8)
    assert made.labels["karpenter.k8s.aws/instance-gpu-name"] == "r100"
    assert made.labels["karpenter.k8s.aws/instance-gpu-memory"] == "294912"
    assert plan.flavors[0].ceiling == Amount(16, 448, 4_194_304)
    [machine] = machines_of_pool(plan, made)
    assert (machine.efa_interfaces, machine.efa_first_card, machine.local_ssd_gb) == (32, 1, 30400)
    written = json.loads(json.dumps(plan_data(plan)))["own_machines"]["p7.48xlarge"]
    assert (written["vcpu"], written["gpu"]["counts"]) == (224, [8])


def test_a_description_does_not_change_the_catalog() -> None:
    before = dict(machines_of(Vendor.AWS))
    plan_of(with_machine(NEW))

    assert machines_of(Vendor.AWS) == before
    assert "p7.48xlarge" not in before
    [problem] = refusals(eks(pool("p", "p7.48xlarge", "spot", 2, "training")))
    assert problem.rule == "unknown-machine"
    assert problem.allowed.endswith("; if EC2 has it, describe it in `machines`")


def test_a_described_price_is_used_with_its_day(tmp_path: Path) -> None:
    written = with_machine(NEW | {"price": PRICE}, capacity_type="on-demand")
    book = price_book_of(parse_settings(written, "test"), tmp_path, "test")

    cost = plan_cost(costed(plan_of(written)), book, shipped_use())

    [line] = [each for each in cost.lines if each.section == "pool"]
    assert line.unknown == ()
    assert line.figures is not None
    assert line.figures.worst_usd == Decimal("223944.00"), "two nodes at 150.50 for 744 hours"
    assert [(str(each.as_of), each.verified) for each in line.prices] == [("2026-11-24", False)]
    assert book.find("p7.48xlarge", "us-east-1", CapacityType.SPOT) is None


def test_a_price_file_takes_precedence_over_described_prices() -> None:
    settings = parse_settings(with_machine(NEW | {"price": PRICE | {"spot_usd_per_hour": 40}}), "test")
    row = {"machine": "p7.48xlarge", "region": "us-east-1", "capacity_type": "spot", "usd_per_hour": "33", "source": "list"}
    source = {"citation": "a list of prices", "as_of": "2026-11-01", "verified": False}
    file = PriceFile.model_validate({"cloud": "aws", "sources": {"list": source}, "prices": [row]})

    rows = own_price_rows(settings, file)

    assert rows is not None
    assert {each.capacity_type.value: str(each.usd_per_hour) for each in rows.prices} == {"spot": "33", "on-demand": "150.5"}
    assert PriceFile.model_validate(rows.model_dump(mode="json")) == rows
    plain = parse_settings(with_machine(NEW), "test")
    assert (own_price_rows(plain, file), own_price_rows(plain, None)) == (file, None)


def test_a_description_that_contradicts_the_catalog_is_refused_field_by_field() -> None:
    wrong = {"name": "g7.2xlarge", "vcpu": 8, "memory_mib": 65536, "gpu": {"name": "rtx-pro-4500", "count": 2, "memory_mib": 32768}}

    problems = refusals(with_machine(wrong, "g7.2xlarge"))

    contradictions = {each.path: each.problem for each in problems if each.rule == "machine-contradicts-catalog"}
    assert set(contradictions) == {"machines.0.memory_mib", "machines.0.gpu", "machines.0.local_nvme_gb"}
    assert contradictions["machines.0.memory_mib"] == "the catalog has 32768 for g7.2xlarge (moto-5.2.1)"


def test_a_description_stays_valid_when_the_catalog_adds_its_machine() -> None:
    right = {"name": "g7.2xlarge", "vcpu": 8, "memory_mib": 32768, "gpu": {"name": "rtx-pro-4500", "count": 1, "memory_mib": 32768}}
    right["local_nvme_gb"] = 440

    [warning] = [each for each in plan_of(with_machine(right, "g7.2xlarge")).warnings if each.path == "machines.0"]
    assert (warning.rule, warning.text) == ("machine-in-catalog", "repeats what the catalog has; leave it out")
    priced = plan_of(with_machine(right | {"zones": ["us-east-1f"], "price": PRICE}, "g7.2xlarge"))
    assert [each.rule for each in priced.warnings if each.path == "machines.0"] == []
    assert priced.own_machines["g7.2xlarge"].zones["us-east-1"] == ("us-east-1f",), "zones change, so the description takes precedence"
    assert "us-west-2" in priced.own_machines["g7.2xlarge"].zones


@pytest.mark.parametrize(
    "change,rule,path",
    [
        ({"name": "g4ad.xlarge"}, "machine-not-served", "machines.0.name"),
        ({"name": "inf1.xlarge"}, "machine-not-served", "machines.0.name"),
        ({"zones": ["us-west-2a"]}, "zone-outside-region", "machines.0.zones.0"),
        ({"zones": ["use1-az1"]}, "zone-names-and-ids", "machines.0.zones"),
    ],
)
def test_an_impossible_description_is_refused(change: dict[str, Any], rule: str, path: str) -> None:
    problems = refusals(with_machine(NEW | change, "g6.xlarge"))

    assert [(each.rule, each.path) for each in problems] == [(rule, path)]


@pytest.mark.parametrize(
    "change,text",
    [
        ({"name": "p7"}, "an instance type of EC2"),
        ({"vcpu": 0}, "machines.0.vcpu (is 0): should be at least 1"),
        ({"gpu": GPU | {"count": 0}}, "machines.0.gpu.count (is 0): should be at least 1"),
        ({"gpu": GPU | {"name": "R 100"}}, "a GPU's name in lower case"),
        ({"gpu": GPU | {"manufacturer": "amd"}}, "is not a setting"),
        ({"efa_interfaces": 0}, "has efa_first_card without efa_interfaces"),
        ({"price": {"as_of": "2026-11-24"}}, "has no price"),
        ({"price": {"on_demand_usd_per_hour": 0, "as_of": "2026-11-24"}}, "should be greater than 0"),
        ({"price": {"on_demand_usd_per_hour": 1}}, "machines.0.price.as_of: is missing"),
        ({"architecture": "x86_64"}, "allowed: amd64, arm64"),
    ],
)
def test_a_malformed_description_is_refused(change: dict[str, Any], text: str) -> None:
    with pytest.raises(SettingsError) as refused:
        parse_settings(with_machine(NEW | change), "test")

    assert text in str(refused.value)


def test_a_duplicate_description_is_refused() -> None:
    settings = with_machine(NEW)
    settings["machines"] = [NEW, NEW | {"vcpu": 192}]

    [problem] = refusals(settings)

    assert (problem.rule, problem.path) == ("duplicate-name", "machines.1.name")


def test_arm_is_accepted_with_a_warning_and_never_mixed() -> None:
    arm = NEW | {"architecture": "arm64"}

    assert "arm64-not-tried" in {each.rule for each in plan_of(with_machine(arm)).warnings}
    like = {"name": "p7a.48xlarge", "gpu": GPU, **OTHER_FIELDS}
    settings = with_machine(arm, alternatives=["p7a.48xlarge"])
    settings["machines"].append(like)
    [problem] = refusals(settings)
    assert (problem.rule, problem.path) == ("mixed-architectures-in-pool", "pools.0.alternatives.0")


@pytest.mark.parametrize(
    "machine,rule",
    [
        ({"max_pods": 58}, None),
        ({}, "system-machine-without-max-pods"),
        ({"architecture": "arm64", "max_pods": 58}, "system-pool-with-arm64"),
    ],
)
def test_the_system_pool_accepts_a_completely_described_machine(machine: dict[str, Any], rule: str | None) -> None:
    described = {"name": "m8i.2xlarge", "vcpu": 8, "memory_mib": 32768, **machine}
    settings = with_machine(described, "g6.xlarge")
    settings["cluster"] = settings["cluster"] | {"system_pool": {"machine": "m8i.2xlarge", "min_nodes": 3, "max_nodes": 4}}

    if rule is None:
        assert plan_of(settings).spending.system_nodes is not None
    else:
        assert [each.rule for each in refusals(settings)] == [rule]


GPU_OF_GKE = {"name": "nvidia-r100", "count": 8, "memory_mib": 294912}
NEW_OF_GKE: dict[str, Any] = {"name": "a5-highgpu-8g", "vcpu": 224, "memory_mib": 4063232, "gpu": GPU_OF_GKE, "bundled_local_ssd_disks": 32}
A4_HIGH = machines_of(Vendor.GCP)["a4-highgpu-8g"]


def with_gke_machine(machine: dict[str, Any], pool_machine: str = "a5-highgpu-8g", **pool_fields: Any) -> dict[str, Any]:
    """Return GKE settings with a described machine, and a pool of two nodes."""
    kind = pool_fields.pop("capacity_type", "spot")
    return gke(
        pool("p", pool_machine, kind, 2, "training", **pool_fields),
        machines=[machine],
        classes={"training": {"capacity": ["flex-start", "spot", "on-demand"]}},
        teams=[team("red", shares={"p": 8})],
    )


def as_described(name: str) -> dict[str, Any]:
    """Return the description of a machine of the catalog."""
    machine = machines_of(Vendor.GCP)[name]
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


def test_a_pool_of_a_described_gke_machine_is_planned_like_any_other() -> None:
    plan = plan_of(with_gke_machine(NEW_OF_GKE))

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
def test_options_that_the_description_does_not_support_are_refused(change: dict[str, Any], pool_fields: dict[str, Any], rule: str) -> None:
    refused = {each.rule for each in refusals(with_gke_machine(NEW_OF_GKE | change, **pool_fields))}
    taken = plan_of(with_gke_machine(NEW_OF_GKE | {"flex_start": True, "compact_placement": True}, **pool_fields))

    assert refused == {rule}
    assert pool_of(taken, "p").machines == ("a5-highgpu-8g",)


def test_a_gke_description_that_contradicts_the_catalog_is_refused_field_by_field() -> None:
    right = as_described("a4-highgpu-8g")
    wrong = right | {"vcpu": 8, "boot_disk": "pd-balanced", "flex_start": not A4_HIGH.flex_start, "bundled_local_ssd_disks": 1}

    [warning] = [each for each in plan_of(with_gke_machine(right, "a4-highgpu-8g")).warnings if each.path == "machines.0"]
    refused = {each.path: each.allowed for each in refusals(with_gke_machine(wrong, "a4-highgpu-8g"))}

    assert warning.rule == "machine-in-catalog"
    assert set(refused) == {f"machines.0.{field}" for field in ("vcpu", "boot_disk", "flex_start", "bundled_local_ssd_disks")}
    assert all("to the value of Compute Engine" in each for each in refused.values())


def test_zones_of_a_description_are_in_the_region_and_restrict_nodes() -> None:
    outside = refusals(with_gke_machine(NEW_OF_GKE | {"zones": ["us-east1-b"]}))
    elsewhere = refusals(with_gke_machine(NEW_OF_GKE | {"zones": ["us-central1-f"]}))

    assert ("zone-outside-region", "machines.0.zones.0") in {(each.rule, each.path) for each in outside}
    assert elsewhere
    assert all("us-central1-f" in each.allowed for each in elsewhere)


@pytest.mark.parametrize("name", ["ct6e-standard-4t", "ct5p-hightpu-1t", "ct4p-hightpu-4t"])
def test_a_tpu_cannot_be_described(name: str) -> None:
    [problem] = [each for each in refusals(with_gke_machine(NEW_OF_GKE | {"name": name}, "g2-standard-4")) if "machines" in each.path]

    assert problem.rule == "machine-not-served"
