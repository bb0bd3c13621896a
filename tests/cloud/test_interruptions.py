"""A few interruptions at fixed random moments. `python tests/cloud/interruptions.py` tries as many as requested."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from interruptions import InterruptibleStack, Interruptions

from flexspot.infra.deployment.prerequisites import plugin_path

if TYPE_CHECKING:
    from cloud_world import CloudWorld

    from flexspot.lab.tools.build import Tools

pytestmark = [
    pytest.mark.lab,
    pytest.mark.engine,
    pytest.mark.timeout(900),
    pytest.mark.nightly(tested_by="test_an_interrupted_run_is_finished_by_the_next"),
]


def test_the_run_after_an_interrupted_one_ends_well(bare_world: CloudWorld, tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    # The official Kubernetes provider where it is installed, else the stand-in.
    monkeypatch.setenv("PULUMI_HOME", os.environ["FLEXSPOT_PERSONS_PULUMI_HOME"])
    stack = InterruptibleStack(bare_world, tools, "local", plugin=plugin_path("kubernetes"))
    try:
        # Few, and no cloud stack, of which one undisturbed run takes minutes.
        trials = list(Interruptions(stack, seed=1).trials(2))
    finally:
        stack.close()

    assert [trial.line for trial in trials if trial.problems] == []
    assert len(trials) == 2
