"""Which resources a component's constructor registers as its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pulumi

if TYPE_CHECKING:
    from collections.abc import Callable


def parentage(register: Callable[[Callable[[], object]], Any], make: Callable[[], pulumi.ComponentResource]) -> tuple[list[str], list[str]]:
    """The names of everything but the component that was registered, and of those the ones whose parent is the component itself."""
    seen: list[tuple[str, pulumi.Resource | None]] = []
    made: list[pulumi.ComponentResource] = []

    def declare() -> None:
        pulumi.runtime.register_stack_transformation(lambda each: seen.append((each.name, each.opts.parent)))
        made.append(make())

    registered = register(declare)
    own = [name for name, parent in seen if parent is made[0]]
    # The component registers itself first.
    return [name for _, name, _ in registered.resources][1:], own
