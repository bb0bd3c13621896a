"""Manual changes since the last run, as a refresh finds them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from flexspot.capacity.values.json_differences import ABSENT, differences, written_path

if TYPE_CHECKING:
    from pulumi.automation import EngineEvent

_REFRESH = "refresh"


@dataclass(frozen=True)
class Drift:
    """One field of a resource that differs from its deployed value. Values are formatted for people."""

    urn: str
    path: str
    """Empty for a resource that is gone."""
    deployed: str
    found: str

    @property
    def resource(self) -> str:
        """The resource as shown to people: the last word of its type, and its name."""
        _, _, kind, name = self.urn.split("::", 3)
        return f"{kind.rpartition(':')[2]} {name}"


@dataclass
class Drifts:
    """Collects the differences that a refresh finds, from the events of a run."""

    found: list[Drift] = field(default_factory=list[Drift])
    _refreshed: set[str] = field(default_factory=set[str])

    def hear(self, event: EngineEvent) -> None:
        """Record one event."""
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
            self.found += [Drift(step.urn, written_path(path), _shown(old), _shown(new)) for path, old, new in changed]


def _op(op: object) -> str:
    return str(getattr(op, "value", op))


def _shown(value: object) -> str:
    return "not set" if value is ABSENT else str(value)
