"""The rules of advice as data: what excludes a method, and what goes with an answer."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from enum import StrEnum
from functools import cache
from pathlib import Path

from pydantic import model_validator

from capacity.money.facts import Fact
from capacity.records import Record, Source, read_records, unsourced


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
