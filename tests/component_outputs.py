"""The outputs of a component, and a mock of a cloud with existing resources to read. Not a test."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pulumi

if TYPE_CHECKING:
    from collections.abc import Callable


class ReadCloud(pulumi.runtime.Mocks):
    """A mock that records created and read resources, and answers a read with `found(id)`. None: the cloud cannot be reached."""

    def __init__(self, found: Callable[[str], dict[str, Any]] | None) -> None:
        self.made: list[str] = []
        self.read: list[tuple[str, str]] = []
        self._found = found

    @property
    def is_preview(self) -> bool:
        return self._found is None

    def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> tuple[str | None, dict[Any, Any]]:
        inputs: dict[str, Any] = dict(args.inputs)
        if not args.resource_id:
            self.made.append(args.typ)
            return f"{args.name}-id", inputs
        self.read.append((args.typ, args.resource_id))
        return args.resource_id, {} if self._found is None else self._found(args.resource_id)

    def call(self, args: pulumi.runtime.MockCallArgs) -> tuple[dict[Any, Any], list[tuple[str, str]] | None]:
        raise AssertionError(f"components must not invoke provider functions, but {args.token} was called")


def outputs_of(cloud: pulumi.runtime.Mocks, make: Callable[[], pulumi.ComponentResource], *, preview: bool = False) -> dict[str, Any]:
    """Return the known values of a component's outputs by name.

    `known` maps each name to whether it is known. `secrets` lists whether each is secret, in the order of declaration.
    """
    pulumi.runtime.set_mocks(cloud, preview=preview)
    found: dict[str, Any] = {}

    def note(name: str, value: Any) -> None:
        found[name] = value

    @pulumi.runtime.test
    def program() -> pulumi.Output[None]:
        component = make()
        names = [*type(component).__annotations__]
        outputs: list[pulumi.Output[Any]] = [getattr(component, name) for name in names]
        for name, output in zip(names, outputs, strict=True):
            output.apply(partial(note, name))
        flags = [*(output.is_known() for output in outputs), *(output.is_secret() for output in outputs)]
        return pulumi.Output.all(*flags).apply(
            lambda values: found.update(known=dict(zip(names, values, strict=False)), secrets=values[len(names) :])
        )

    program()
    return found
