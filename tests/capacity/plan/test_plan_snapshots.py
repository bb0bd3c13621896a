"""Snapshots of the plans of the shipped stacks, which show the effects of changes of the catalog."""

from __future__ import annotations

from pathlib import Path

import pytest
from snapshot_fixtures import assert_snapshot, plan_text

from flexspot.capacity.plan.build import build_plan
from flexspot.capacity.settings.stack_file import read_stack_file

STACKS = Path(__file__).resolve().parents[3] / "stacks"
SNAPSHOTS = Path(__file__).resolve().parents[1] / "snapshots"


@pytest.mark.parametrize("stack", ["local", "dev-gke", "prod-gke", "dev-eks", "prod-eks"])
def test_the_plan_of_a_shipped_stack_matches_its_snapshot(stack: str) -> None:
    assert_snapshot(plan_text(build_plan(read_stack_file(STACKS / f"Pulumi.{stack}.yaml"))), SNAPSHOTS / f"{stack}.plan.yaml")


def test_every_shipped_stack_has_a_snapshot() -> None:
    stacks = {path.name.removeprefix("Pulumi.").removesuffix(".yaml") for path in STACKS.glob("Pulumi.*.yaml")}

    assert {path.name.removesuffix(".plan.yaml") for path in SNAPSHOTS.iterdir()} == stacks
