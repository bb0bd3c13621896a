"""Plan, readers and rule go by one figure for the notice of Spot capacity."""

from __future__ import annotations

import pytest

from capacity.catalog.capacity_type import CapacityType, facts_of
from policies.inventory.gke_nodes import notice_of
from policies.inventory.node_offer import EC2_NOTICE_SECONDS
from policies.rules.grace_exceeds_notice import RULE
from policies.values.field import Field


@pytest.mark.parametrize("cloud,parameter", [("gke", "gke-seconds"), ("eks", "ec2-seconds")])
def test_the_rule_counts_on_what_the_plan_counts_on(cloud: str, parameter: str) -> None:
    assert RULE.defaults().number(parameter) == facts_of(cloud)[CapacityType.SPOT].notice_seconds


def test_so_do_the_readers_of_pools() -> None:
    assert facts_of("eks")[CapacityType.SPOT].notice_seconds == EC2_NOTICE_SECONDS
    assert notice_of(Field({})) == facts_of("gke")[CapacityType.SPOT].notice_seconds
