"""What makes components for programs in any language: their schema, inputs in Python's types, refusals in one line.

What the schema says of components and their inputs is the docstrings of Python's classes, in the names of any language.
"""

from __future__ import annotations

import ast
import inspect
import json
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
from pulumi.provider.experimental.component import ComponentProvider
from pulumi.provider.experimental.schema import generate_schema
from pulumi.provider.server import ComponentInitError

from flexspot.components.hosting.inputs import InputReader

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulumi.provider import ConstructResult
    from pulumi.provider.experimental.analyzer import Analyzer, ComponentDefinition


PACKAGE = "flexspot"


def hosted() -> list[type[pulumi.ComponentResource]]:
    """Every component of this folder, in the order of their names."""
    own = __name__.removesuffix(".hosting.host")
    found: dict[str, type[pulumi.ComponentResource]] = {}
    for listed in walk_packages([str(Path(__file__).parents[1])], f"{own}."):
        module = import_module(listed.name)
        classes = inspect.getmembers(module, inspect.isclass)
        found |= {name: each for name, each in classes if issubclass(each, pulumi.ComponentResource) and each.__module__ == listed.name}
    return [found[name] for name in sorted(found)]


class Host(ComponentProvider):
    """Constructs components from inputs as the wire has them, where every number is a float and what is optional may be absent."""

    def __init__(self, components: Sequence[type[pulumi.ComponentResource]]) -> None:
        release = version(PACKAGE)
        super().__init__(list(components), PACKAGE, None, release)
        self._describe()
        whole = generate_schema(PACKAGE, release, None, self._component_defs, self._type_defs, self._dependencies)
        self.described_schema = whole.to_json()
        """The schema, as an object."""
        self.schema = json.dumps(self.described_schema)

    def _describe(self) -> None:
        """Says of each component, type, input and output what its class in Python says, in words that hold in any language."""
        for name, definition in self._component_defs.items():
            names = _names(definition.inputs_mapping)
            definition.description = _in_any_language(definition.description, names)
            for schema_name, declared in definition.inputs.items():
                told = _described(self._arguments(name), definition.inputs_mapping[schema_name], self.analyzer)
                declared.description = _in_any_language(told, names)
            for declared in definition.outputs.values():
                declared.description = _in_any_language(declared.description, names)
        for kind in self._type_defs.values():
            names = _names(kind.properties_mapping)
            kind.description = _in_any_language(kind.description, names)
            for schema_name, declared in kind.properties.items():
                told = _described(kind.python_type, kind.properties_mapping[schema_name], self.analyzer)
                declared.description = _in_any_language(told, names)

    def construct(
        self, name: str, resource_type: str, inputs: pulumi.Inputs, options: pulumi.ResourceOptions | None = None
    ) -> ConstructResult:
        """The component. What it refuses is told in its own line, without the place in Python."""
        try:
            return super().construct(name, resource_type, inputs, options)
        except ComponentInitError as error:
            if isinstance(error.inner, ValueError | pulumi.RunError):
                raise self._refusal(name, str(error.inner), resource_type.rpartition(":")[2]) from error
            raise

    def map_inputs(self, inputs: pulumi.Inputs, component_def: ComponentDefinition) -> dict[str, Any]:
        """The arguments, by their names in Python and in its types. Raises InputPropertiesError naming each input that is none."""
        return InputReader(component_def.name, self._type_defs).read(dict(inputs), component_def)

    def _arguments(self, name: str) -> type:
        return inspect.get_annotations(self._components[name].__init__)["args"]

    def _refusal(self, name: str, told: str, component: str) -> InputPropertiesError:
        """A component's own words, with the names that the program has for inputs, told of the one input that they name.

        The SDK's server (3.259, create_grpc_invalid_properties_status) takes an empty list for none, and fails at its default.
        """
        for schema_name, argument in self._component_defs[component].inputs_mapping.items():
            told = re.sub(rf"\b{argument}\b", schema_name, told)
        # What stands before is whose inputs they are; of several named nobody knows which is meant.
        _, _, said = told.partition(f"{component} {name}")
        named = set(re.findall(r"\w+", said)) & self._component_defs[component].inputs.keys()
        if len(named) == 1:
            return InputPropertiesError(f"{component} refuses its inputs", [{"property_path": named.pop(), "reason": told}])
        return InputPropertiesError(told, [])


def _names(mapping: Mapping[str, str]) -> dict[str, str]:
    """The names of the schema by those of Python."""
    return {argument: schema_name for schema_name, argument in mapping.items()}


_RAISES = re.compile(r"Raises\s+(?:ValueError|WorkloadError)\b,?")
_DEFAULT = re.compile(r"(?<=\bDefault: )(?:True|False|None)\b")
_SNAKE = re.compile(r"\b[a-z0-9]+(?:_[a-z0-9]+)+\b")


def _described(typ: type, name: str, analyzer: Analyzer) -> str | None:
    """The text below an argument, in the class that declares it or in one that it extends: the SDK's analyzer asks the first alone."""
    if told := analyzer.get_docstring(typ, name):
        return told
    return next((found for base in _extended(typ) if (found := _described(base, name, analyzer))), None)


def _extended(typ: type) -> list[type]:
    """The TypedDicts that one extends. Python 3.11 keeps them nowhere but in the source."""
    [written] = ast.parse(textwrap.dedent(inspect.getsource(typ))).body
    there = vars(sys.modules[typ.__module__])
    named = [each.id for each in getattr(written, "bases", ()) if isinstance(each, ast.Name)]
    return [there[each] for each in named if is_typeddict(there.get(each))]


def _in_any_language(text: str | None, names: Mapping[str, str]) -> str | None:
    """A docstring without Python's own: its indentation, its errors, its truth values, and names of arguments, which `names` has those of
    the schema for.

    An indented paragraph would be a block of code to an editor, which takes the text for Markdown. A name is changed only where it cannot
    be a word of English: with an underscore.
    """
    if text is None:
        return None
    text = _RAISES.sub("Is refused", inspect.cleandoc(text))
    text = _DEFAULT.sub(lambda found: found[0].lower(), text)
    return _SNAKE.sub(lambda found: names.get(found[0], found[0]), text)
