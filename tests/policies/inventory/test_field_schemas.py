"""The fields of kinds, collected from definitions and models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from policies.inventory import field_schemas
from policies.inventory.field_schemas import KINDS, TYPES, fields

if TYPE_CHECKING:
    from collections.abc import Iterator

ASSETS = Path(__file__).resolve().parents[3] / ".tools" / "assets"
FOLDERS = ("kueue", "karpenter", "karpenter-aws")


def names(tree: Any) -> Iterator[str]:
    if isinstance(tree, str):
        yield tree
    for each in tree.values() if isinstance(tree, dict) else ():
        yield from names(each)


def test_every_type_that_is_named_is_there() -> None:
    written = fields()

    assert {name for part in (KINDS, TYPES) for name in names(written[part])} <= written[TYPES].keys()


@pytest.mark.parametrize(
    "kind,path,allowed",
    [
        ("kueue.x-k8s.io/v1beta2/ClusterQueue", ["spec"], "cohortName"),
        ("kueue.x-k8s.io/v1beta1/ClusterQueue", ["spec"], "cohort"),
        ("karpenter.sh/v1/NodePool", ["spec", "template", "spec"], "expireAfter"),
        ("jobset.x-k8s.io/v1alpha2/JobSet", ["spec", "replicatedJobs"], "template"),
    ],
)
def test_the_fields_of_a_definition_are_there_in_each_version(kind: str, path: list[str], allowed: str) -> None:
    tree = fields()[KINDS][kind]
    for step in path:
        tree = tree[step]

    assert allowed in tree


def test_lists_are_as_their_elements_and_pods_are_written_once() -> None:
    assert fields()[TYPES]["V1PodSpec"]["containers"] == "V1Container"
    assert fields()[KINDS]["jobset.x-k8s.io/v1alpha2/JobSet"]["spec"]["replicatedJobs"]["template"]["spec"] == "V1JobSpec"


@pytest.mark.engine
def test_the_file_is_what_the_pinned_definitions_give() -> None:
    """When this fails: `python -m policies.inventory.field_schemas` with these definitions and JobSet's."""
    found = field_schemas.collected([path for folder in FOLDERS for path in sorted((ASSETS / folder / "crds").glob("*.yaml"))])

    written = fields()
    assert {kind: written[KINDS].get(kind) for kind in found[KINDS]} == found[KINDS]
    assert written[TYPES] == found[TYPES]


@pytest.mark.slow
def test_collecting_writes_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    definition = tmp_path / "definition.yaml"
    properties = {
        "spec": {"type": "object", "properties": {"any": {"type": "object"}, "of": {"type": "array", "items": {"type": "string"}}}}
    }
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"metadata": {}, **properties}}}
    spec = {"group": "example.com", "names": {"kind": "Thing"}, "versions": [{"name": "v1", "schema": schema}]}
    definition.write_text(json.dumps({"kind": "CustomResourceDefinition", "spec": spec}))
    target, shipped = tmp_path / "fields.json", field_schemas.FILE
    monkeypatch.setattr(field_schemas, "FILE", target)
    monkeypatch.setattr("sys.argv", ["collect", str(definition)])

    field_schemas.main()

    assert json.loads(target.read_text())[KINDS]["example.com/v1/Thing"] == {"metadata": "V1ObjectMeta", "spec": {"any": None, "of": None}}
    assert target != shipped
