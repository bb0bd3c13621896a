"""Plan, readers and rules use the same figures of the clouds."""

from __future__ import annotations

import pytest

from flexspot.capacity.catalog.capacity_type import CapacityType, facts_of
from flexspot.capacity.catalog.workload_classes import SCALE_UP_CUTOFF
from flexspot.capacity.settings.network import WIDEST, too_wide
from flexspot.policies.inventory.cloud_resources import lets_in_everybody
from flexspot.policies.inventory.node_offer import EC2_NOTICE_SECONDS
from flexspot.policies.inventory.reading.gke import notice_of
from flexspot.policies.rules.interruptions import grace_exceeds_notice
from flexspot.policies.rules.priorities import SCALE_UP_CUT_OFF
from flexspot.policies.values.field import UNKNOWN, Field


@pytest.mark.parametrize("cloud,parameter", [("gke", "gke-seconds"), ("eks", "ec2-seconds")])
def test_rule_and_plan_use_the_same_notice(cloud: str, parameter: str) -> None:
    assert grace_exceeds_notice.defaults().number(parameter) == facts_of(cloud)[CapacityType.SPOT].notice_seconds


def test_readers_of_pools_and_plan_use_the_same_notice() -> None:
    assert facts_of("eks")[CapacityType.SPOT].notice_seconds == EC2_NOTICE_SECONDS
    assert notice_of(Field({})) == facts_of("gke")[CapacityType.SPOT].notice_seconds


def test_settings_and_rules_use_the_same_priority_for_the_scale_up_cutoff() -> None:
    assert SCALE_UP_CUT_OFF == SCALE_UP_CUTOFF


@pytest.mark.parametrize("prefix", range(33))
def test_a_rule_and_the_settings_of_a_stack_call_the_same_ranges_too_wide(prefix: int) -> None:
    written = f"0.0.0.0/{prefix}"

    assert lets_in_everybody(Field(written)) is too_wide([written]) is (prefix < WIDEST)


@pytest.mark.parametrize(
    "written,answer", [("::/0", True), ("2000::/3", True), ("2001:db8::/32", False), ("office", False), (UNKNOWN, UNKNOWN)]
)
def test_other_ranges(written: object, answer: object) -> None:
    assert lets_in_everybody(Field(written)) is answer
