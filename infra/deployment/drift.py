"""What was changed by hand since the last run, as a refresh finds it."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pulumi.automation import EngineEvent

_ABSENT = object()
_REFRESH = "refresh"


@dataclass(frozen=True)
class Drift:
    """One field of a resource that is not as it was deployed; `path` is "" for a resource that is gone. Values are as people read them."""

    urn: str
    path: str
    deployed: str
    found: str

    @property
    def resource(self) -> str:
        """The resource as people read it: the last word of its type, and its name."""
        _, _, kind, name = self.urn.split("::", 3)
        return f"{kind.rpartition(':')[2]} {name}"


@dataclass
class Drifts:
    """Hears the engine's events of a run with a refresh, and keeps what the refresh found."""

    found: list[Drift] = field(default_factory=list[Drift])
    _refreshed: set[str] = field(default_factory=set[str])

    def hear(self, event: EngineEvent) -> None:
        """Takes note of one event."""
        if event.resource_pre_event is not None:
            step = event.resource_pre_event.metadata
            (self._refreshed.add if _op(step.op) == _REFRESH else self._refreshed.discard)(step.urn)
        if event.res_outputs_event is not None:
            step = event.res_outputs_event.metadata
            if step.urn not in self._refreshed:
                return
            self._refreshed.discard(step.urn)
            if step.old is None or not step.old.custom:
                return
            if step.new is None or _op(step.op) == "delete":
                self.found.append(Drift(step.urn, "", "there", "gone"))
                return
            changed = differences(dict(step.old.inputs or {}), dict(step.new.inputs or {}))
            self.found += [Drift(step.urn, path, _shown(old), _shown(new)) for path, old, new in changed]


def differences(old: Any, new: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """The paths at which two values differ, with both values; lists are compared by position."""
    if isinstance(old, dict) and isinstance(new, dict):
        before_all, after_all = cast("dict[str, Any]", old), cast("dict[str, Any]", new)
        for key in dict.fromkeys([*before_all, *after_all]):
            yield from differences(before_all.get(key, _ABSENT), after_all.get(key, _ABSENT), f"{path}.{key}" if path else key)
    elif isinstance(old, list) and isinstance(new, list):
        for index, (before, after) in enumerate(zip_longest(cast("list[Any]", old), cast("list[Any]", new), fillvalue=_ABSENT)):
            yield from differences(before, after, f"{path}[{index}]")
    elif old != new:
        yield path, old, new


def _op(op: object) -> str:
    return str(getattr(op, "value", op))


def _shown(value: object) -> str:
    return "not set" if value is _ABSENT else str(value)
