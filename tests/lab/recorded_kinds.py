"""What a control plane says of the kinds in the recordings, kept in a file so that pure tests need none."""

from __future__ import annotations

import gzip
import json
from functools import cache
from typing import TYPE_CHECKING, Any

from recorded_calls import FOLDER, SCENARIOS, lines

from lab.providers.values import is_list, is_object

if TYPE_CHECKING:
    from lab.providers.objects import Kinds, Schemas

FILE = FOLDER / "kinds.json.gz"

_KEPT = {"$ref", "additionalProperties", "allOf", "items", "properties", "required", "type", "x-kubernetes-group-version-kind"}
"""What of a schema the provider reads."""


class RecordedKinds:
    """The kinds in the file, for lab.providers.objects."""

    def __init__(self) -> None:
        self._content = read_file()

    def schemas(self, api_version: str) -> Schemas:
        found: Schemas = self._content["schemas"].get(api_version, {})
        return found

    def is_namespaced(self, api_version: str, kind: str) -> bool:
        return f"{api_version}/{kind}" not in self._content["clusterWide"]


@cache
def read_file() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(gzip.decompress(FILE.read_bytes()))
    return content


def described(kinds: Kinds) -> dict[str, Any]:
    """The file's content, from a control plane that has all the kinds."""
    used = sorted({(each.request["news"]["apiVersion"], each.request["news"]["kind"]) for each in _checks()})
    schemas: dict[str, Schemas] = {}
    for api_version, kind in used:
        whole = kinds.schemas(api_version)
        group, _, version = api_version.rpartition("/")
        own = {"group": group, "version": version, "kind": kind}
        roots = [name for name, schema in whole.items() if own in schema.get("x-kubernetes-group-version-kind", [])]
        found = schemas.setdefault(api_version, {})
        for root in roots:
            _collect(root, whole, found)
    wide = [f"{api_version}/{kind}" for api_version, kind in used if not kinds.is_namespaced(api_version, kind)]
    return {"clusterWide": wide, "schemas": {api_version: found for api_version, found in schemas.items() if found}}


def _checks() -> Any:
    return (each for scenario in SCENARIOS for each in lines(scenario) if each.method == "Check")


def _collect(name: str, whole: Schemas, found: Schemas) -> None:
    if name in found:
        return
    found[name] = _reduced(whole[name])
    for reference in _references(found[name]):
        _collect(reference.rpartition("/")[2], whole, found)


def _reduced(schema: Any) -> Any:
    if not is_object(schema) or "kind" in schema:
        return schema
    kept: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "properties":
            kept[key] = {name: _reduced(each) for name, each in value.items()}
        elif key in _KEPT:
            kept[key] = [_reduced(each) for each in value] if is_list(value) else _reduced(value)
    return kept


def _references(value: Any) -> list[str]:
    if is_object(value):
        own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
        return own + [each for inner in value.values() for each in _references(inner)]
    return [each for inner in value for each in _references(inner)] if is_list(value) else []
