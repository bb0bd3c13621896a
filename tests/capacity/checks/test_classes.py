"""Checks of workload classes, the pools that serve them, and names."""

from __future__ import annotations

from typing import Any

import pytest
from resolved_fixtures import pool, reports

from flexspot.capacity.plan.checks.classes import (
    a_pool_has_one_decider,
    compute_classes_do_not_share_pools,
    names_are_unique,
    pools_do_not_take_a_name_of_the_platform,
    teams_do_not_take_a_namespace_of_the_cluster,
    what_is_interrupted_can_go_on,
)


@pytest.mark.parametrize("change", [{"fallback": "stock-out"}, {"queued": False}])
def test_queued_capacity_comes_through_a_queue(change: dict[str, Any]) -> None:
    queued: dict[str, Any] = {"pools.0.capacity_type": "queued"}

    assert reports(a_pool_has_one_decider, "gke", queued | {"classes.training": change}) == [
        "refused: queued-capacity-without-queue at pools.0.serves"
    ]
    assert reports(a_pool_has_one_decider, "gke", queued) == []


def test_a_gke_pool_is_in_one_compute_class() -> None:
    classes: dict[str, Any] = {
        "pools.0.serves": ["training", "spot-low"],
        "classes.training.fallback": "stock-out",
        "classes.spot-low.fallback": "stock-out",
    }
    split = classes | {"pools.0.serves": ["training"], "pools.1": pool("sweeps", "g2-standard-8", "spot", "spot-low")}

    assert reports(compute_classes_do_not_share_pools, "gke", classes) == [
        "refused: shared-pool-with-conflicting-classes at pools.0.serves"
    ]
    assert reports(compute_classes_do_not_share_pools, "gke", split) == []


def test_a_compute_class_has_one_kind_of_gpu() -> None:
    compute_class: dict[str, Any] = {"classes.training.fallback": "stock-out"}

    assert reports(
        compute_classes_do_not_share_pools, "gke", compute_class | {"pools.1": pool("t4", "n1-standard-8", "spot", "training")}
    ) == ["refused: compute-class-with-several-gpus at classes.training"]
    assert (
        reports(compute_classes_do_not_share_pools, "gke", compute_class | {"pools.1": pool("more", "g2-standard-24", "spot", "training")})
        == []
    )


def test_karpenter_classes_with_stock_out_fallback_share_all_pools_or_none() -> None:
    classes: dict[str, Any] = {"classes.training.fallback": "stock-out", "classes.spot-low.fallback": "stock-out"}
    apart = classes | {"pools.1": pool("sweeps", "g6.xlarge", "spot", "spot-low")}
    together = classes | {"pools.0.serves": ["training", "spot-low"], "pools.1": pool("more", "g6.xlarge", "spot", "training", "spot-low")}
    other_gpu = classes | {"pools.1": pool("sweeps", "g4dn.xlarge", "spot", "spot-low")}

    assert reports(compute_classes_do_not_share_pools, "eks", apart) == ["refused: shared-pool-with-conflicting-classes at pools"]
    assert reports(compute_classes_do_not_share_pools, "eks", together) == []
    assert reports(compute_classes_do_not_share_pools, "eks", other_gpu) == []


@pytest.mark.parametrize("hours", [25, None])
def test_a_long_run_on_spot_without_checkpoints_gets_a_warning(hours: int | None) -> None:
    long: dict[str, Any] = {"pools.0.serves": ["spot-low"], "classes.spot-low.run_limit_hours": hours}

    assert reports(what_is_interrupted_can_go_on, "local", long) == ["warned: long-spot-run-without-checkpoint at classes.spot-low"]
    assert reports(what_is_interrupted_can_go_on, "local", long | {"classes.spot-low.checkpoint": True}) == []
    assert reports(what_is_interrupted_can_go_on, "local", long | {"classes.spot-low.run_limit_hours": 24}) == []


def test_every_duplicate_of_a_name_is_reported() -> None:
    thrice: dict[str, Any] = {"teams.1": {"name": "red"}, "teams.2": {"name": "red"}}

    assert reports(names_are_unique, "local", thrice) == [
        "refused: duplicate-name at teams.1.name",
        "refused: duplicate-name at teams.2.name",
    ]


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public", "kube-node-lease", "kueue-system", "karpenter", "gmp-system"])
def test_a_team_with_the_name_of_a_system_namespace_is_refused(name: str) -> None:
    assert reports(teams_do_not_take_a_namespace_of_the_cluster, "local", {"teams.0.name": name}) == [
        "refused: reserved-name at teams.0.name"
    ]
    assert reports(teams_do_not_take_a_namespace_of_the_cluster, "local", {"teams.0.name": f"team-{name}"}) == []


@pytest.mark.parametrize(
    "cloud,name", [("gke", "system"), ("gke", "default-pool"), ("gke", "nap-1"), ("eks", "other-work"), ("local", "other-work")]
)
def test_a_pool_with_the_name_of_a_system_pool_is_refused(cloud: str, name: str) -> None:
    assert reports(pools_do_not_take_a_name_of_the_platform, cloud, {"pools.0.name": name}) == ["refused: reserved-name at pools.0.name"]
    assert reports(pools_do_not_take_a_name_of_the_platform, cloud, {"pools.0.name": f"my-{name}"}) == []
    assert reports(pools_do_not_take_a_name_of_the_platform, "eks" if cloud == "gke" else "gke", {"pools.0.name": name}) == []
