"""How long the plan's jobs may wait for their nodes."""

from __future__ import annotations

import pytest
from plan_settings import Settings, gke, plan_of, pool

from capacity.plan.build import IN_LINE
from capacity.plan.kueue_configuration import ONE_BOOT

ON_GKE = {"reservation": {"name": "bought"}}


@pytest.mark.parametrize("kind,more", [("spot", {}), ("reserved", ON_GKE), ("queued", {})])
def test_capacity_that_comes_within_a_boot_or_not_at_all_has_the_time_of_a_boot(kind: str, more: Settings) -> None:
    # A job on queued capacity is admitted when its nodes are there.
    assert plan_of(gke(pool("p", "a3-highgpu-8g", kind, 1, "training", **more))).pods_ready == ONE_BOOT


def test_a_place_in_the_line_for_flex_start_is_not_given_up_after_a_boot() -> None:
    flex = pool("flex", "a3-highgpu-8g", "flex-start", 1, "training")
    spot = pool("spot", "g2-standard-8", "spot", 1, "interactive")

    times = plan_of(gke(flex, spot)).pods_ready

    assert times == IN_LINE
    assert times.timeout_seconds > ONE_BOOT.timeout_seconds


def test_what_can_never_start_ends_within_about_a_day_either_way() -> None:
    for times in (ONE_BOOT, IN_LINE):
        waits = [min(1800, 60 * 2**number) for number in range(times.requeues)]

        assert (times.requeues + 1) * times.timeout_seconds + sum(waits) < 25 * 3600
