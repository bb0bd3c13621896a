"""The cohort tree, and whether there is anybody to borrow from."""

from __future__ import annotations

from typing import Any

import pytest
from resolved_fixtures import told

from capacity.plan.checks.shares import borrowing_has_somebody_to_borrow_from, parents_exist_and_end_at_the_root, what_is_stopped_is_a_queue


@pytest.mark.parametrize("names", ["abc", "bca", "cba"])
def test_a_ring_of_cohorts_is_told_once_wherever_it_is_written_and_whoever_is_inside(names: str) -> None:
    ring: dict[str, str] = dict(zip("abc", "bca", strict=True))
    cohorts = [{"name": "inside", "parent": "c"}, *({"name": each, "parent": ring[each]} for each in names)]

    assert told(parents_exist_and_end_at_the_root, "local", {"cohorts": cohorts}) == [
        f"refused: cohort-cycle at cohorts.{1 + names.index('a')}.parent"
    ]


def test_two_rings_are_two_mistakes() -> None:
    rings = [{"name": name, "parent": parent} for name, parent in ("ab", "ba", "cd", "dc")]

    assert told(parents_exist_and_end_at_the_root, "local", {"cohorts": rings}) == [
        "refused: cohort-cycle at cohorts.0.parent",
        "refused: cohort-cycle at cohorts.2.parent",
    ]


@pytest.mark.parametrize("field,written", [("weight", 2), ("lending_limits", {"l4-spot": 1}), ("borrowing_limits", {"l4-spot": 1})])
def test_a_team_alone_in_its_tree_has_nobody_to_share_with(field: str, written: object) -> None:
    alone: dict[str, Any] = {"teams.0.shares": {"l4-spot": 4}, f"teams.0.{field}": written}

    assert told(borrowing_has_somebody_to_borrow_from, "local", alone) == [f"warned: alone-in-cohort at teams.0.{field}"]
    with_another = alone | {"teams.1": {"name": "blue", "shares": {"l4-spot": 0}}}
    assert told(borrowing_has_somebody_to_borrow_from, "local", with_another) == []


def test_a_team_alone_may_borrow_what_nobody_owns() -> None:
    assert told(borrowing_has_somebody_to_borrow_from, "local", {"teams.0.borrowing_limits": {"l4-spot": 1}}) == []


def test_only_a_team_with_a_queue_is_stopped() -> None:
    assert told(what_is_stopped_is_a_queue, "local", {"teams.0.stop": "drain"}) == []
    assert told(what_is_stopped_is_a_queue, "local", {"teams.0.shares": {}}) == []
    assert told(what_is_stopped_is_a_queue, "local", {"teams.0.stop": "drain", "teams.0.shares": {}}) == [
        "warned: stop-without-queue at teams.0.stop"
    ]
