"""The rules named in the guide of seed defects find each defect at the right lines."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from flexspot.capacity.values.verdict import Verdict
from flexspot.policies.core import judge_all
from flexspot.policies.inventory.reading.source import from_manifest, from_pulumi
from flexspot.policies.judging import DEFAULTS
from flexspot.policies.lint.configuration import Configuration
from flexspot.policies.lint.file_reading import Manifest
from flexspot.policies.lint.places import Places
from flexspot.policies.lint.run import lint
from flexspot.policies.lint.yaml_reading import documents_in, yaml_chunks
from flexspot.policies.rules import all_rules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexspot.policies.inventory.reading.source import ObjectSource

DOCS = Path(__file__).resolve().parents[2] / "docs"

GUIDE = DOCS / "guides" / "seed-defects.md"

CAUGHT_BY: dict[str, str] = dict(re.findall(r"^\| G(\d+) \| .+ \| (.+) \|$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE))
"""Last column of the guide's table, by row number."""

TWO_NAMESPACES = re.compile(r"kubectl .*(?:\s(?:-n|--namespace)[ =]\S+.*){2}")


FOLDER = Path(__file__).parent / "seed_defects"
"""Manifests with one defect each. A reported line ends in `# finds: RULE`. A document with `resource` is a Pulumi resource."""

_MARK = re.compile(r"# finds: (.+)$")

Found = set[tuple[int, str]]
"""Lines, each with the rule that reports it."""


def marked(path: Path) -> Found:
    """Return the expected findings from the file's comments."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return {(number, mark[1]) for number, line in enumerate(lines, start=1) if (mark := _MARK.search(line))}


def found(path: Path) -> Found:
    """Return the findings of all rules about the file alone."""
    written = _objects(path)
    places = Places(lambda _: path.read_bytes())
    findings = judge_all([source for _, source in written], all_rules(), DEFAULTS)
    return {
        (places.line(manifest, each.at, each.message), each.rule)
        for (manifest, _), listed in zip(written, findings, strict=True)
        for each in listed
        if each.verdict is Verdict.FAIL
    }


def _objects(path: Path) -> list[tuple[Manifest, ObjectSource]]:
    read: list[tuple[Manifest, ObjectSource]] = []
    for chunk in yaml_chunks(path.read_bytes()):
        for document in documents_in(chunk.text):
            value, line = document.value, chunk.line + document.line
            if "resource" in value:
                source, steps = from_pulumi(value["resource"], value["name"], value["inputs"]), ("inputs",)
            else:
                source, steps = from_manifest(value), ()
            read.append((Manifest(str(path), chunk.line, line, steps, value), source))
    return read


@pytest.mark.parametrize("number", CAUGHT_BY)
def test_a_defect_is_found_by_exactly_the_rules_of_its_row_at_their_lines(number: str) -> None:
    manifests = sorted(FOLDER.glob(f"g{number:>02}_*.yaml"))
    for path in manifests:
        assert found(path) == marked(path), path.name

    assert {rule for path in manifests for _, rule in marked(path)} == set(re.findall(r"\[`([\w-]+)`\]", CAUGHT_BY[number]))


def test_the_table_has_every_defect() -> None:
    assert list(CAUGHT_BY) == [str(number) for number in range(1, 35)]


@pytest.mark.parametrize("guide", sorted((DOCS / "guides").glob("*.md")), ids=lambda path: path.name)
def test_the_objects_of_a_guide_keep_every_rule_as_a_complete_input(guide: Path) -> None:
    report = lint([str(guide)], Configuration(closed=True))

    assert [(each.line, each.finding.rule, each.finding.message) for each in (*report.findings, *report.undecided)] == []
    assert report.objects or guide != GUIDE


def commands(folder: Path) -> Iterator[str]:
    """Yield the command lines of pages. Excludes tables, which may quote a wrong command."""
    for path in sorted(folder.rglob("*.md")):
        yield from (line for line in path.read_text(encoding="utf-8").splitlines() if line.lstrip(" $").startswith("kubectl "))


def test_no_command_of_the_guides_names_two_namespaces() -> None:
    assert TWO_NAMESPACES.search("kubectl get pods -n team-alpha -n team-beta")
    assert [line for line in commands(DOCS) if TWO_NAMESPACES.search(line)] == []


def test_yaml_without_its_indentation_is_reported(tmp_path: Path) -> None:
    flattened = "apiVersion: batch/v1\nkind: Job\nmetadata:\nname: sweep\nspec:\ntemplate:\nmetadata:\nname: sweep\nspec:\n"
    (tmp_path / "job.yaml").write_text(flattened)

    report = lint([str(tmp_path)], Configuration())

    assert {each.line for each in report.open if each.finding.rule == "duplicate-key"} == {7, 8, 9}
