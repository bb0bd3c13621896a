"""Objects as YAML that people read, change and submit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from snapshot_fixtures import assert_snapshot
from workload_plans import objects

from flexspot.capacity.workloads.kinds import FILL_IN, manifests_yaml, template_yaml

SNAPSHOTS = Path(__file__).parent / "snapshots"


@pytest.mark.parametrize(
    "stack,kind,fields",
    [
        ("local", "checkpointed-job", {}),
        ("prod-gke", "flex-start-job", {"pods": 2, "gpus": 8}),
        ("prod-eks", "checkpointed-job", {"pods": 2, "gpus": 8, "jobset": True}),
        ("dev-eks", "queued-job", {"pods": 3, "workload_class": "spot-low"}),
    ],
)
def test_rendered_manifests_are_the_reviewed_ones(stack: str, kind: str, fields: dict[str, Any]) -> None:
    assert_snapshot(manifests_yaml(objects(stack, kind, **fields)), SNAPSHOTS / f"{stack}.{kind}.yaml")


def test_documents_have_no_yaml_anchors() -> None:
    made = objects("prod-gke", "checkpointed-job", pods=2)
    text = manifests_yaml(made)

    assert "&id" not in text
    assert list(yaml.safe_load_all(text)) == list(made)


def test_a_template_has_the_same_objects_with_comments_on_fields_to_fill_in_and_derived_ones() -> None:
    made = objects("prod-gke", "checkpointed-job", command=["python", "train.py"])
    text = template_yaml(made)
    lines = text.splitlines()

    assert list(yaml.safe_load_all(text)) == list(made)
    marked = [lines[number + 1].strip().partition(":")[0] for number, line in enumerate(lines) if f"# {FILL_IN}" in line]
    assert marked == ["name", "image", "command"]
    derived = {lines[number + 1].strip().partition(":")[0] for number, line in enumerate(lines) if "# Derived: " in line}
    assert derived >= {"labels", "suspend", "podFailurePolicy", "tolerations", "terminationGracePeriodSeconds", "resources"}
