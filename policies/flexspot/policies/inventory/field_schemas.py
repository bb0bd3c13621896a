"""The fields of Kubernetes objects, as data in fields.json.

`python -m flexspot.policies.inventory.field_schemas CRD...` writes the file from definitions and from the Kubernetes client's models.
"""

from __future__ import annotations

import json
import re
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml

FILE = Path(__file__).parent / "fields.json"

KINDS, TYPES = "kinds", "types"
"""The two parts of the file: the type of each `apiVersion/kind`, and the fields of each type.

A type is a name of TYPES, an object of fields with their types, or null for arbitrary content. A list has the type of its elements.
"""


@cache
def fields() -> dict[str, Any]:
    """Return the content of the file, which is read on first use."""
    return json.loads(FILE.read_text(encoding="utf-8"))


_MODELS = {
    "v1/LimitRange": "V1LimitRange",
    "v1/Namespace": "V1Namespace",
    "v1/PersistentVolumeClaim": "V1PersistentVolumeClaim",
    "v1/Pod": "V1Pod",
    "v1/PodTemplate": "V1PodTemplate",
    "v1/ReplicationController": "V1ReplicationController",
    "v1/ResourceQuota": "V1ResourceQuota",
    "apps/v1/DaemonSet": "V1DaemonSet",
    "apps/v1/Deployment": "V1Deployment",
    "apps/v1/ReplicaSet": "V1ReplicaSet",
    "apps/v1/StatefulSet": "V1StatefulSet",
    "batch/v1/CronJob": "V1CronJob",
    "batch/v1/Job": "V1Job",
    "policy/v1/PodDisruptionBudget": "V1PodDisruptionBudget",
    "scheduling.k8s.io/v1/PriorityClass": "V1PriorityClass",
}

_METADATA, _JOB = "V1ObjectMeta", "V1JobSpec"

_LEFT_OUT = frozenset({"Workload"})
"""Kinds that people do not write, and whose definitions repeat whole pod specs."""

_MARKS = ({"backoffLimit", "template"}, {"containers", "initContainers"})
"""Fields that identify the spec of a Job and of a pod inside a definition that repeats them."""


def collected(definitions: list[Path]) -> dict[str, Any]:
    """Return the file's content: the models' kinds, and those of the definitions in all their versions."""
    types: dict[str, Any] = {}
    kinds: dict[str, Any] = {name: _of_model(model, types) for name, model in _MODELS.items()}
    for path in definitions:
        documents: list[dict[str, Any] | None] = list(yaml.load_all(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader))
        for document in documents:
            if document and document["kind"] == "CustomResourceDefinition":
                kinds |= _of_definition(document["spec"])
    return {KINDS: dict(sorted(kinds.items())), TYPES: dict(sorted(types.items()))}


def _of_model(name: str, types: dict[str, Any]) -> str:
    if name not in types:
        model = getattr(import_module("kubernetes.client.models"), name)
        types[name] = {}
        types[name] |= {
            model.attribute_map[attribute]: _of_type(written, types) for attribute, written in sorted(model.openapi_types.items())
        }
    return name


def _of_type(written: str, types: dict[str, Any]) -> str | None:
    listed = re.fullmatch(r"[Ll]ist\[(.+)\]", written)
    inner = listed[1] if listed else written
    return _of_model(inner, types) if hasattr(import_module("kubernetes.client.models"), inner) else None


def _of_definition(spec: dict[str, Any]) -> dict[str, Any]:
    group, kind = spec["group"], spec["names"]["kind"]
    if kind in _LEFT_OUT:
        return {}
    found: dict[str, Any] = {}
    for version in spec["versions"]:
        tree = _of_schema(version["schema"]["openAPIV3Schema"])
        found[f"{group}/{version['name']}/{kind}"] = {**tree, "metadata": _METADATA}
    return found


def _of_schema(schema: dict[str, Any]) -> Any:
    if schema.get("type") == "array":
        return _of_schema(schema.get("items", {}))
    properties = schema.get("properties")
    if not properties or schema.get("x-kubernetes-preserve-unknown-fields"):
        return None
    if _MARKS[0] <= properties.keys():
        return _JOB
    if _MARKS[1] <= properties.keys():
        return "V1PodSpec"
    return {name: _of_schema(each) for name, each in sorted(properties.items())}


def main() -> None:
    """Write the file."""
    FILE.write_text(json.dumps(collected([Path(each) for each in sys.argv[1:]]), separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
