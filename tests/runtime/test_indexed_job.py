from __future__ import annotations

import pytest
from flexspot_runtime import completion_index, share_of
from hypothesis import given
from hypothesis import strategies as st


@given(items=st.lists(st.integers()), completions=st.integers(1, 20))
def test_every_item_belongs_to_one_index(items: list[int], completions: int) -> None:
    shares = [share_of(items, index, completions) for index in range(completions)]

    assert sorted(item for share in shares for item in share) == sorted(items)
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_the_index_is_the_one_that_the_job_controller_gave() -> None:
    assert completion_index({"JOB_COMPLETION_INDEX": "7"}) == 7
    assert completion_index({}) == 0


def test_an_invalid_index_is_rejected() -> None:
    with pytest.raises(ValueError, match="JOB_COMPLETION_INDEX is '-1'; it must be a whole number from 0"):
        completion_index({"JOB_COMPLETION_INDEX": "-1"})


def test_an_index_beyond_the_completions_is_refused() -> None:
    with pytest.raises(ValueError, match="index 3 is outside of 3 completions"):
        share_of([1, 2, 3], 3, 3)
