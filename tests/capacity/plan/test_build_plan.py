"""Building plans: problems, warnings, admission, add-ons, and the time that jobs may wait for nodes."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from plan_settings import Settings, eks, gke, local, plan_of, pool, refusals, team
from program_declarations import STACKS, shipped

from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.catalog.machines import Vendor
from flexspot.capacity.catalog.price_book import Price, PriceBook
from flexspot.capacity.plan.build import FLEX_START_TIMES, build_plan, image_book_of, price_book_of
from flexspot.capacity.plan.kueue_configuration import ONE_BOOT
from flexspot.capacity.settings.stack_file import parse_settings
from flexspot.capacity.settings.teams import AdmissionMode
from flexspot.capacity.values.errors import SettingsError


def test_the_ceiling_of_an_accelerator_is_the_sum_of_its_pools() -> None:
    plan = plan_of(eks(pool("a", "g6.xlarge", "spot", 3, "training"), pool("b", "g6.12xlarge", "spot", 2, "training")))

    assert plan.accelerators == {"l4": 3 + 8}


def test_all_problems_are_reported_at_once_with_the_name_of_the_settings() -> None:
    settings = local(
        pool("p", "g6.xlrge", "spot", 1, "training"),
        pool("q", "g6.xlarge", "spot", 1, "training", min_nodes=2),
        teams=[team("red", shares={"q": 2}), team("red")],
    )

    with pytest.raises(SettingsError, match=r"^Pulumi\.test\.yaml: 4 problem") as refused:
        build_plan(parse_settings(settings, "x"), "Pulumi.test.yaml")

    assert {each.rule for each in refused.value.problems} == {
        "unknown-machine",
        "floor-without-effect",
        "duplicate-name",
        "quota-above-ceiling",
    }


def test_an_unresolved_pool_causes_no_further_problems() -> None:
    settings = local(pool("p", "g6.xlrge", "spot", 1, "training"), teams=[team("red", shares={"p": 1}, unqueued={"p": 1})])

    assert [problem.rule for problem in refusals(settings)] == ["unknown-machine"]


def test_settings_that_are_probably_not_intended_cause_a_warning() -> None:
    [warning] = plan_of(local(pool("p", "g6.xlarge", "spot", 1, "training"))).warnings

    assert (warning.rule, warning.path) == ("pool-that-nobody-may-use", "teams")
    assert warning.text.startswith("no team may use pool p: none has a share of it; set shares.p")


def test_budgets_are_checked_against_the_given_price_book() -> None:
    settings = local(pool("p", "g6.xlarge", "spot", 2, "training"), teams=[team("red", shares={"p": 2}, monthly_budget_usd=1000)])
    price = Price(machine="g6.xlarge", region="us-east-1", capacity_type=CapacityType.SPOT, usd_per_hour=Decimal(1), source="own")
    book = PriceBook(Vendor.AWS, {("g6.xlarge", "us-east-1", CapacityType.SPOT): price}, {})

    assert plan_of(settings).warnings == ()
    [warning] = build_plan(parse_settings(settings, "x"), prices=book).warnings
    assert warning.rule == "budget-below-guarantee"
    assert "1460 USD a month" in warning.text


def test_an_absurd_amount_is_reported_and_does_not_crash() -> None:
    serving = pool("p", "g6.xlarge", "on-demand", 2, "inference")
    refusals(local(serving, teams=[team("red", unqueued={"p": 10**30}, monthly_budget_usd=1)]))


def test_an_absurd_ceiling_is_reported_and_does_not_crash() -> None:
    refusals(local({**pool("p", "g6.xlarge", "spot", 2, "training"), "max_nodes": None, "max_gpus": 10**4299, "max_vcpu": 5}))


ON_GKE = {"reservation": {"name": "bought"}}


@pytest.mark.parametrize("kind,more", [("spot", {}), ("reserved", ON_GKE), ("queued", {})])
def test_capacity_without_a_waiting_line_has_the_time_of_a_boot(kind: str, more: Settings) -> None:
    # A job on queued capacity is admitted when its nodes exist.
    assert plan_of(gke(pool("p", "a3-highgpu-8g", kind, 1, "training", **more))).pods_ready == ONE_BOOT


def test_flex_start_waits_longer_than_a_boot() -> None:
    flex = pool("flex", "a3-highgpu-8g", "flex-start", 1, "training")
    spot = pool("spot", "g2-standard-8", "spot", 1, "interactive")

    times = plan_of(gke(flex, spot)).pods_ready

    assert times == FLEX_START_TIMES
    assert times.timeout_seconds > ONE_BOOT.timeout_seconds


def test_work_that_can_never_start_ends_within_about_a_day() -> None:
    for times in (ONE_BOOT, FLEX_START_TIMES):
        waits = [min(1800, 60 * 2**number) for number in range(times.requeues)]

        assert (times.requeues + 1) * times.timeout_seconds + sum(waits) < 25 * 3600


def planned(**admission: Any) -> tuple[AdmissionMode, bool]:
    plan = plan_of(local(pool("l4", "g6.xlarge", "spot", 4, "training"), admission=admission))
    return plan.admission.mode, plan.admission.owner_labels


def test_rules_are_enforced_and_owner_labels_set_by_default() -> None:
    assert planned() == (AdmissionMode.ENFORCE, True)


@pytest.mark.parametrize("mode,labels", [("enforce", True), ("warn", True), ("none", False)])
def test_without_rules_no_owner_labels_are_set(mode: str, labels: bool) -> None:  # noqa: FBT001 -- a column of the table
    assert planned(mode=mode, default_owner_labels=True) == (AdmissionMode(mode), labels)


def test_owner_labels_can_be_turned_off() -> None:
    assert planned(default_owner_labels=False) == (AdmissionMode.ENFORCE, False)


@pytest.mark.parametrize("version,labels", [("1.35", False), ("1.36", True), ("1.37", True)])
def test_on_eks_the_version_decides_about_owner_labels(version: str, labels: bool) -> None:  # noqa: FBT001 -- a column of the table
    l4 = pool("l4", "g6.xlarge", "spot", 4, "training")

    cluster, karpenter = {"version": version, "ami": "al2023@v20261112"}, {"version": "1.15.0"}
    assert plan_of(eks(l4, cluster=cluster, controllers={"karpenter": karpenter})).admission.owner_labels == labels


@pytest.mark.parametrize("cluster", [{}, {"min_version": "1.36", "existing": "ours"}])
def test_on_gke_an_uncertain_version_sets_no_owner_labels(cluster: dict[str, Any]) -> None:
    l4 = pool("l4", "g2-standard-8", "spot", 4, "training")

    assert not plan_of(gke(l4, cluster=cluster)).admission.owner_labels


@pytest.mark.parametrize("name", ["kube-proxy", "vpc-cni", "aws-ebs-csi-driver", "metrics-server"])
def test_a_recommended_addon_version_is_planned_without_a_warning(name: str) -> None:
    written: dict[str, Any] = shipped("dev-eks")
    written["cluster"]["addon_versions"] = {name: "recommended"}
    settings = parse_settings(written, "dev-eks")
    plan = build_plan(settings, "dev-eks", price_book_of(settings, STACKS, "dev-eks"), image_book_of(settings, STACKS, "dev-eks"))

    assert plan.versions.addons[name] == "recommended"
    assert plan.versions.parts()[name] == "recommended"
    assert [each.path for each in plan.warnings if "addon" in each.path] == []
