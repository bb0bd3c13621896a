"""A provider of the components for programs in any language: their schema, inputs as Python types, and errors in one line.

The schema's descriptions are the docstrings of the Python classes, with names as any language writes them.
"""

from __future__ import annotations

import ast
import inspect
import json
import math
import re
import sys
import textwrap
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from pkgutil import walk_packages
from typing import TYPE_CHECKING, Any, is_typeddict

import pulumi
from pulumi.errors import InputPropertiesError
from pulumi.output import Unknown
from pulumi.provider.experimental.analyzer import PropertyType
from pulumi.provider.experimental.component import ComponentProvider
from pulumi.provider.experimental.schema import generate_schema
from pulumi.provider.server import ComponentInitError
from pulumi.runtime import rpc

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulumi.errors import InputPropertyErrorDetails
    from pulumi.provider import ConstructResult
    from pulumi.provider.experimental.analyzer import Analyzer, ComponentDefinition, PropertyDefinition, TypeDefinition


PACKAGE = "flexspot"


def hosted() -> list[type[pulumi.ComponentResource]]:
    """Return every component of this folder, sorted by name."""
    own = __name__.removesuffix(".hosting.host")
    found: dict[str, type[pulumi.ComponentResource]] = {}
    for listed in walk_packages([str(Path(__file__).parents[1])], f"{own}."):
        module = import_module(listed.name)
        classes = inspect.getmembers(module, inspect.isclass)
        found |= {name: each for name, each in classes if issubclass(each, pulumi.ComponentResource) and each.__module__ == listed.name}
    return [found[name] for name in sorted(found)]


class Host(ComponentProvider):
    """Construct components from inputs as they arrive on the wire: every number is a float, and optional inputs may be absent."""

    def __init__(self, components: Sequence[type[pulumi.ComponentResource]]) -> None:
        release = version(PACKAGE)
        super().__init__(list(components), PACKAGE, None, release)
        self._describe()
        whole = generate_schema(PACKAGE, release, None, self._component_defs, self._type_defs, self._dependencies)
        self.described_schema = whole.to_json()
        """The schema as JSON objects."""
        self.schema = json.dumps(self.described_schema)

    def _describe(self) -> None:
        """Set the description of each component, type, input and output to its docstring, without Python's own words."""
        for name, definition in self._component_defs.items():
            names = _names(definition.inputs_mapping)
            definition.description = _in_any_language(definition.description, names)
            for schema_name, declared in definition.inputs.items():
                description = _described(self._arguments(name), definition.inputs_mapping[schema_name], self.analyzer)
                declared.description = _in_any_language(description, names)
            for declared in definition.outputs.values():
                declared.description = _in_any_language(declared.description, names)
        for kind in self._type_defs.values():
            names = _names(kind.properties_mapping)
            kind.description = _in_any_language(kind.description, names)
            for schema_name, declared in kind.properties.items():
                description = _described(kind.python_type, kind.properties_mapping[schema_name], self.analyzer)
                declared.description = _in_any_language(description, names)

    def construct(
        self, name: str, resource_type: str, inputs: pulumi.Inputs, options: pulumi.ResourceOptions | None = None
    ) -> ConstructResult:
        """Construct the component. An error that it raises is reported in its own line, without a Python traceback."""
        try:
            return super().construct(name, resource_type, inputs, options)
        except ComponentInitError as error:
            if isinstance(error.inner, ValueError | pulumi.RunError):
                raise self._refusal(name, str(error.inner), resource_type.rpartition(":")[2]) from error
            raise

    def map_inputs(self, inputs: pulumi.Inputs, component_def: ComponentDefinition) -> dict[str, Any]:
        """Return the arguments with Python names and types. Raises InputPropertiesError that names each invalid input."""
        return InputReader(component_def.name, self._type_defs).read(dict(inputs), component_def)

    def _arguments(self, name: str) -> type:
        return inspect.get_annotations(self._components[name].__init__)["args"]

    def _refusal(self, name: str, message: str, component: str) -> InputPropertiesError:
        """Return an error with the component's message and the schema's names for inputs. If it names one input, the error is about it.

        The SDK's server (3.259, create_grpc_invalid_properties_status) treats an empty list as none, and fails at its default.
        """
        for schema_name, argument in self._component_defs[component].inputs_mapping.items():
            message = re.sub(rf"\b{argument}\b", schema_name, message)
        # The text before this says which component it is. If several inputs are named, it is unknown which one is wrong.
        _, _, said = message.partition(f"{component} {name}")
        named = set(re.findall(r"\w+", said)) & self._component_defs[component].inputs.keys()
        if len(named) == 1:
            return InputPropertiesError(f"{component} has an invalid input", [{"property_path": named.pop(), "reason": message}])
        return InputPropertiesError(message, [])


def _names(mapping: Mapping[str, str]) -> dict[str, str]:
    """Return the schema's names by the Python names."""
    return {argument: schema_name for schema_name, argument in mapping.items()}


_RAISES = re.compile(r"Raises\s+(?:ValueError|WorkloadError)\b,?")
_DEFAULT = re.compile(r"(?<=\bDefault: )(?:True|False|None)\b")
_SNAKE = re.compile(r"\b[a-z0-9]+(?:_[a-z0-9]+)+\b")


def _described(typ: type, name: str, analyzer: Analyzer) -> str | None:
    """Return an argument's docstring from its class or one that the class extends. The SDK's analyzer only reads the class itself."""
    if docstring := analyzer.get_docstring(typ, name):
        return docstring
    return next((found for base in _extended(typ) if (found := _described(base, name, analyzer))), None)


def _extended(typ: type) -> list[type]:
    """Return the TypedDicts that a TypedDict extends. Python 3.11 keeps them only in the source."""
    [written] = ast.parse(textwrap.dedent(inspect.getsource(typ))).body
    there = vars(sys.modules[typ.__module__])
    named = [each.id for each in getattr(written, "bases", ()) if isinstance(each, ast.Name)]
    return [there[each] for each in named if is_typeddict(there.get(each))]


def _in_any_language(text: str | None, names: Mapping[str, str]) -> str | None:
    """Return a docstring without what is Python's own: indentation, names of errors, truth values and names of arguments.

    `names` maps names of arguments to those of the schema. A name is only replaced if it has an underscore, so that it cannot be an English
    word. An editor, which reads the text as Markdown, would show an indented paragraph as code.
    """
    if text is None:
        return None
    text = _RAISES.sub("Is refused", inspect.cleandoc(text))
    text = _DEFAULT.sub(lambda found: found[0].lower(), text)
    return _SNAKE.sub(lambda found: names.get(found[0], found[0]), text)


_TYPE_NAMES = {
    PropertyType.STRING: "a string",
    PropertyType.INTEGER: "a whole number",
    PropertyType.NUMBER: "a number",
    PropertyType.BOOLEAN: "true or false",
    PropertyType.OBJECT: "a map",
    PropertyType.ARRAY: "a list",
}

_PYTHON = {PropertyType.STRING: str, PropertyType.BOOLEAN: bool, PropertyType.OBJECT: dict, PropertyType.ARRAY: list}


class InputReader:
    """Read the inputs of one component.

    The SDK's own mapping (3.259) leaves whole numbers as floats and does not look into lists and maps.
    """

    def __init__(self, component: str, types: Mapping[str, TypeDefinition]) -> None:
        self._component = component
        self._types = types
        self._wrong: list[InputPropertyErrorDetails] = []

    def read(self, inputs: Mapping[str, Any], definition: ComponentDefinition) -> dict[str, Any]:
        """Return the arguments. Raises InputPropertiesError that lists every problem with the inputs."""
        found = self._fields(inputs, definition.inputs, definition.inputs_mapping, "")
        if self._wrong:
            raise InputPropertiesError(f"{self._component} has invalid inputs", self._wrong)
        return found

    def _fields(
        self, given: Mapping[str, Any], properties: Mapping[str, PropertyDefinition], names: Mapping[str, str], path: str
    ) -> dict[str, Any]:
        for unknown in sorted(given.keys() - properties.keys()):
            self._refuse(_join(path, unknown), f"is not an input; the inputs are {', '.join(sorted(properties))}")
        found: dict[str, Any] = {}
        for schema_name, declared in properties.items():
            value, name = given.get(schema_name), names[schema_name]
            where = _join(path, schema_name)
            if value is not None:
                found[name] = self._value(value, declared, where)
            elif not declared.optional:
                self._refuse(where, f"is missing; give {self._expected(declared)}")
        return found

    def _value(self, value: Any, declared: PropertyDefinition, where: str) -> Any:
        if isinstance(value, pulumi.Output) or rpc.is_rpc_secret(value) or isinstance(value, Unknown):
            if declared.plain:
                self._refuse(where, "must be known before resources are created; give a plain value, not an output")
            return value
        if declared.ref is not None:
            return self._referred(value, declared.ref, where)
        fits, read = _plain(value, declared.type)
        if not fits:
            self._refuse(where, f"is {_shown(value)}, but must be {self._expected(declared)}")
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
                self._refuse(where, f"is {_shown(value)}, but must be one of {', '.join(map(str, sorted(known)))}")
                return value
            return kind.python_type(value)
        if not isinstance(value, dict):
            self._refuse(where, f"is {_shown(value)}, but must be a map with {', '.join(sorted(kind.properties))}")
            return value
        return self._fields(value, kind.properties, kind.properties_mapping, where)

    def _expected(self, declared: PropertyDefinition) -> str:
        return "a map" if declared.type is None else _TYPE_NAMES[declared.type]

    def _refuse(self, where: str, reason: str) -> None:
        self._wrong.append({"property_path": where, "reason": reason})


def _plain(value: Any, kind: PropertyType | None) -> tuple[bool, Any]:
    """Return whether a value from the wire has the given type, and the value in Python."""
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if kind in {PropertyType.INTEGER, PropertyType.NUMBER}:
        whole = number and float(value).is_integer()
        return number and (whole or kind is PropertyType.NUMBER), int(value) if whole else value
    if kind is None:
        return True, _whole(value)
    return isinstance(value, _PYTHON[kind]), value


def _whole(value: Any) -> Any:
    """Return JSON with its whole numbers as int: 3 arrives as 3.0 and would be shown that way."""
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
