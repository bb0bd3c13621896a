from __future__ import annotations

from flexspot_runtime.checkpointer import surplus
from flexspot_runtime.names import group_name
from hypothesis import given
from hypothesis import strategies as st

groups = st.lists(st.builds(group_name, st.integers(0, 20), st.sampled_from(["abc", "def"]), st.integers(1, 9)), unique=True)


@given(groups=groups, chosen=st.sets(st.integers(0, 30)), keep=st.integers(2, 5))
def test_the_newest_good_ones_always_stay(groups: list[str], chosen: set[int], keep: int) -> None:
    good = {group for index, group in enumerate(groups) if index in chosen}
    gone = surplus(groups, good, keep)

    assert not set(sorted(good, reverse=True)[:keep]) & set(gone)


@given(groups=groups, keep=st.integers(2, 5))
def test_when_all_are_good_at_least_as_many_stay_as_are_kept(groups: list[str], keep: int) -> None:
    gone = surplus(groups, groups, keep)

    assert len(groups) - len(gone) >= min(keep, len(groups))


@given(groups=groups, keep=st.integers(2, 5))
def test_while_too_few_are_known_to_be_good_nothing_goes(groups: list[str], keep: int) -> None:
    assert surplus(groups, groups[: keep - 1], keep) == []
