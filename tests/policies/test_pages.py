"""The rules' reference pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policies import pages as reference
from policies.rules import all_rules

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_the_pages_in_the_repository_are_those_that_the_rules_give() -> None:
    """When this fails: `python -m policies.pages`."""
    assert {path.name: path.read_text() for path in reference.FOLDER.glob("*.md")} == dict(reference.pages())


def test_every_finding_leads_to_a_page_that_is_there() -> None:
    assert [rule.page for rule in all_rules() if not (reference.FOLDER.parents[1] / rule.page).is_file()] == []


def test_the_index_and_a_page_say_what_a_person_needs() -> None:
    written = reference.pages()

    assert "| FLX004 | [`missing-toleration`](missing-toleration.md) | high | GKE and EKS |" in written["README.md"]
    page = written["grace-exceeds-notice.md"]
    assert "| `gke-seconds` | `15` | Seconds that GKE gives pods of a Spot node whose pool does not say. |" in page
    assert "flexspot.dev/ignore-grace-exceeds-notice: why this is accepted; until=2026-12-31; by=who answers for it" in page
    assert "https://docs.aws.amazon.com/" in page


def test_writing_takes_away_the_page_of_a_rule_that_is_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone.md").write_text("old")
    monkeypatch.setattr(reference, "FOLDER", tmp_path)

    reference.main()

    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(reference.pages())
