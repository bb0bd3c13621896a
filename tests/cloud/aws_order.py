"""Translation of a resource's inputs into AWS calls, in AWS's own terms."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from aws_models import UntranslatableError, member_of, operation_model, translated
from botocore.model import ListShape, StructureShape

if TYPE_CHECKING:
    from collections.abc import Mapping


class Account(Protocol):
    """The account that receives calls."""

    def call(self, service: str, operation: str, parameters: dict[str, Any]) -> Any:
        """Return the answer of AWS."""
        ...


@dataclass
class Made:
    """The result of creating a resource: its id, and its attributes from AWS in addition to the inputs."""

    identity: Any
    outputs: Mapping[str, Any] = field(default_factory=dict[str, Any])


class Order:
    """A resource's inputs on their way into calls."""

    def __init__(self, account: Account, kind: str, inputs: dict[str, Any]) -> None:
        self._account = account
        self._kind = kind
        # The region tells the provider which endpoint to call.
        self.left = {key: value for key, value in inputs.items() if key != "region"}

    def take(self, name: str, default: Any = None) -> Any:
        """Return an input and mark it as used."""
        return self.left.pop(name, default)

    def rest(self) -> dict[str, Any]:
        """Return all inputs that are not used yet."""
        found, self.left = self.left, {}
        return found

    def tags(self) -> list[dict[str, str]]:
        """Return the tags as most services write them."""
        return [{"Key": key, "Value": value} for key, value in self.take("tags", {}).items()]

    def tagged(self, resource_type: str) -> dict[str, Any]:
        """Return the tags as EC2 takes them when creating a resource."""
        found = self.tags()
        return {"TagSpecifications": [{"ResourceType": resource_type, "Tags": found}]} if found else {}

    def call(self, service: str, operation: str, *names: str, **parameters: Any) -> Any:
        """Call AWS with the inputs called `names`, if they are set, and with `parameters` under the request's own names."""
        shape = operation_model(service, operation).input_shape
        assert shape is not None, f"{operation} takes nothing"
        for name in names:
            if name in self.left:
                member = member_of(shape, name)
                if member is None:
                    raise UntranslatableError(f"{self._kind}: {operation} has no {name}, only {', '.join(shape.members)}")
                parameters[member] = _pairs(shape.members[member], self.take(name)) if name == "tags" else self.take(name)
        written = {key: translated(shape.members[key], each, f"{self._kind}.{key}") for key, each in parameters.items() if each is not None}
        return self._account.call(service, operation, written)


def _pairs(shape: Any, tags: dict[str, str]) -> Any:
    """Return tags as the request writes them: a map, or a list of pairs whose members have service-specific names."""
    if isinstance(shape, ListShape) and isinstance(shape.member, StructureShape):
        return [dict(zip(shape.member.members, pair, strict=True)) for pair in tags.items()]
    return tags
