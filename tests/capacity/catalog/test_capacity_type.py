"""The shipped facts about capacity types, and what is refused in such files."""

from __future__ import annotations

import pytest

from capacity.catalog.capacity_type import (
    BlockEnd,
    CapacityType,
    CapacityTypeFacts,
    Origin,
    RunTimeSetting,
    facts_of,
)


def only_values(facts: CapacityTypeFacts) -> dict[str, bool | int | str | None]:
    return {each.option: each.only for each in facts.forbids}


def test_another_platform_is_refused_and_the_known_ones_named() -> None:
    with pytest.raises(ValueError, match=r"'local' has no capacity types of its own; those that have: gke, eks"):
        facts_of("local")


@pytest.mark.parametrize("platform", ["gke", "eks"])
def test_only_spot_is_interrupted_without_a_known_end(platform: str) -> None:
    assert [name for name, facts in facts_of(platform).items() if facts.notice_seconds is not None] == [CapacityType.SPOT]


@pytest.mark.parametrize("capacity_type", [CapacityType.FLEX_START, CapacityType.QUEUED])
@pytest.mark.parametrize(
    "option,only",
    [
        ("node_config.reservation_affinity.consume_reservation_type", "NO_RESERVATION"),
        ("autoscaling.location_policy", "ANY"),
        ("autoscaling.max_node_count", None),
        ("upgrade_settings.strategy", None),
    ],
)
def test_a_dws_pool_leaves_these_options_alone(capacity_type: CapacityType, option: str, only: str | None) -> None:
    values = only_values(facts_of("gke")[capacity_type])

    assert values[option] == only
    assert values["management.auto_repair"] is False


def test_the_run_time_of_queued_capacity_is_set_by_the_request_and_never_on_the_pool() -> None:
    queued = facts_of("gke")[CapacityType.QUEUED]

    assert queued.run_time_set_by is RunTimeSetting.PROVISIONING_REQUEST
    assert only_values(queued)["node_config.max_run_duration"] is None
    assert "node_config.max_run_duration" not in only_values(facts_of("gke")[CapacityType.FLEX_START])


def test_the_queued_label_is_the_only_one_that_a_gke_pool_must_declare_itself() -> None:
    to_declare = {
        name: facts.autoscaler_labels.keys() - facts_of("gke")[name].marks[Origin.NODE_POOL].labels.keys()
        for name, facts in facts_of("gke").items()
    }

    assert {name: keys for name, keys in to_declare.items() if keys} == {CapacityType.QUEUED: {"cloud.google.com/gke-queued"}}


def test_a_capacity_block_is_drained_ten_minutes_before_ec2_takes_it() -> None:
    reserved = facts_of("eks")[CapacityType.RESERVED]

    assert reserved.block_end == BlockEnd(drain_minutes_before_end=40, termination_minutes_before_end=30)
    assert reserved.ultraserver_block_end == BlockEnd(drain_minutes_before_end=70, termination_minutes_before_end=60)
