"""AWS's own request models, as shipped with botocore: how a Pulumi input is written there, and what the model rejects.

botocore itself checks names, types and required members before it sends a request. Enums and patterns are in the same models.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

import botocore.session
from botocore.model import ListShape, MapShape, Shape, StringShape, StructureShape

from flexspot.lab.providers.values import is_list, is_object

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from botocore.model import OperationModel, ServiceModel


class Unknown:
    """A value that only AWS knows, and everything in it."""

    def __getitem__(self, _: object) -> Unknown:
        return self


UNKNOWN = Unknown()


class UntranslatableError(Exception):
    """Raised for a Pulumi input that has no place in the request."""


@cache
def service_model(service: str) -> ServiceModel:
    """Return the model of a service."""
    return botocore.session.get_session().get_service_model(service)


def operation_model(service: str, operation: str) -> OperationModel:
    """Return the model of an operation of the service."""
    return service_model(service).operation_model(operation)


def translated(shape: Shape, value: Any, where: str) -> Any:
    """Return `value` as the model writes it: its names, lists where Pulumi has a plain item, numbers and booleans where Pulumi has text."""
    if value is UNKNOWN:
        return value
    if isinstance(shape, StructureShape):
        return _structure(shape, value, where)
    if isinstance(shape, ListShape):
        return [translated(shape.member, each, where) for each in (value if is_list(value) else [value])]
    if isinstance(shape, MapShape) and is_object(value):
        return {key: translated(shape.value, each, f"{where}.{key}") for key, each in value.items()}
    return _plain(shape.type_name, value)


def _plain(wanted: str, value: Any) -> Any:
    if wanted == "string" and isinstance(value, bool | int):
        return str(value).lower()
    if isinstance(value, str) and wanted == "boolean":
        return {"true": True, "false": False}.get(value, value)
    if isinstance(value, str) and wanted in {"integer", "long"} and value.isdecimal():
        return int(value)
    return value


def _structure(shape: StructureShape, value: Any, where: str) -> dict[str, Any]:
    if not is_object(value):
        [alone] = shape.members if len(shape.members) == 1 else [""]
        if not alone:
            raise UntranslatableError(f"{where}: {value!r} where {shape.name} is wanted")
        return {alone: translated(shape.members[alone], value, where)}
    found: dict[str, Any] = {}
    for key, each in value.items():
        member = member_of(shape, key)
        if member is None:
            raise UntranslatableError(f"{where}.{key}: {shape.name} has no such member, only {', '.join(shape.members)}")
        found[member] = translated(shape.members[member], each, f"{where}.{key}")
    return found


def member_of(shape: StructureShape, key: str) -> str | None:
    """Return the member that Pulumi calls `key`, ignoring case and plural. None if there is none."""
    names = {each.lower(): each for each in shape.members}
    name = key.lower()
    return next((names[each] for each in (name, f"{name}s", name.removesuffix("s")) if each in names), None)


def refused(shape: Shape, value: Any, where: str) -> Iterator[str]:
    """Return the model's objections to a request, each with its place. Unknown values are not objected to."""
    if value is UNKNOWN:
        return
    if isinstance(shape, StructureShape):
        if not is_object(value):
            yield f"{where}: is {value!r}, not a structure"
            return
        yield from (f"{where}.{name}: is required" for name in shape.required_members if name not in value)
        for name, each in value.items():
            if name in shape.members:
                yield from refused(shape.members[name], each, f"{where}.{name}")
            else:
                yield f"{where}.{name}: is not in the model"
    elif isinstance(shape, ListShape):
        yield from _size(shape.metadata, len(value), value, where)
        for number, each in enumerate(value):
            yield from refused(shape.member, each, f"{where}[{number}]")
    elif isinstance(shape, MapShape):
        yield from _size(shape.metadata, len(value), value, where)
        for key, each in value.items():
            yield from refused(shape.key, key, f"{where}.{key}")
            yield from refused(shape.value, each, f"{where}.{key}")
    else:
        yield from _scalar(shape, value, where)


_TYPES: Mapping[str, tuple[type, ...]] = {"boolean": (bool,), "integer": (int,), "long": (int,), "string": (str,), "double": (int, float)}


def _scalar(shape: Shape, value: Any, where: str) -> Iterator[str]:
    wanted = _TYPES.get(shape.type_name, (object,))
    if not isinstance(value, wanted) or (isinstance(value, bool) and wanted == (int,)):
        yield f"{where}: is {value!r}, not of type {shape.type_name}"
        return
    facts = shape.metadata
    if isinstance(value, str):
        yield from _size(facts, len(value), value, where)
        if isinstance(shape, StringShape) and shape.enum and value not in shape.enum:
            yield f"{where}: is {value!r}; allowed: {', '.join(shape.enum)}"
        if "pattern" in facts and not _matches(facts["pattern"], value):
            yield f"{where}: is {value!r}, which does not match {facts['pattern']}"
    elif not isinstance(value, bool):
        yield from _size(facts, value, value, where)


def _size(facts: Mapping[str, Any], size: float, value: Any, where: str) -> Iterator[str]:
    if size < facts.get("min", size):
        yield f"{where}: is {value!r}, below {facts['min']}"
    if size > facts.get("max", size):
        yield f"{where}: is {value!r}, above {facts['max']}"


_CLASSES = {r"\p{L}": "a-zA-Z", r"\p{Z}": r"\s", r"\p{N}": "0-9", r"[\w-_]": r"[\w_-]"}
"""Python spelling of the Java character classes in AWS's patterns. Java's cover letters of every language; ASCII text is judged by ASCII's.
"""


def _matches(pattern: str, value: str) -> bool:
    for java, python in _CLASSES.items():
        pattern = pattern.replace(java, python)
    return re.fullmatch(pattern, value, re.DOTALL) is not None
