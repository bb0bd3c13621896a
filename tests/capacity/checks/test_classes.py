"""Classes and the pools that serve them, and names."""

from __future__ import annotations

from typing import Any

import pytest
from resolved_fixtures import pool, told

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

    assert told(a_pool_has_one_decider, "gke", queued | {"classes.training": change}) == [
        "refused: queued-capacity-without-queue at pools.0.serves"
    ]
    assert told(a_pool_has_one_decider, "gke", queued) == []


def test_a_pool_of_gke_stands_in_one_compute_class() -> None:
    classes: dict[str, Any] = {
        "pools.0.serves": ["training", "spot-low"],
        "classes.training.fallback": "stock-out",
        "classes.spot-low.fallback": "stock-out",
    }
    split = classes | {"pools.0.serves": ["training"], "pools.1": pool("sweeps", "g2-standard-8", "spot", "spot-low")}

    assert told(compute_classes_do_not_share_pools, "gke", classes) == ["refused: shared-pool-with-conflicting-classes at pools.0.serves"]
    assert told(compute_classes_do_not_share_pools, "gke", split) == []


def test_a_compute_class_is_of_one_gpu() -> None:
    compute_class: dict[str, Any] = {"classes.training.fallback": "stock-out"}

    assert told(
        compute_classes_do_not_share_pools, "gke", compute_class | {"pools.1": pool("t4", "n1-standard-8", "spot", "training")}
    ) == ["refused: compute-class-with-several-gpus at classes.training"]
    assert (
        told(compute_classes_do_not_share_pools, "gke", compute_class | {"pools.1": pool("more", "g2-standard-24", "spot", "training")})
        == []
    )


def test_classes_of_karpenter_that_move_on_have_their_pools_in_common_or_none() -> None:
    classes: dict[str, Any] = {"classes.training.fallback": "stock-out", "classes.spot-low.fallback": "stock-out"}
    apart = classes | {"pools.1": pool("sweeps", "g6.xlarge", "spot", "spot-low")}
    together = classes | {"pools.0.serves": ["training", "spot-low"], "pools.1": pool("more", "g6.xlarge", "spot", "training", "spot-low")}
    other_gpu = classes | {"pools.1": pool("sweeps", "g4dn.xlarge", "spot", "spot-low")}

    assert told(compute_classes_do_not_share_pools, "eks", apart) == ["refused: shared-pool-with-conflicting-classes at pools"]
    assert told(compute_classes_do_not_share_pools, "eks", together) == []
    assert told(compute_classes_do_not_share_pools, "eks", other_gpu) == []


@pytest.mark.parametrize("hours", [25, None])
def test_a_long_run_on_spot_without_checkpoints_gets_a_warning(hours: int | None) -> None:
    long: dict[str, Any] = {"pools.0.serves": ["spot-low"], "classes.spot-low.run_limit_hours": hours}

    assert told(what_is_interrupted_can_go_on, "local", long) == ["warned: long-spot-run-without-checkpoint at classes.spot-low"]
    assert told(what_is_interrupted_can_go_on, "local", long | {"classes.spot-low.checkpoint": True}) == []
    assert told(what_is_interrupted_can_go_on, "local", long | {"classes.spot-low.run_limit_hours": 24}) == []


def test_the_third_of_a_name_is_told_too() -> None:
    thrice: dict[str, Any] = {"teams.1": {"name": "red"}, "teams.2": {"name": "red"}}

    assert told(names_are_unique, "local", thrice) == ["refused: duplicate-name at teams.1.name", "refused: duplicate-name at teams.2.name"]


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public", "kube-node-lease", "kueue-system", "karpenter", "gmp-system"])
def test_a_team_is_not_called_like_a_namespace_of_the_cluster(name: str) -> None:
    assert told(teams_do_not_take_a_namespace_of_the_cluster, "local", {"teams.0.name": name}) == ["refused: reserved-name at teams.0.name"]
    assert told(teams_do_not_take_a_namespace_of_the_cluster, "local", {"teams.0.name": f"team-{name}"}) == []


@pytest.mark.parametrize(
    "cloud,name", [("gke", "system"), ("gke", "default-pool"), ("gke", "nap-1"), ("eks", "other-work"), ("local", "other-work")]
)
def test_a_pool_is_not_called_like_one_that_the_cluster_has_by_itself(cloud: str, name: str) -> None:
    assert told(pools_do_not_take_a_name_of_the_platform, cloud, {"pools.0.name": name}) == ["refused: reserved-name at pools.0.name"]
    assert told(pools_do_not_take_a_name_of_the_platform, cloud, {"pools.0.name": f"my-{name}"}) == []
    assert told(pools_do_not_take_a_name_of_the_platform, "eks" if cloud == "gke" else "gke", {"pools.0.name": name}) == []
