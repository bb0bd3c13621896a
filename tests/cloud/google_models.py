"""Google's own descriptions of its APIs, applied to the requests that would create a program's resources.

The discovery documents in google-api-python-client know each field, its type and its enum. They have no ranges, no text formats, and
nothing that only the service refuses.
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
    """Return the request of each resource type, by Pulumi's token."""
    content = yaml.safe_load(Path(__file__).with_name("google_requests.yaml").read_text(encoding="utf-8"))
    return {token: Request(**each) for token, each in content["resources"].items()}


@cache
def document(api: str) -> dict[str, Any]:
    """Return a discovery document, such as that of container.v1, with its `revision`."""
    spec = find_spec("googleapiclient")
    assert spec is not None, "google-api-python-client is not installed: run `make setup`"
    assert spec.submodule_search_locations is not None
    folder = Path(spec.submodule_search_locations[0]) / "discovery_cache" / "documents"
    return json.loads((folder / f"{api}.json").read_text(encoding="utf-8"))


def refused_requests(made: Iterable[Declared]) -> list[str]:
    """Return the documents' objections to the Google resources among these, each with its resource's name."""
    return [f"{each.name}: {problem}" for each in made if each.type.startswith("gcp:") for problem in refused_of(each.type, each.inputs)]


def refused_of(token: str, inputs: dict[str, Any]) -> list[str]:
    """Return the objections to one resource: unknown fields, values of another type, words that are not in an enum."""
    request = requests().get(token)
    if request is None:
        return [f"{token}: no API method is known that creates it"]
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
            # A map. Pulumi has a list for blocks with a name.
            for each in value if is_list(value) else value.values():
                yield from self._value(schema["additionalProperties"], each, place)
        elif schema.get("type") == "object":
            # Pulumi may have a list for a block that occurs at most once.
            [one] = value if is_list(value) and len(value) == 1 else [value]
            yield from self._object(schema, one, place) if is_object(one) else [f"{place}: is {value!r}, not an object"]
        else:
            yield from self._plain(schema, value, place)

    def _plain(self, schema: Schema, value: Any, place: str) -> Problems:
        match schema.get("type"):
            case "boolean":
                # Terraform uses the texts TRUE and FALSE where a field may be left out.
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
