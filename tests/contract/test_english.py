"""The project's English: the checker finds each pattern, and no folder has more findings than its ceiling."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import english
import pytest
import yaml

CEILINGS = yaml.safe_load(Path(__file__).with_name("ceilings.yaml").read_text(encoding="utf-8"))["english"]


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


def test_no_folder_has_more_findings_than_its_ceiling() -> None:
    counts = Counter(each.path.partition("/")[0] if "/" in each.path else "." for each in english.findings(english.checked_files()))

    assert {folder: (count, CEILINGS[folder]) for folder, count in counts.items() if count > CEILINGS[folder]} == {}
