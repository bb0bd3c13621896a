"""What Google's own descriptions of its APIs say against the requests by which a program's resources would be made.

The discovery documents that google-api-python-client brings know each field, its type and its enum; no ranges, no texts' forms, and
nothing of what only the service refuses.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from flexspot.lab.providers.values import is_list, is_object

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from program_declarations import Declared

    Schema = dict[str, Any]
    Problems = Iterator[str]


@dataclass(frozen=True)
class Request:
    """An entry of google_requests.yaml."""

    apis: list[str]
    schema: str
    moved: dict[str, str] = field(default_factory=dict[str, str])
    own: dict[str, str] = field(default_factory=dict[str, str])


@cache
def requests() -> dict[str, Request]:
    """How each type of resource is asked for, by Pulumi's token."""
    content = yaml.safe_load(Path(__file__).with_name("google_requests.yaml").read_text(encoding="utf-8"))
    return {token: Request(**each) for token, each in content["resources"].items()}


@cache
def document(api: str) -> dict[str, Any]:
    """A discovery document, such as that of container.v1, with its `revision`."""
    spec = find_spec("googleapiclient")
    assert spec is not None, "google-api-python-client is not installed: run `make setup`"
    assert spec.submodule_search_locations is not None
    folder = Path(spec.submodule_search_locations[0]) / "discovery_cache" / "documents"
    return json.loads((folder / f"{api}.json").read_text(encoding="utf-8"))


def refused_requests(made: Iterable[Declared]) -> list[str]:
    """What the documents refuse of the Google resources among these, each with its resource's name."""
    return [f"{each.name}: {problem}" for each in made if each.type.startswith("gcp:") for problem in refused_of(each.type, each.inputs)]


def refused_of(token: str, inputs: dict[str, Any]) -> list[str]:
    """What is refused of one resource: a field that an API does not have, a value of another type, a word that its enum has not."""
    request = requests().get(token)
    if request is None:
        return [f"{token}: nobody has said what it is asked for by"]
    return [f"{api} {each}" for api in request.apis for each in _Judge(request, document(api)["schemas"]).body(inputs)]


@dataclass(frozen=True)
class _Judge:
    request: Request
    schemas: dict[str, Schema]

    def body(self, inputs: dict[str, Any]) -> Problems:
        yield from self._object(self.schemas[self.request.schema], inputs, "")

    def _object(self, schema: Schema, values: dict[str, Any], place: str) -> Problems:
        for name, value in values.items():
            here = f"{place}.{name}".lstrip(".")
            if here in self.request.own or value is None:
                continue
            target: Schema | None = schema
            for step in self.request.moved.get(here, name).split("."):
                target = self._resolved(target).get("properties", {}).get(step) if target else None
            if target is None:
                yield f"has no field for {here}"
            else:
                yield from self._value(target, value, here)

    def _resolved(self, schema: Schema) -> Schema:
        return self.schemas[schema["$ref"]] if "$ref" in schema else schema

    def _value(self, schema: Schema, value: Any, place: str) -> Problems:
        schema = self._resolved(schema)
        if value in ({"$unknown": True}, {"$secret": True}):
            return
        if schema.get("type") == "array":
            for each in value if is_list(value) else [value]:
                yield from self._value(schema["items"], each, place)
        elif schema.get("type") == "object" and "additionalProperties" in schema:
            # A map; of blocks with a name Pulumi has a list.
            for each in value if is_list(value) else value.values():
                yield from self._value(schema["additionalProperties"], each, place)
        elif schema.get("type") == "object":
            # Of a block that there can be one of, Pulumi may have a list.
            [one] = value if is_list(value) and len(value) == 1 else [value]
            yield from self._object(schema, one, place) if is_object(one) else [f"{place}: is {value!r}, not an object"]
        else:
            yield from self._plain(schema, value, place)

    def _plain(self, schema: Schema, value: Any, place: str) -> Problems:
        match schema.get("type"):
            case "boolean":
                # Terraform has text where a field may be left out: TRUE and FALSE.
                fits = isinstance(value, bool) or value in ("TRUE", "FALSE")
            case "integer":
                fits = isinstance(value, int) and not isinstance(value, bool)
            case "number":
                fits = isinstance(value, int | float) and not isinstance(value, bool)
            case "string" if schema.get("format") in ("int64", "uint64"):
                fits = isinstance(value, int) or (isinstance(value, str) and value.isdecimal())
            case _:
                fits = isinstance(value, str)
        if not fits:
            yield f"{place}: is {value!r}, not of type {schema.get('type')}"
        elif "enum" in schema and value not in schema["enum"]:
            yield f"{place}: is {value!r}; allowed: {', '.join(schema['enum'])}"
