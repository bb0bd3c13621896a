"""Fixtures shared by tests of components."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pulumi
import pytest

if TYPE_CHECKING:
    from component_types import Make, Outputs, Refusal, Register


@pytest.fixture
def outputs(register: Register) -> Outputs:
    """Return the values of a component's outputs, by name."""

    def run(make: Make) -> dict[str, Any]:
        found: dict[str, Any] = {}

        def declare() -> None:
            component = make()
            for name in type(component).__annotations__:
                pulumi.Output.from_input(getattr(component, name)).apply(partial(found.__setitem__, name))

        register(declare)
        return found

    return run


@pytest.fixture
def refusal(register: Register) -> Refusal:
    """Return a component's refusal of its arguments, raised under its own name before it registers anything."""

    def run(component: Any, name: str, args: Any) -> str:
        messages: list[str] = []

        def declare() -> None:
            with pytest.raises(ValueError, match=rf"\b{component.__name__} {name}\b") as error:
                component(name, args)
            messages.append(str(error.value))

        assert register(declare).resources == []
        return messages[0]

    return run
