"""The rules that the guide of the first documents' defects names find each of them, at the right lines."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from seed_defect_manifests import FOLDER, found, marked

from policies.lint.configuration import Configuration
from policies.lint.run import lint

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCS = Path(__file__).resolve().parents[2] / "docs"

GUIDE = DOCS / "guides" / "seed-defects.md"

CAUGHT_BY: dict[str, str] = dict(re.findall(r"^\| G(\d+) \| .+ \| (.+) \|$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE))
"""The last column of the guide's table, by the number of the row."""

TWO_NAMESPACES = re.compile(r"kubectl .*(?:\s(?:-n|--namespace)[ =]\S+.*){2}")


@pytest.mark.parametrize("number", CAUGHT_BY)
def test_a_defect_is_found_by_the_rules_of_its_row_at_their_lines_and_by_no_other(number: str) -> None:
    manifests = sorted(FOLDER.glob(f"g{number:>02}_*.yaml"))
    for path in manifests:
        assert found(path) == marked(path), path.name

    assert {rule for path in manifests for _, rule in marked(path)} == set(re.findall(r"\[`([\w-]+)`\]", CAUGHT_BY[number]))


def test_the_table_has_every_defect() -> None:
    assert list(CAUGHT_BY) == [str(number) for number in range(1, 35)]


@pytest.mark.parametrize("guide", sorted((DOCS / "guides").glob("*.md")), ids=lambda path: path.name)
def test_the_objects_that_a_guide_shows_keep_every_rule_as_all_there_is(guide: Path) -> None:
    report = lint([str(guide)], Configuration(closed=True))

    assert [(each.line, each.finding.rule, each.finding.message) for each in (*report.findings, *report.undecided)] == []
    assert report.objects or guide != GUIDE


def commands(folder: Path) -> Iterator[str]:
    """The lines that are to be typed: a table may quote a command that is wrong."""
    for path in sorted(folder.rglob("*.md")):
        yield from (line for line in path.read_text(encoding="utf-8").splitlines() if line.lstrip(" $").startswith("kubectl "))


def test_no_command_of_the_guides_names_two_namespaces() -> None:
    assert TWO_NAMESPACES.search("kubectl get pods -n team-alpha -n team-beta")
    assert [line for line in commands(DOCS) if TWO_NAMESPACES.search(line)] == []


def test_yaml_without_its_indentation_is_told_of(tmp_path: Path) -> None:
    flattened = "apiVersion: batch/v1\nkind: Job\nmetadata:\nname: sweep\nspec:\ntemplate:\nmetadata:\nname: sweep\nspec:\n"
    (tmp_path / "job.yaml").write_text(flattened)

    report = lint([str(tmp_path)], Configuration())

    assert {each.line for each in report.open if each.finding.rule == "duplicate-key"} == {7, 8, 9}
