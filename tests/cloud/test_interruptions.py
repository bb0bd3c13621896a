"""A few interruptions at random moments, always the same ones; `python tests/cloud/interruptions.py` tries as many as one likes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from interruption_ground import InterruptionGround, Wish
from interruptions import Interruptions

if TYPE_CHECKING:
    from lab.tools.build import Tools

pytestmark = [
    pytest.mark.lab,
    pytest.mark.engine,
    pytest.mark.timeout(900),
    pytest.mark.nightly(held_by="test_an_interrupted_run_is_finished_by_the_next"),
]

TRIALS = {"local": 2}
"""Few, and no cloud stack: measuring one takes minutes. `python tests/cloud/interruptions.py` does as many as one likes, of any stack."""


@pytest.mark.parametrize("stack", TRIALS)
def test_the_run_after_an_interrupted_one_ends_well(
    stack: str, tools: Tools, tmp_path_factory: pytest.TempPathFactory, credential_addresses: dict[str, str]
) -> None:
    folder = tmp_path_factory.mktemp("interruptions") / "world"
    ground = InterruptionGround(folder, tools, credential_addresses["google"], Wish(stack, small=True))
    try:
        ground.measure()
        trials = list(Interruptions(ground, seed=1).trials(TRIALS[stack]))
    finally:
        ground.close()

    assert [trial.line for trial in trials if trial.problems] == []
    assert len(trials) == TRIALS[stack]
