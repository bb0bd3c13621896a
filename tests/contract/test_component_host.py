"""Every component can be offered to programs in other languages: Pulumi's component host understands its arguments and outputs."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path

import pulumi
import pytest
from pulumi.provider.experimental.analyzer import Analyzer

CHECKOUT = Path(__file__).resolve().parents[2]


def components() -> list[type[pulumi.ComponentResource]]:
    found: dict[str, type[pulumi.ComponentResource]] = {}
    for path in sorted((CHECKOUT / "components").rglob("*.py")):
        module = importlib.import_module(".".join(path.relative_to(CHECKOUT).with_suffix("").parts).removesuffix(".__init__"))
        classes = inspect.getmembers(module, lambda each: inspect.isclass(each) and issubclass(each, pulumi.ComponentResource))
        found |= {name: each for name, each in classes if each.__module__ == module.__name__}
    return [found[name] for name in sorted(found)]


@pytest.mark.parametrize("component", components(), ids=lambda each: each.__name__)
def test_the_component_host_reads_its_arguments_and_outputs(component: type[pulumi.ComponentResource]) -> None:
    described = Analyzer("flexspot").analyze([component])["component_definitions"][component.__name__]

    assert described.inputs, "a component without arguments is none that anybody can use"
    assert described.outputs
