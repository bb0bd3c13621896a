"""The plugin: it knows the schema from a file, and loads of the components those that a program makes.

To load all of them, with the SDKs of both clouds, and to read their docstrings takes ten seconds of CPU, and a preview starts the plugin
twice (on 2 cores, 2026-11-27).
"""

from __future__ import annotations

import functools
import json
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pulumi.provider import Provider, main

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pulumi
    from pulumi.provider import ConstructResult

    from components.hosting.host import Host

SCHEMA = Path(__file__).with_name("schema.json")
"""The schema without its version, and the module of each component."""

_PREFIX = __name__.removesuffix("components.hosting.plugin")
"""What an installed package has before the names of its folders."""


class Plugin(Provider):
    """Says what there is, and makes one component after the other, each by its own host."""

    def __init__(self) -> None:
        read = json.loads(SCHEMA.read_text(encoding="utf-8"))
        schema: dict[str, Any] = read["schema"]
        release = version(schema["name"])
        self._modules: dict[str, str] = read["modules"]
        super().__init__(release, json.dumps({**schema, "version": release}))

    def construct(
        self, name: str, resource_type: str, inputs: pulumi.Inputs, options: pulumi.ResourceOptions | None = None
    ) -> ConstructResult:
        """The component. Raises ValueError for a type that there is not."""
        kind = resource_type.rpartition(":")[2]
        if kind not in self._modules:
            raise ValueError(f"{resource_type} is not a component; the components are {', '.join(sorted(self._modules))}")
        return _host(f"{_PREFIX}{self._modules[kind]}", kind).construct(name, resource_type, inputs, options)


@functools.cache
def _host(module: str, kind: str) -> Host:
    from components.hosting.host import Host  # noqa: PLC0415 -- a schema is asked for without it

    return Host([getattr(import_module(module), kind)])


def written(schema: dict[str, Any], components: Iterable[type[pulumi.ComponentResource]]) -> str:
    """The file's text."""
    modules = {each.__name__: each.__module__.removeprefix(_PREFIX) for each in components}
    of_any_release = {key: value for key, value in schema.items() if key != "version"}
    return json.dumps({"modules": modules, "schema": of_any_release}, indent=1) + "\n"


def serve() -> None:
    """Serves until the engine ends it; the arguments are those that a language host gives."""
    main(Plugin(), [])
