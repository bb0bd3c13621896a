from __future__ import annotations

import pytest
from flexspot_runtime import Group


def test_one_process_agrees_with_itself() -> None:
    assert Group().agree(2) == 2
    assert Group().text_of_rank_0("abc") == "abc"


def test_several_processes_must_have_a_way_to_agree() -> None:
    with pytest.raises(ValueError, match=r"give `largest` .* and `broadcast`"):
        Group(rank=0, world_size=2)


@pytest.mark.parametrize("rank", [-1, 2])
def test_a_rank_is_in_its_group(rank: int) -> None:
    with pytest.raises(ValueError, match="outside of a group of 2"):
        Group(rank, 2, abs, str)
