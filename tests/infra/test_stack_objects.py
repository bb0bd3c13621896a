"""Snapshots of the shipped stacks' resources, which show the resources that a change of the code affects."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from program_declarations import COMPONENTS, STACKS, as_shipped
from snapshot_fixtures import assert_snapshot

SNAPSHOTS = Path(__file__).with_name("snapshots")


def digest(inputs: dict[str, Any]) -> str:
    # The provider of the local stack refers to a kubeconfig in the checkout.
    written = json.dumps(inputs, sort_keys=True).replace(str(STACKS.parent), "")
    return hashlib.sha256(written.encode()).hexdigest()[:12]


def listed(stack: str) -> str:
    """Return a line per resource: type, name and a digest of its inputs. A component's own inputs are only for display."""
    lines = {name: "" if each.type.startswith(COMPONENTS) else digest(each.inputs) for name, each in as_shipped(stack).made.items()}
    return "".join(f"{name} {lines[name]}".rstrip() + "\n" for name in sorted(lines))


@pytest.mark.slow
@pytest.mark.parametrize("stack", ["local", "dev-gke", "prod-gke", "dev-eks", "prod-eks"])
def test_a_shipped_stack_declares_the_objects_of_its_snapshot(stack: str) -> None:
    assert_snapshot(listed(stack), SNAPSHOTS / f"{stack}.objects.txt")
