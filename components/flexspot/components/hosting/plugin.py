"""The plugin of one cloud. It reads the schema from a file and only loads the components that a program creates.

Loading all of them, with the SDKs of both clouds, and reading their docstrings takes ten seconds of CPU. A preview starts the plugin twice
(on 2 cores, 2026-11-27).
"""

from __future__ import annotations

import functools
import json
import re
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pulumi.provider import Provider, main

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pulumi
    from pulumi.provider import ConstructResult

    from flexspot.components.hosting.host import Host

SCHEMA = Path(__file__).with_name("schema.json")
"""The schema of all components without its version, and the module of each."""

WORDS: Final = {
    "gke": {"gke", "gcs", "pubsub", "dws"},
    "eks": {"eks", "karpenter", "efs", "lustre", "s3", "sqs", "gp3"},
}
"""Words in the module or name of a component that belongs to one cloud only, by cloud."""


class Plugin(Provider):
    """Offer the components of one cloud, `gke` or `eks`, and those of both, as the package `flexspot-CLOUD`."""

    def __init__(self, cloud: str) -> None:
        read = json.loads(SCHEMA.read_text(encoding="utf-8"))
        release = version(read["schema"]["name"])
        self._modules: dict[str, str] = {kind: module for kind, module in read["modules"].items() if is_of(cloud, module, kind)}
        schema = {**_restricted(read["schema"], self._modules.keys()), "version": release}
        package = f"{schema['name']}-{cloud}"
        # Tokens of resources and of types begin with the package's name.
        text = json.dumps(schema | {"name": package}).replace(f"{schema['name']}:index:", f"{package}:index:")
        super().__init__(release, text)

    def construct(
        self, name: str, resource_type: str, inputs: pulumi.Inputs, options: pulumi.ResourceOptions | None = None
    ) -> ConstructResult:
        """Construct the component. Raises ValueError for an unknown type."""
        kind = resource_type.rpartition(":")[2]
        if kind not in self._modules:
            raise ValueError(f"{resource_type} is not a component; the components are {', '.join(sorted(self._modules))}")
        # A component's type begins with `flexspot:` in every program, and so for policies.
        return _host(self._modules[kind], kind).construct(name, f"flexspot:index:{kind}", inputs, options)


def is_of(cloud: str, module: str, kind: str) -> bool:
    """Return whether a component belongs to `cloud`, alone or among others."""
    words = {*re.split(r"[._]", module), *(each.lower() for each in re.findall(r"[A-Z][a-z0-9]+", kind))}
    return bool(words & WORDS[cloud]) or not any(words & each for each in WORDS.values())


def _restricted(schema: dict[str, Any], kinds: Iterable[str]) -> dict[str, Any]:
    """Return the schema with only the components `kinds` and the types that they refer to."""
    resources = {f"{schema['name']}:index:{kind}": schema["resources"][f"{schema['name']}:index:{kind}"] for kind in sorted(kinds)}
    types: dict[str, Any] = {}
    waiting = [json.dumps(resources)]
    while waiting:
        for token in re.findall(r'"#/types/([^"]+)"', waiting.pop()):
            if token not in types:
                types[token] = schema["types"][token]
                waiting.append(json.dumps(types[token]))
    return schema | {"resources": resources, "types": dict(sorted(types.items()))}


@functools.cache
def _host(module: str, kind: str) -> Host:
    from flexspot.components.hosting.host import Host  # noqa: PLC0415 -- not needed to return the schema

    return Host([getattr(import_module(module), kind)])


def written(schema: dict[str, Any], components: Iterable[type[pulumi.ComponentResource]]) -> str:
    """Return the content of the schema file."""
    modules = {each.__name__: each.__module__ for each in components}
    of_any_release = {key: value for key, value in schema.items() if key != "version"}
    return json.dumps({"modules": modules, "schema": of_any_release}, indent=1) + "\n"


def serve(cloud: str) -> None:
    """Serve the components of a cloud until the engine ends the process. The engine's arguments are read from the command line."""
    main(Plugin(cloud), [])
