"""The project's English: the checker finds each pattern, and nothing in the checkout has one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import english
import pytest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    "source,pattern",
    [
        ('"""Whether it works."""', "question word first"),
        ('LIMIT = 3\n"""How many are shown."""', "question word first"),
        ('"""A price that\n\nis unknown."""', "broken in mid-sentence"),
        ("# Nobody reads this.", "nobody or somebody"),
        ('raise ValueError("the cluster is told of it")', "told"),
        ('error = f"{name} is with {value}; leave it out"', "is with, is none"),
        ("told_views = 1", "identifier"),
        (f'"""{"word " * 41}."""', "long sentence"),
    ],
)
def test_each_pattern_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, pattern: str) -> None:
    monkeypatch.setattr(english, "ROOT", tmp_path)
    (tmp_path / "module.py").write_text(f"{source}\n", encoding="utf-8")

    assert [each.pattern for each in english.findings([tmp_path / "module.py"])] == [pattern]


def test_plain_sentences_code_and_tables_of_markdown_have_no_findings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(english, "ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text(
        "# Prices\n\nRun `nobody` if there is none.\n\n    told of\n\n| a | b |\n|---|---|\n| price | hour |\n", encoding="utf-8"
    )

    assert list(english.findings([page])) == []


def test_no_file_has_a_finding() -> None:
    assert [str(each) for each in english.findings(english.checked_files())] == []
