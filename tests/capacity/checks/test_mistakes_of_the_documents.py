"""The mistakes of the documents that the platform follows, written as settings: each is told before anything exists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from resolved_fixtures import plan_of, pool
from settings_documents import LEFT_OUT

from capacity.values.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from capacity.values.errors import SettingsProblem


def refused(cloud: str, changes: Mapping[str, Any]) -> tuple[SettingsProblem, ...]:
    with pytest.raises(SettingsError) as error:
        plan_of(cloud, changes)
    return error.value.problems


def test_one_pool_does_not_hold_a100_of_two_sizes_and_h100_together() -> None:
    # One label called all of them NVIDIA-A100-SXM4-80GB; only p4de has that GPU.
    forty, h100 = refused("eks", {"pools.0.machine": "p4de.24xlarge", "pools.0.alternatives": ["p4d.24xlarge", "p5.48xlarge"]})

    assert (forty.rule, forty.path, h100.rule, h100.path) == (
        "mixed-gpus-in-pool",
        "pools.0.alternatives.0",
        "mixed-gpus-in-pool",
        "pools.0.alternatives.1",
    )
    assert forty.problem == "has 8 x a100-40gb, but p4de.24xlarge has 8 x a100-80gb"
    assert h100.problem == "has 8 x h100-80gb, but p4de.24xlarge has 8 x a100-80gb"


def test_a_share_of_a_t4_pool_that_no_pool_defines_is_refused_before_work_hangs() -> None:
    other_gpus = {"pools.0": pool("g5-spot", "g5.xlarge", "spot", "training"), "teams.0.shares": {"g5-spot": 2, "t4-spot": 2}}

    [share] = refused("eks", other_gpus)

    assert (share.rule, share.path) == ("share-of-no-queued-pool", "teams.0.shares.t4-spot")
    assert share.allowed == "did you mean g5-spot? allowed: g5-spot"


@pytest.mark.parametrize("machine,reach", [("p4d.24xlarge", 24), ("p5.48xlarge", 16)])
def test_vcpu_and_memory_that_end_a_pool_of_64_gpus_early_say_where(machine: str, reach: int) -> None:
    caps: dict[str, Any] = {"max_nodes": LEFT_OUT, "max_vcpu": 512, "max_memory_gib": 4096, "max_gpus": 64, "machine": machine}

    [limit] = refused("eks", {f"pools.0.{name}": written for name, written in caps.items()})

    assert (limit.rule, limit.path, limit.value) == ("gpu-limit-unreachable", "pools.0", "max_vcpu: 512, max_memory_gib: 4096")
    assert limit.problem == f"with {machine} the pool stops at {reach} GPUs and never reaches its ceiling of 64"


def test_sharing_among_teams_that_are_one_queue_has_no_effect_and_is_warned_of() -> None:
    alone: dict[str, Any] = {"teams.0": {"name": "all-teams", "shares": {"l4-spot": 4}, "weight": 3, "lending_limits": {"l4-spot": 2}}}
    alone["control_plane"] = {"access": "public_cidrs", "cidrs": ["203.0.113.0/24"]}

    warnings = plan_of("eks", alone).warnings

    assert [(each.rule, each.path) for each in warnings] == [
        ("alone-in-cohort", "teams.0.lending_limits"),
        ("alone-in-cohort", "teams.0.weight"),
    ]
    assert all("team all-teams is alone in cohort platform" in each.text for each in warnings)


def test_two_l4_on_a_machine_that_has_one_are_refused_with_the_machine_that_has_two() -> None:
    [count] = refused("gke", {"pools.0.machine": "g2-standard-8", "pools.0.gpus_per_node": 2})

    assert (count.rule, count.path, count.value) == ("machine-without-that-many-gpus", "pools.0.gpus_per_node", "2")
    assert count.problem == "g2-standard-8 has 1 nvidia-l4"
    assert count.allowed == "g2-standard-24 has 2"
