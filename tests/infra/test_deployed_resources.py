"""What the shipped stacks deploy is what was reviewed: type, name, parent and inputs of every resource, components left out."""

from __future__ import annotations

from pathlib import Path

import pytest
from program_declarations import listed
from snapshot_fixtures import assert_snapshot

pytestmark = pytest.mark.slow

SNAPSHOTS = Path(__file__).parent / "snapshots"


@pytest.mark.parametrize("stack", ["local", "dev-gke", "prod-gke", "dev-eks", "prod-eks"])
def test_what_a_stack_deploys_is_what_was_reviewed(stack: str) -> None:
    assert_snapshot(listed(stack), SNAPSHOTS / f"{stack}.resources.yaml")
