"""What tests of many components begin with."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pulumi
import pytest

if TYPE_CHECKING:
    from component_types import Make, Outputs, Refusal, Register


@pytest.fixture
def outputs(register: Register) -> Outputs:
    """What the outputs of a component come to, by name."""

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
    """What a component says when it refuses its arguments, which it does under its own name and before it registers anything."""

    def run(component: Any, name: str, args: Any) -> str:
        said: list[str] = []

        def declare() -> None:
            with pytest.raises(ValueError, match=rf"\b{component.__name__} {name}\b") as error:
                component(name, args)
            said.append(str(error.value))

        assert register(declare).resources == []
        return said[0]

    return run
