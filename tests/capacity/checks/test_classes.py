"""Classes and the pools that serve them."""

from __future__ import annotations

from typing import Any

import pytest
from resolved_fixtures import CLASS, pool, told

from capacity.plan.checks.classes import (
    a_pool_has_one_decider,
    a_shared_pool_says_how_it_is_split,
    compute_classes_do_not_share_pools,
    every_class_has_a_pool,
    orders_do_not_contradict,
    pools_are_in_the_order_of_their_classes,
    pools_serve_classes_that_exist,
    what_is_interrupted_can_go_on,
)

SHARED: dict[str, Any] = {"pools.0.serves": ["training", "inference"], "classes.inference": {"capacity": ["spot"], "fallback": "quota"}}
"""A queued class and one without a queue on the same pool."""


def test_a_pool_serves_classes_that_exist_each_once() -> None:
    assert told(pools_serve_classes_that_exist, "local", {"pools.0.serves": ["training", "trainig"]}) == [
        "refused: unknown-class at pools.0.serves.1"
    ]
    assert told(pools_serve_classes_that_exist, "local", {"pools.0.serves": ["training", "spot-low", "training"]}) == [
        "refused: duplicate-name at pools.0.serves.2"
    ]
    assert told(pools_serve_classes_that_exist, "local", {"pools.0.serves": ["training", "rendering"], "classes.rendering": CLASS}) == []


def test_a_class_that_the_settings_speak_of_is_served() -> None:
    for name, changes in {"interactive": {"run_limit_hours": 8}, "rendering": CLASS}.items():
        spoken_of = {f"classes.{name}": changes}

        assert told(every_class_has_a_pool, "local", spoken_of) == [f"refused: class-without-pool at classes.{name}"]
        assert told(every_class_has_a_pool, "local", spoken_of | {"pools.0.serves": ["training", name]}) == []


def test_on_demand_serves_a_class_only_where_its_order_says_so() -> None:
    on_demand: dict[str, Any] = {"pools.0.capacity_type": "on-demand"}

    assert told(pools_are_in_the_order_of_their_classes, "local", on_demand) == ["refused: capacity-outside-class-order at pools.0.serves"]
    written_down = on_demand | {"classes.training.capacity": ["spot", "on-demand"]}
    assert told(pools_are_in_the_order_of_their_classes, "local", written_down) == []


def test_a_pool_of_queued_and_unqueued_classes_says_how_it_is_split() -> None:
    assert told(a_shared_pool_says_how_it_is_split, "local", SHARED) == ["refused: shared-pool-not-split at pools.0.serves"]
    assert told(a_shared_pool_says_how_it_is_split, "local", SHARED | {"teams.0.unqueued": {"l4-spot": 1}}) == []


def test_one_thing_alone_moves_the_classes_of_a_pool_on() -> None:
    both: dict[str, Any] = {"pools.0.serves": ["training", "spot-low"], "classes.spot-low.fallback": "stock-out"}

    assert told(a_pool_has_one_decider, "local", both) == ["refused: shared-pool-with-conflicting-classes at pools.0.serves"]
    assert told(a_pool_has_one_decider, "local", both | {"classes.training.fallback": "stock-out"}) == []


@pytest.mark.parametrize("change", [{"fallback": "stock-out"}, {"queued": False}])
def test_queued_capacity_comes_through_a_queue(change: dict[str, Any]) -> None:
    queued: dict[str, Any] = {"pools.0.capacity_type": "queued"}

    assert told(a_pool_has_one_decider, "gke", queued | {"classes.training": change}) == [
        "refused: queued-capacity-without-queue at pools.0.serves"
    ]
    assert told(a_pool_has_one_decider, "gke", queued) == []


@pytest.mark.parametrize("fallback", ["quota", "stock-out"])
def test_classes_that_share_flavors_do_not_want_opposite_orders(fallback: str) -> None:
    opposite: dict[str, Any] = {
        "pools.0.serves": ["training", "spot-low"],
        "classes.training": {"capacity": ["spot", "on-demand"], "fallback": fallback},
        "classes.spot-low": {"capacity": ["on-demand", "spot"], "fallback": fallback},
    }
    refused = told(orders_do_not_contradict, "local", opposite)

    assert set(refused) == {"refused: classes-disagree-on-order at classes"}
    assert told(orders_do_not_contradict, "local", opposite | {"classes.spot-low.capacity": ["spot", "on-demand"]}) == []


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
