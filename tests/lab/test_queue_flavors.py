"""A Job moves on to its next capacity either by the queue, when quota is used up, or by the autoscaler, and never by both."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from queue_fixtures import FOUR_L4, pools_of, queues_of

if TYPE_CHECKING:
    from queue_objects import Register

    from flexspot.lab.cluster import Cluster

pytestmark = pytest.mark.lab

SPOT = {"name": "l4-spot", "machine": FOUR_L4, "capacity_type": "spot", "max_nodes": 1, "serves": ["training"]}
ON_DEMAND = {"name": "l4-on-demand", "machine": FOUR_L4, "capacity_type": "on-demand", "max_nodes": 1, "serves": ["training"]}
ALPHA = {"name": "alpha", "shares": {"l4-spot": 4, "l4-on-demand": 4}}


def test_flavors_are_tried_in_the_classes_order_and_the_next_one_when_quota_is_used_up(cluster: Cluster, register: Register) -> None:
    order = ["spot", "on-demand"]
    classes = {"training": {"capacity": order}}
    nodes = {"l4-spot": 1, "l4-on-demand": 1}
    with queues_of(cluster, register, nodes, pools=[SPOT, ON_DEMAND], classes=classes, teams=[ALPHA]) as platform:
        first, second = (platform.own(f"l4-{each}") for each in order)
        platform.submit("alpha", "first", gpus=3)
        assert platform.wait_for_flavors("alpha", "first") == {first}
        # One GPU is left in the first flavor: two do not fit, one does.
        platform.submit("alpha", "too-large-for-the-rest", gpus=2)
        assert platform.wait_for_flavors("alpha", "too-large-for-the-rest") == {second}
        platform.submit("alpha", "fits-the-rest", gpus=1)
        assert platform.wait_for_flavors("alpha", "fits-the-rest") == {first}
        pods = platform.wait_for_running("alpha", "first", "too-large-for-the-rest", "fits-the-rest")
        assert pools_of(cluster, [pod for pod in pods if pod["metadata"]["labels"]["job-name"] == "first"]) == {first}

        platform.submit("alpha", "over", gpus=3)
        said = platform.wait_for_refusal("alpha", "over", "insufficient unused quota")
        assert first in said
        assert second in said, "both flavors were tried, and each is named with what it lacks"


def test_a_job_that_moves_on_at_a_stock_out_has_one_flavor_whatever_capacity_it_gets(cluster: Cluster, register: Register) -> None:
    classes = {"training": {"capacity": ["spot", "on-demand"], "fallback": "stock-out"}}
    # There is no Spot node: only the node of the on-demand pool exists.
    nodes = {"l4-on-demand": 1}
    with queues_of(cluster, register, nodes, pools=[SPOT, ON_DEMAND], classes=classes, teams=[ALPHA]) as platform:
        [flavor] = [each.name for each in platform.plan.flavors]
        platform.submit("alpha", "stocked-out", gpus=4)
        assert platform.wait_for_flavors("alpha", "stocked-out") == {flavor}
        pods = platform.wait_for_running("alpha", "stocked-out")
        assert pools_of(cluster, pods) == {platform.own("l4-on-demand")}

        platform.submit("alpha", "later", gpus=4)
        assert platform.wait_for_flavors("alpha", "later") == {flavor}, "the queue has quota for both pools, in one flavor"
        platform.add_nodes("l4-spot", 1)
        pods = platform.wait_for_running("alpha", "stocked-out", "later")
        assert pools_of(cluster, pods) == {platform.own("l4-on-demand"), platform.own("l4-spot")}
