"""Plan, readers and rules go by the same figures of the clouds."""

from __future__ import annotations

import pytest

from capacity.catalog.capacity_type import CapacityType, facts_of
from capacity.catalog.workload_classes import SCALE_UP_CUTOFF
from policies.inventory.gke_nodes import notice_of
from policies.inventory.node_offer import EC2_NOTICE_SECONDS
from policies.pods.placement import SCALE_UP_CUT_OFF
from policies.rules.grace_exceeds_notice import RULE
from policies.values.field import Field


@pytest.mark.parametrize("cloud,parameter", [("gke", "gke-seconds"), ("eks", "ec2-seconds")])
def test_the_rule_counts_on_what_the_plan_counts_on(cloud: str, parameter: str) -> None:
    assert RULE.defaults().number(parameter) == facts_of(cloud)[CapacityType.SPOT].notice_seconds


def test_so_do_the_readers_of_pools() -> None:
    assert facts_of("eks")[CapacityType.SPOT].notice_seconds == EC2_NOTICE_SECONDS
    assert notice_of(Field({})) == facts_of("gke")[CapacityType.SPOT].notice_seconds


def test_so_do_settings_and_rules_with_the_priority_below_which_no_node_is_made() -> None:
    assert SCALE_UP_CUT_OFF == SCALE_UP_CUTOFF
