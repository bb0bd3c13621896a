"""Inputs of components from the wire: by the names of the schema, in the types of Python, or refused by name."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pulumi
from pulumi.errors import InputPropertiesError
from pulumi.output import Unknown
from pulumi.provider.experimental.analyzer import PropertyType
from pulumi.runtime import rpc

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pulumi.errors import InputPropertyErrorDetails
    from pulumi.provider.experimental.analyzer import ComponentDefinition, PropertyDefinition, TypeDefinition

_WORDS = {
    PropertyType.STRING: "a text",
    PropertyType.INTEGER: "a whole number",
    PropertyType.NUMBER: "a number",
    PropertyType.BOOLEAN: "true or false",
    PropertyType.OBJECT: "a map",
    PropertyType.ARRAY: "a list",
}

_PYTHON = {PropertyType.STRING: str, PropertyType.BOOLEAN: bool, PropertyType.OBJECT: dict, PropertyType.ARRAY: list}


class InputReader:
    """Reads the inputs of one component.

    The SDK's own mapping (3.259) leaves whole numbers as floats, and does not look into lists and maps.
    """

    def __init__(self, component: str, types: Mapping[str, TypeDefinition]) -> None:
        self._component = component
        self._types = types
        self._wrong: list[InputPropertyErrorDetails] = []

    def read(self, inputs: Mapping[str, Any], definition: ComponentDefinition) -> dict[str, Any]:
        """The arguments. Raises InputPropertiesError with all that is wrong with them."""
        found = self._fields(inputs, definition.inputs, definition.inputs_mapping, "")
        if self._wrong:
            raise InputPropertiesError(f"{self._component} cannot be made of these inputs", self._wrong)
        return found

    def _fields(
        self, given: Mapping[str, Any], properties: Mapping[str, PropertyDefinition], names: Mapping[str, str], path: str
    ) -> dict[str, Any]:
        for unknown in sorted(given.keys() - properties.keys()):
            self._refuse(_join(path, unknown), f"is no input; there are {', '.join(sorted(properties))}")
        found: dict[str, Any] = {}
        for schema_name, declared in properties.items():
            value, name = given.get(schema_name), names[schema_name]
            where = _join(path, schema_name)
            if value is not None:
                found[name] = self._value(value, declared, where)
            elif not declared.optional:
                self._refuse(where, f"is missing; give {self._words(declared)}")
        return found

    def _value(self, value: Any, declared: PropertyDefinition, where: str) -> Any:
        if isinstance(value, pulumi.Output) or rpc.is_rpc_secret(value) or isinstance(value, Unknown):
            if declared.plain:
                self._refuse(where, "shapes what is made, and must be known when the program runs; give the value itself, no output")
            return value
        if declared.ref is not None:
            return self._referred(value, declared.ref, where)
        fits, read = _plain(value, declared.type)
        if not fits:
            self._refuse(where, f"is {_shown(value)}; it must be {self._words(declared)}")
            return value
        if declared.items is not None:
            return [self._value(each, declared.items, f"{where}[{index}]") for index, each in enumerate(read)]
        if declared.additional_properties is not None:
            return {key: self._value(each, declared.additional_properties, f"{where}[{key!r}]") for key, each in read.items()}
        return read

    def _referred(self, value: Any, ref: str, where: str) -> Any:
        kind = self._types.get(ref.rpartition(":")[2]) if ":" in ref and not ref.startswith("/") else None
        if kind is None:
            return _whole(value)
        if kind.enum:
            known = {each.value for each in kind.enum}
            if value not in known:
                self._refuse(where, f"is {_shown(value)}; allowed: {', '.join(map(str, sorted(known)))}")
                return value
            return kind.python_type(value)
        if not isinstance(value, dict):
            self._refuse(where, f"is {_shown(value)}; it must be a map with {', '.join(sorted(kind.properties))}")
            return value
        return self._fields(value, kind.properties, kind.properties_mapping, where)

    def _words(self, declared: PropertyDefinition) -> str:
        return "a map" if declared.type is None else _WORDS[declared.type]

    def _refuse(self, where: str, reason: str) -> None:
        self._wrong.append({"property_path": where, "reason": reason})


def _plain(value: Any, kind: PropertyType | None) -> tuple[bool, Any]:
    """Whether a value from the wire is of a kind, and what it is in Python."""
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if kind in {PropertyType.INTEGER, PropertyType.NUMBER}:
        whole = number and float(value).is_integer()
        return number and (whole or kind is PropertyType.NUMBER), int(value) if whole else value
    if kind is None:
        return True, _whole(value)
    return isinstance(value, _PYTHON[kind]), value


def _whole(value: Any) -> Any:
    """JSON with its whole numbers as such: what a person writes as 3 arrives as 3.0, and would be shown so."""
    if isinstance(value, dict):
        return {key: _whole(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_whole(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _shown(value: Any) -> str:
    text = repr(_whole(value))
    return text if len(text) <= 60 else f"{text[:57]}..."  # noqa: PLR2004 -- a line's worth


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
