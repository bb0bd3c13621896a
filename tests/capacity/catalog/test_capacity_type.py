"""The shipped facts about capacity types, and what is refused in such files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from capacity.catalog.capacity_type import (
    BlockEnd,
    CapacityType,
    CapacityTypeFacts,
    CapacityTypeFile,
    CloudQuota,
    CloudTaint,
    Origin,
    RunTimeSetting,
    facts_of,
    gpu_marks_of,
)
from capacity.catalog.data_files import DataFileError, read_records

if TYPE_CHECKING:
    from pathlib import Path

MINUTE, DAY = 60, 86_400

TYPES = """
platform: gke
sources:
  docs: {citation: the vendor's documentation, as_of: 2026-11-21, verified: true}
gpu_marks:
  node-pool: {labels: {gke-accelerator: null}, source: docs}
types:
  spot:
    requested_by: node_config.spot
    notice_seconds: 15
    max_notice_seconds: 105
    notice_raised_by: kubelet_config
    excludes: [flex-start]
    quota: preemptible
    autoscaler_labels: {gke-provisioning: spot}
    marks: {node-pool: {labels: {gke-spot: "true"}, source: docs}}
    source: docs
  flex-start:
    requested_by: node_config.flex_start
    min_run_seconds: 600
    max_run_seconds: 604800
    run_time_set_by: node_config.max_run_duration
    excludes: [spot]
    quota: preemptible
    autoscaler_labels: {gke-provisioning: flex-start}
    marks: {}
    source: docs
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "gke.yaml"


def only_values(facts: CapacityTypeFacts) -> dict[str, bool | int | str | None]:
    return {each.option: each.only for each in facts.forbids}


def test_gke_has_every_capacity_type() -> None:
    assert set(facts_of("gke")) == set(CapacityType)


def test_eks_has_no_flex_start_and_no_queued() -> None:
    assert set(facts_of("eks")) == {CapacityType.RESERVED, CapacityType.SPOT, CapacityType.ON_DEMAND}


def test_another_platform_is_refused_and_the_known_ones_named() -> None:
    with pytest.raises(ValueError, match=r"'local' has no capacity types of its own; those that have: gke, eks"):
        facts_of("local")


def test_gke_spot_gives_pods_15_seconds_and_105_at_most() -> None:
    spot = facts_of("gke")[CapacityType.SPOT]

    assert (spot.notice_seconds, spot.max_notice_seconds) == (15, 105)
    assert "shutdown_grace_period_seconds: 120" in (spot.notice_raised_by or "")


def test_aws_spot_gives_pods_90_seconds_that_nothing_raises() -> None:
    spot = facts_of("eks")[CapacityType.SPOT]

    assert (spot.notice_seconds, spot.max_notice_seconds, spot.notice_raised_by) == (90, 90, None)


@pytest.mark.parametrize("platform", ["gke", "eks"])
def test_only_spot_is_interrupted_without_a_known_end(platform: str) -> None:
    assert [name for name, facts in facts_of(platform).items() if facts.notice_seconds is not None] == [CapacityType.SPOT]


def test_flex_start_runs_from_ten_minutes_to_seven_days_as_the_pool_says() -> None:
    flex_start = facts_of("gke")[CapacityType.FLEX_START]

    assert (flex_start.min_run_seconds, flex_start.max_run_seconds) == (10 * MINUTE, 7 * DAY)
    assert flex_start.run_time_set_by is RunTimeSetting.NODE_POOL


def test_flex_start_is_no_spot_but_has_the_quota_of_spot() -> None:
    flex_start = facts_of("gke")[CapacityType.FLEX_START]

    assert CapacityType.SPOT in flex_start.excludes
    assert only_values(flex_start)["node_config.spot"] is False
    assert flex_start.quota is CloudQuota.PREEMPTIBLE


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


def test_gke_taints_spot_nodes_of_auto_provisioning_but_not_those_of_a_declared_pool() -> None:
    spot = facts_of("gke")[CapacityType.SPOT].marks

    assert spot[Origin.NODE_POOL].taints == ()
    assert spot[Origin.AUTO_PROVISIONING].taints == (CloudTaint(key="cloud.google.com/gke-spot", value="true"),)
    assert spot[Origin.NODE_POOL].labels == spot[Origin.AUTO_PROVISIONING].labels


def test_spot_nodes_of_a_compute_class_have_the_taint_of_the_class_alone() -> None:
    taints = facts_of("gke")[CapacityType.SPOT].marks[Origin.COMPUTE_CLASS].taints

    assert taints == (CloudTaint(key="cloud.google.com/compute-class", value=None),)


def test_queued_nodes_are_tainted_whoever_makes_them() -> None:
    for each in facts_of("gke")[CapacityType.QUEUED].marks.values():
        assert each.taints == (CloudTaint(key="cloud.google.com/gke-queued", value="true"),)


def test_gke_taints_gpu_nodes_and_karpenter_does_not() -> None:
    for each in gpu_marks_of("gke").values():
        assert each.taints == (CloudTaint(key="nvidia.com/gpu", value="present"),)
    assert gpu_marks_of("eks")[Origin.KARPENTER].taints == ()


def test_a_declared_pool_cannot_count_on_gkes_gpu_taint() -> None:
    conditional = [origin for origin, each in gpu_marks_of("gke").items() if each.taints_if is not None]

    assert conditional == [Origin.NODE_POOL]


@pytest.mark.parametrize("capacity_type", facts_of("eks"))
def test_karpenter_labels_its_nodes_with_the_capacity_type(capacity_type: CapacityType) -> None:
    facts = facts_of("eks")[capacity_type]

    assert facts.autoscaler_labels == {"karpenter.sh/capacity-type": capacity_type.value}
    assert facts.autoscaler_labels.items() <= facts_of("eks")[capacity_type].marks[Origin.KARPENTER].labels.items()


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


def test_a_sound_file_is_read(file: Path) -> None:
    file.write_text(TYPES)

    assert set(read_records(file, CapacityTypeFile).types) == {CapacityType.SPOT, CapacityType.FLEX_START}


@pytest.mark.parametrize(
    "line,broken,problem",
    [
        ("marks: {}\n    source: docs", "marks: {}\n    source: rumour", "flex-start: source 'rumour' is not one of docs"),
        ('"true"}, source: docs', '"true"}, source: rumour', r"spot\.marks\.node-pool: source 'rumour'"),
        ("null}, source: docs", "null}, source: rumour", r"gpu_marks\.node-pool: source 'rumour'"),
        ("excludes: [spot]", "excludes: []", "both ways; only one way: spot excludes flex-start"),
        ("excludes: [spot]", "excludes: [spot, queued]", "only one way: flex-start excludes queued"),
        ("marks: {}", "marks: {autopilot: {labels: {}, source: docs}}", r"types\.flex-start\.marks\.autopilot"),
        ("notice_seconds: 15", "notice_seconds: 106", r"types\.spot: .*notice_seconds 106 must be at most max_notice_seconds 105"),
        ("    notice_seconds: 15\n", "", r"types\.spot: .*notice_seconds None must be"),
        ("    notice_raised_by: kubelet_config\n", "", r"types\.spot: .*notice_raised_by is given if and only if"),
        ("min_run_seconds: 600", "min_run_seconds: 604801", r"types\.flex-start: .*min_run_seconds 604801 must be at most max_run_seconds"),
        ("    run_time_set_by: node_config.max_run_duration\n", "", r"types\.flex-start: .*with run_time_set_by, all or none"),
        ("quota: preemptible", "quota: free", r"types\.spot\.quota: Input should be 'on-demand'"),
        ("platform: gke", "platform: aks", "platform: Input should be 'gke' or 'eks'"),
        ("autoscaler_labels: {gke-provisioning: spot}", "autoscaler_labels: {}", r"types\.spot\.autoscaler_labels: Dictionary should have"),
    ],
)
def test_a_broken_row_is_named(line: str, broken: str, problem: str, file: Path) -> None:
    assert line in TYPES
    file.write_text(TYPES.replace(line, broken, 1))

    with pytest.raises(DataFileError, match=problem):
        read_records(file, CapacityTypeFile)
