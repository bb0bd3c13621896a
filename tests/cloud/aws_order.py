"""The way of a resource's inputs into calls of AWS, in its own words; every input must find its place in one of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from aws_models import UntranslatableError, member_of, operation_model, translated

if TYPE_CHECKING:
    from collections.abc import Mapping


Call = tuple[str, str, dict[str, Any]]
"""A service, its operation, and what it is asked with."""


class Account(Protocol):
    """Where calls go to."""

    def call(self, service: str, operation: str, parameters: dict[str, Any]) -> Any:
        """The answer of AWS."""
        ...


@dataclass
class Made:
    """What became of a resource: its id, what AWS says of it beside its inputs, and the calls that take it away again."""

    identity: Any
    outputs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    deleted_by: list[Call] = field(default_factory=list[Call])


class Order:
    """A resource's inputs on their way into calls."""

    def __init__(self, account: Account, kind: str, inputs: dict[str, Any]) -> None:
        self._account = account
        self._kind = kind
        self._left = dict(inputs)
        # Said to the provider, which then asks the service of that region.
        self._left.pop("region", None)

    def take(self, name: str, default: Any = None) -> Any:
        """An input that the caller finds a place for."""
        return self._left.pop(name, default)

    def tags(self) -> list[dict[str, str]]:
        """The tags as most services write them."""
        return [{"Key": key, "Value": value} for key, value in self.take("tags", {}).items()]

    def tagged(self, resource_type: str) -> dict[str, Any]:
        """The tags as EC2 wants them with what it makes."""
        found = self.tags()
        return {"TagSpecifications": [{"ResourceType": resource_type, "Tags": found}]} if found else {}

    def call(self, service: str, operation: str, *names: str, **parameters: Any) -> Any:
        """Asks AWS with the inputs called `names`, those that there are, and with what else it must know: by the request's own names."""
        shape = operation_model(service, operation).input_shape
        assert shape is not None, f"{operation} takes nothing"
        for name in names:
            if name in self._left:
                member = member_of(shape, name)
                if member is None:
                    raise UntranslatableError(f"{self._kind}: {operation} has no {name}, only {', '.join(shape.members)}")
                parameters[member] = self.take(name)
        written = {key: translated(shape.members[key], each, f"{self._kind}.{key}") for key, each in parameters.items() if each is not None}
        return self._account.call(service, operation, written)

    def done(self) -> None:
        """Raises UntranslatableError for an input that no call took."""
        if self._left:
            raise UntranslatableError(f"{self._kind}: no call takes {', '.join(sorted(self._left))}")


def only(**inputs: Any) -> dict[str, Any]:
    return {key: value for key, value in inputs.items() if value is not None}
