"""Changes of resources between two previews without deployment: created, changed in place, replaced or deleted."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, cast

from flexspot.capacity.values.engine_marks import UNKNOWN_TEXT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    Inputs = Mapping[str, Any]


class ResourceOperation(StrEnum):
    """Kind of a resource's change."""

    REPLACED = "replaced"
    DELETED = "deleted"
    CHANGED = "changed"
    CREATED = "created"


@dataclass(frozen=True)
class ProviderAnswer:
    """A provider's answer to changed inputs."""

    paths: tuple[str, ...]
    """Paths of inputs that differ."""
    replacing: tuple[str, ...] = ()
    """Those of them that require a replacement of the resource."""
    deletes_first: bool = False
    """True if the old resource is deleted before the new one is created."""


if TYPE_CHECKING:
    Ask = Callable[[str, dict[str, Any], dict[str, Any]], ProviderAnswer]


@dataclass(frozen=True)
class ResourceChange:
    """The change of one resource."""

    urn: str
    becomes: ResourceOperation
    old: Inputs | None
    """Inputs before the change. None if it is created."""
    new: Inputs | None
    """Inputs after the change. None if it is deleted."""
    paths: tuple[str, ...] = ()
    """Paths of inputs that differ. For a replacement, those that require it."""
    deletes_first: bool = False
    """True if a replacement deletes the old resource before it creates the new one."""

    @property
    def urn_type(self) -> str:
        """Its type, prefixed with the types of its parent components."""
        return self.urn.split("::")[2]

    @property
    def token(self) -> str:
        """Its type."""
        return self.urn_type.rpartition("$")[2]

    @property
    def name(self) -> str:
        """Its name in the program."""
        return self.urn.split("::", 3)[3]


def resource_changes(base: Iterable[Inputs], head: Iterable[Inputs], ask: Ask, unknown: object) -> list[ResourceChange]:
    """Return the resources that differ between two plan files, replaced and deleted ones first. Components themselves are omitted.

    `ask` answers for the provider of a type, given old and new inputs, with `unknown` for a value that is not known. A value that is
    unknown in both previews counts as unchanged.
    """
    before, after = ({str(each["urn"]): each for each in side if _is_deployed(each)} for side in (base, head))
    found: list[ResourceChange] = []
    for urn in dict.fromkeys((*before, *after)):
        old, new = (side[urn]["inputs"] if urn in side else None for side in (before, after))
        if old is None or new is None:
            found.append(ResourceChange(urn, ResourceOperation.CREATED if old is None else ResourceOperation.DELETED, old, new))
            continue
        if old == new:
            continue
        answer = ask(urn.split("::")[2].rpartition("$")[2], *_blanked(old, new, unknown))
        if answer.paths:
            becomes, paths = (
                (ResourceOperation.REPLACED, answer.replacing) if answer.replacing else (ResourceOperation.CHANGED, answer.paths)
            )
            found.append(ResourceChange(urn, becomes, old, new, paths, answer.deletes_first))
    order = list(ResourceOperation)
    return sorted(found, key=lambda each: (order.index(each.becomes), each.urn))


def as_the_engine_marks(value: Any) -> Any:
    """Return inputs of a plan file with the engine's marker for unknown values."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return UNKNOWN_TEXT if fields == _UNKNOWN else {key: as_the_engine_marks(each) for key, each in fields.items()}
    return [as_the_engine_marks(each) for each in cast("list[Any]", value)] if isinstance(value, list) else value


_UNKNOWN = {"$unknown": True}
_SAME = "(not known before it is deployed)"


def _blanked(old: Any, new: Any, unknown: object) -> tuple[Any, Any]:
    """Return both inputs, with `unknown` for values that one of them does not know, and the same text for values unknown in both."""
    if old == _UNKNOWN and new == _UNKNOWN:
        return _SAME, _SAME
    if _UNKNOWN in (old, new):
        return (unknown, new) if old == _UNKNOWN else (old, unknown)
    if isinstance(old, dict) and isinstance(new, dict):
        pairs = {key: _blanked(old.get(key, _MISSING), new.get(key, _MISSING), unknown) for key in dict.fromkeys((*old, *new))}
        first, second = ({key: pair[side] for key, pair in pairs.items() if pair[side] is not _MISSING} for side in (0, 1))
        return first, second
    if isinstance(old, list) and isinstance(new, list):
        longest = max(len(old), len(new))
        filled = [_blanked(_at(old, number), _at(new, number), unknown) for number in range(longest)]
        one, other = ([pair[side] for pair in filled if pair[side] is not _MISSING] for side in (0, 1))
        return one, other
    return _alone(old, unknown), _alone(new, unknown)


_MISSING = object()


def _at(items: Sequence[Any], number: int) -> Any:
    return items[number] if number < len(items) else _MISSING


def _alone(value: Any, unknown: object) -> Any:
    """Return a value that only one of both inputs has, with `unknown` for unknown parts."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return unknown if fields == _UNKNOWN else {key: _alone(each, unknown) for key, each in fields.items()}
    return [_alone(each, unknown) for each in cast("list[Any]", value)] if isinstance(value, list) else value


def _is_deployed(resource: Inputs) -> bool:
    """Return whether a provider deploys the resource. Older plan files lack `custom`: then the type identifies components."""
    return bool(resource.get("custom", not str(resource["type"]).startswith(("flexspot:", "pulumi:pulumi:"))))
