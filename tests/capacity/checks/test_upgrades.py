"""Checks of GKE's maintenance windows and exclusions against the stack's runs."""

from __future__ import annotations

from typing import Any

import pytest
from resolved_fixtures import reports

from flexspot.capacity.plan.checks.versions import exclusions_are_short_enough, upgrades_do_not_interrupt_runs

RESERVED = {
    "pools.0.capacity_type": "reserved",
    "pools.0.reservation": {"name": "acme"},
    "pools.0.zones": ["us-central1-a"],
    "pools.0.serves": ["training"],
    "classes": {"training": {"run_limit_hours": 160}},
}
WEEKLY = {"cluster.maintenance": {"days": ["sat"], "hours": 12}}
FOR_GOOD = {"name": "nodes", "scope": "no_minor_or_node_upgrades", "starts": "2026-12-01"}


@pytest.mark.parametrize(
    "changes,warned",
    [
        pytest.param({}, True, id="every day"),
        pytest.param(WEEKLY, False, id="once a week, and the run is shorter"),
        pytest.param(WEEKLY | {"classes": {"training": {"run_limit_hours": 169}}}, True, id="once a week, and the run is longer"),
        pytest.param({"classes": {"training": {"run_limit_hours": 24}}}, False, id="a run of a day"),
        pytest.param({"pools.0.hold_upgrades": True}, False, id="the pool is held"),
        pytest.param({"cluster.maintenance": {"exclusions": [FOR_GOOD]}}, False, id="nodes are held"),
        pytest.param({"cluster.maintenance": {"exclusions": [FOR_GOOD | {"ends": "2027-03-01"}]}}, True, id="nodes are held for a while"),
        pytest.param({"pools.0.capacity_type": "spot", "pools.0.reservation": None}, False, id="Spot goes at any time anyway"),
        pytest.param({"cluster.existing": "theirs"}, False, id="windows of an existing cluster"),
    ],
)
def test_a_run_that_must_meet_a_window_gets_a_warning(changes: dict[str, Any], warned: object) -> None:
    verdicts = ["warned: upgrade-within-a-run at cluster.maintenance"] if warned else []

    assert reports(upgrades_do_not_interrupt_runs, "gke", RESERVED | changes) == verdicts


@pytest.mark.parametrize(
    "exclusions,verdicts",
    [
        ([("2026-12-01", "2026-12-31")], []),
        ([("2026-12-01", "2027-01-01")], ["warned: exclusion-too-long at cluster.maintenance.exclusions.0"]),
        ([("2026-12-01", "2026-12-02")] * 4, ["warned: exclusion-too-long at cluster.maintenance.exclusions"]),
    ],
)
def test_exclusions_beyond_googles_limits_get_a_warning(exclusions: list[tuple[str, str]], verdicts: list[str]) -> None:
    written = [{"name": f"freeze-{at}", "starts": starts, "ends": ends} for at, (starts, ends) in enumerate(exclusions)]

    assert reports(exclusions_are_short_enough, "gke", {"cluster.maintenance": {"exclusions": written}}) == verdicts
