"""The rules of advice as data: what excludes a method, and what goes with an answer."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from enum import StrEnum
from functools import cache
from pathlib import Path

from pydantic import model_validator

from capacity.catalog.data_files import Record, Source, read_records, unsourced


class Fact(StrEnum):
    """True or false of a job; the first group is said by its owner, the second is worked out.

    RESUMES: it goes on from a checkpoint, or consists of pieces that can be done again. GANG: it needs several nodes at once. DEADLINE: it
    has one. STEADY: around the clock for a year. DATA_ELSEWHERE: its data is in another region.

    SPOT_PAYS: a run on Spot, overhead included, costs less than on-demand. LATE_ON_SPOT: more runs on Spot would be late than is allowed.
    SLACK_FOR_HYBRID: there is time before the deadline in which Spot can be tried. FLEX_START_OFFERED: DWS gives this machine.
    FITS_FLEX_START: the work is no longer than DWS lets a node run. CAN_WAIT_FOR_FLEX_START, CAN_WAIT_FOR_SPOT: the expected wait breaks
    neither start nor deadline.
    """

    USER_FACING = "user_facing"
    INTERACTIVE = "interactive"
    INTERRUPTIBLE = "interruptible"
    RESUMES = "resumes"
    GANG = "gang"
    DEADLINE = "deadline"
    STEADY = "steady"
    SHARED = "shared"
    GUARANTEED = "guaranteed"
    DATA_ELSEWHERE = "data_elsewhere"
    SPOT_PAYS = "spot_pays"
    LATE_ON_SPOT = "late_on_spot"
    SLACK_FOR_HYBRID = "slack_for_hybrid"
    FLEX_START_OFFERED = "flex_start_offered"
    FITS_FLEX_START = "fits_flex_start"
    CAN_WAIT_FOR_FLEX_START = "can_wait_for_flex_start"
    CAN_WAIT_FOR_SPOT = "can_wait_for_spot"


class Method(StrEnum):
    """How to get capacity for a job: the capacity types, and HYBRID, which is Spot until on-demand is needed to end in time."""

    SPOT = "spot"
    HYBRID = "hybrid"
    FLEX_START = "flex-start"
    QUEUED = "queued"
    RESERVED = "reserved"
    ON_DEMAND = "on-demand"


class Rule(Record):
    """`when` all of its facts are so, the methods in `excludes` are out, `advises` is said, and `because` says why."""

    name: str
    when: dict[Fact, bool]
    excludes: tuple[Method, ...] = ()
    advises: str | None = None
    because: str
    source: str

    def holds(self, facts: dict[Fact, bool]) -> bool:
        """True when every fact that it asks for is as it asks."""
        return all(facts[fact] is value for fact, value in self.when.items())


class Assumption(Record):
    """A figure that is used where none is given."""

    value: Decimal
    source: str


class Assumptions(Record):
    """What is assumed; durations as their names say."""

    interruptions_per_node_hour: Assumption
    restart_minutes: Assumption
    spot_wait_hours: Assumption
    flex_start_wait_hours: Assumption
    flex_start_discount_percent_at_most: Assumption
    usd_per_gib_between_regions: Assumption


class AdviceRules(Record):
    """The file of the rules. On-demand is never excluded: it is what is left when nothing else is."""

    as_of: date
    sources: dict[str, Source]
    assumptions: Assumptions
    rules: tuple[Rule, ...]

    @model_validator(mode="after")
    def _rules_are_sourced_and_do_something(self) -> AdviceRules:
        if problem := unsourced(((rule.name, rule.source) for rule in self.rules), self.sources):
            raise ValueError(problem)
        assumed = ((name, each.source) for name, each in dict(self.assumptions).items())
        if problem := unsourced(assumed, self.sources):
            raise ValueError(problem)
        names = [rule.name for rule in self.rules]
        if len(set(names)) < len(names):
            raise ValueError("two rules have the same name")
        if wrong := [rule.name for rule in self.rules if Method.ON_DEMAND in rule.excludes]:
            raise ValueError(f"{', '.join(wrong)}: on-demand is never excluded")
        return self


@cache
def shipped_rules() -> AdviceRules:
    """The rules that come with the package."""
    return read_records(Path(__file__).with_name("advice_rules.yaml"), AdviceRules)
