"""Maintenance windows and exclusions: when GKE may upgrade a cluster by itself."""

from __future__ import annotations

from datetime import date
from enum import StrEnum
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from flexspot.capacity.catalog.data_files import DescribedRecord
from flexspot.capacity.values.names import DAY, TIME_OF_DAY, Name

HOURS_IN_32_DAYS = 48
"""Hours in 32 days in which GKE must be free to upgrade, counted in windows of four hours or more
(https://docs.cloud.google.com/kubernetes-engine/docs/how-to/maintenance-windows-and-exclusions, read 2026-11-25)."""

EXCLUSIONS = 20
"""Maximum number of exclusions of a cluster, of all kinds (documentation of the provider's google_container_cluster, read 2026-11-25)."""


WITHOUT_UPGRADES, WITHOUT_UPGRADES_DAYS = 3, 30
"""Maximum number of exclusions of all upgrades, and maximum days of one.

From an older copy of Google's page on maintenance exclusions (read 2026-11-25). The current page was not read to its end.
"""


class Weekday(StrEnum):
    """A day of the week, as in RFC 5545."""

    MON = "mon"
    TUE = "tue"
    WED = "wed"
    THU = "thu"
    FRI = "fri"
    SAT = "sat"
    SUN = "sun"


class ExclusionScope(StrEnum):
    """Upgrades that an exclusion prevents."""

    NO_UPGRADES = "no_upgrades"
    NO_MINOR_UPGRADES = "no_minor_upgrades"
    NO_MINOR_OR_NODE_UPGRADES = "no_minor_or_node_upgrades"


def _calendar_day(written: str) -> str:
    try:
        date.fromisoformat(written)
    except ValueError as error:
        raise ValueError(f"{written} is not a day of the calendar; use one such as 2026-12-20") from error
    return written


Day = Annotated[str, Field(pattern=DAY), AfterValidator(_calendar_day)]


class MaintenanceExclusion(DescribedRecord):
    """Days on which GKE does not upgrade by itself. Remove an exclusion once it has ended: GKE rejects one that is already over."""

    name: Name
    """Its name, unique in the cluster."""

    scope: ExclusionScope = ExclusionScope.NO_UPGRADES
    """`no_upgrades`: no upgrades at all. `no_minor_upgrades`: only patches. `no_minor_or_node_upgrades`: only patches of the control
    plane, so that no node is replaced."""

    starts: Day
    """First day, in quotes, such as "2026-12-20"; the exclusion starts at 00:00 UTC."""

    ends: Day | None = None
    """The day on which GKE may upgrade again, in quotes. `no_upgrades` requires it. Default: when support for the cluster's version
    ends."""

    @model_validator(mode="after")
    def _has_an_end(self) -> Self:
        if self.ends is None and self.scope is ExclusionScope.NO_UPGRADES:
            raise ValueError("scope no_upgrades requires ends; set it, or choose another scope")
        if self.ends is not None and self.ends <= self.starts:
            raise ValueError(f"ends on {self.ends}, which is not after {self.starts}; use a later day")
        return self

    @property
    def days(self) -> int | None:
        """Length in days; None if only GKE knows the end."""
        return None if self.ends is None else (date.fromisoformat(self.ends) - date.fromisoformat(self.starts)).days


class Maintenance(DescribedRecord):
    """When GKE may upgrade by itself: a maintenance window, in UTC, and exclusions."""

    start_utc: Annotated[str, Field(pattern=TIME_OF_DAY)] = "02:00"
    """Start of the window, as HH:MM in UTC."""

    hours: Annotated[int, Field(ge=4, le=24)] = 4
    """Length of the window in hours. GKE does not count windows shorter than four hours, and requires 48 hours in 32 days."""

    days: tuple[Weekday, ...] = ()
    """Days on which the window starts, such as sat. Default: every day."""

    exclusions: Annotated[tuple[MaintenanceExclusion, ...], Field(max_length=EXCLUSIONS)] = ()
    """Days on which GKE does not upgrade, such as during a product release. Default: none."""

    @model_validator(mode="after")
    def _window_is_long_enough(self) -> Self:
        if len(set(self.days)) < len(self.days):
            raise ValueError("days contains the same day twice; list it once")
        names = [each.name for each in self.exclusions]
        if len(set(names)) < len(names):
            raise ValueError("two exclusions have the same name; give each a unique name")
        # Each day of the week occurs at least four times in any 32 days.
        if self.days and (open_hours := 4 * len(self.days) * self.hours) < HOURS_IN_32_DAYS:
            least = -(-HOURS_IN_32_DAYS // (4 * len(self.days)))
            window = f"{self.hours} hours on {', '.join(self.days)} are {open_hours} hours in 32 days"
            raise ValueError(f"{window}, and GKE requires {HOURS_IN_32_DAYS}; use {least} hours, or more days")
        return self

    @property
    def hours_between_windows(self) -> int:
        """Longest time from the start of a window to the start of the next one, in hours."""
        order = list(Weekday)
        starts = sorted(order.index(day) for day in self.days or order)
        return 24 * max((later - earlier - 1) % len(order) + 1 for earlier, later in zip(starts, [*starts[1:], starts[0]], strict=True))

    @property
    def holds_nodes(self) -> bool:
        """True if nodes keep their version until support for it ends."""
        return any(each.scope is ExclusionScope.NO_MINOR_OR_NODE_UPGRADES and each.ends is None for each in self.exclusions)
