"""Names of Karpenter's resources in AWS fit for every cluster name."""

from __future__ import annotations

import re

import pytest
from karpenter_args import LONG_NAME

from flexspot.components.cloud_names import controller_policy_name, controller_role_name, node_role_name, queue_name, rule_name


def test_short_names_are_those_that_karpenters_own_template_uses() -> None:
    assert node_role_name("training") == "KarpenterNodeRole-training"
    assert controller_policy_name("NodeLifecycle", "training") == "KarpenterControllerNodeLifecyclePolicy-training"
    assert queue_name("training") == "training"


@pytest.mark.parametrize("cluster", ["a", "training", "Prod_EU-1", LONG_NAME, "c" * 60 + "-" * 40])
def test_aws_accepts_each_name(cluster: str) -> None:
    names = {
        node_role_name(cluster): 64,
        controller_role_name(cluster): 64,
        controller_policy_name("ResourceDiscovery", cluster): 128,
        queue_name(cluster): 80,
        rule_name(cluster, "capacity-reservation-interruption"): 64,
    }

    assert len(names) == 5
    assert {name for name, limit in names.items() if not re.fullmatch(rf"[A-Za-z0-9_-]{{1,{limit}}}", name)} == set()


def test_two_clusters_and_two_events_with_long_names_have_different_names() -> None:
    one, other = LONG_NAME[:-1] + "1", LONG_NAME[:-1] + "2"

    assert node_role_name(one) != node_role_name(other)
    assert queue_name(one) != queue_name(other)
    assert rule_name(one, "rebalance") != rule_name(one, "spot-interruption")
