"""The rules of advice as data: what such a file must hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from capacity.catalog.data_files import DataFileError, read_records
from capacity.cost.estimates import AdviceRules, Fact, shipped_rules

if TYPE_CHECKING:
    from pathlib import Path

FILE = """
as_of: 2026-11-21
sources: {here: {citation: made up for this test, as_of: 2026-11-21, verified: false}}
assumptions:
  interruptions_per_node_hour: {value: "0.25", source: here}
  gang_share_taken: {value: "0.5", source: here}
  restart_minutes: {value: "10", source: here}
  spot_wait_hours: {value: "0.5", source: here}
  flex_start_wait_hours: {value: "12", source: here}
  flex_start_discount_percent_at_most: {value: "53", source: here}
  usd_per_gib_between_regions: {value: "0.02", source: here}
rules:
  - {name: first, when: {gang: true}, excludes: [spot], because: of the test, source: here}
  - {name: second, when: {gang: false}, advises: something, because: of the test, source: here}
"""


def test_a_rule_holds_when_all_of_its_facts_are_so(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(FILE)
    first, second = read_records(tmp_path / "rules.yaml", AdviceRules).rules

    assert first.holds({Fact.GANG: True})
    assert not second.holds({Fact.GANG: True})


@pytest.mark.parametrize(
    "line,broken,problem",
    [
        ("excludes: [spot]", "excludes: [on-demand]", "first: on-demand is never excluded"),
        ("name: second", "name: first", "two rules have the same name"),
        ("when: {gang: true}", "when: {gnag: true}", "Input should be 'user_facing'"),
        ("source: here}\nrules", "source: there}\nrules", "usd_per_gib_between_regions: source 'there' is not one of here"),
        ("excludes: [spot], because: of the test, source: here", "excludes: [spot], because: of the test, source: x", "first: source 'x'"),
        ("restart_minutes", "restart_hours", "restart_minutes: Field required"),
    ],
)
def test_a_broken_rule_file_is_told(line: str, broken: str, problem: str, tmp_path: Path) -> None:
    assert line in FILE
    (tmp_path / "rules.yaml").write_text(FILE.replace(line, broken))

    with pytest.raises(DataFileError, match=problem):
        read_records(tmp_path / "rules.yaml", AdviceRules)


def test_every_fact_is_asked_for_by_a_shipped_rule() -> None:
    asked = {fact for rule in shipped_rules().rules for fact in rule.when}

    assert asked == set(Fact), "a fact that no rule asks for is worked out for nothing"
