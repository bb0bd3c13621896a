"""The rules' reference pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from flexspot.capacity.values.verdict import Verdict
from flexspot.policies import pages as reference
from flexspot.policies.core import judge_all
from flexspot.policies.inventory.reading.source import ObjectSource, from_manifest, from_pulumi
from flexspot.policies.judging import DEFAULTS
from flexspot.policies.rules import all_rules

if TYPE_CHECKING:
    from flexspot.policies.judging import Rule


@pytest.mark.slow
def test_the_rule_pages_in_the_repository_are_up_to_date() -> None:
    """If this fails, run `python -m flexspot.policies.pages`."""
    assert {path.name: path.read_text() for path in reference.FOLDER.glob("*.md")} == dict(reference.pages())


def test_every_rule_names_the_two_fixtures_of_its_page() -> None:
    named = yaml.safe_load((reference.FIXTURES / "page_examples.yaml").read_text())

    assert list(named) == [rule.name for rule in all_rules()]


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.name)
def test_a_rule_fails_and_passes_the_examples_of_its_page(rule: Rule) -> None:
    page = (reference.FOLDER / f"{rule.name}.md").read_text()
    bad, good = (page.partition(f"## {title}\n\n```yaml\n")[2].partition("```")[0] for title in ("Breaks it", "Keeps it"))

    assert verdicts_of(rule, bad) >= {Verdict.FAIL}
    assert Verdict.PASS in verdicts_of(rule, good)
    assert not {Verdict.FAIL, Verdict.UNKNOWN} & verdicts_of(rule, good)


def verdicts_of(rule: Rule, example: str) -> set[Verdict]:
    """Return the verdicts of a rule about the first object of an example, compared with the others."""
    sources = [source_of(document) for document in yaml.load_all(example, Loader=yaml.CSafeLoader)]
    return {finding.verdict for finding in judge_all(sources, [rule], DEFAULTS)[0]}


def source_of(document: dict[str, Any]) -> ObjectSource:
    if "resources" not in document:
        return from_manifest(document)
    [(name, resource)] = document["resources"].items()
    return from_pulumi(resource["type"], name, resource["properties"])
