"""Mistakes in good manifests. Most are found by their rule, none prevents judging, and mutations.yaml lists the others."""

from __future__ import annotations

import copy
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from flexspot.policies.core import is_defect
from flexspot.policies.lint.configuration import Configuration
from flexspot.policies.lint.run import lint

if TYPE_CHECKING:
    from flexspot.policies.lint.report import LintReport

FOLDER = Path(__file__).parent
GOOD = FOLDER / "good"
MUTATIONS: list[dict[str, Any]] = yaml.safe_load((FOLDER / "mutations.yaml").read_text())
CLOUDS = ("eks", "gke")


@cache
def good(cloud: str) -> dict[str, list[Any]]:
    """Return the objects of each file."""
    return {f"{cloud}/{path.name}": list(yaml.safe_load_all(path.read_text())) for path in sorted((GOOD / cloud).glob("*.yaml"))}


def judged(folder: Path, files: dict[str, list[Any]]) -> LintReport:
    for name, objects in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(yaml.safe_dump_all(objects, sort_keys=False))
    return lint([str(folder)], Configuration())


def change(objects: list[Any], of: str, values: dict[str, Any]) -> None:
    """Set each path of the object to its value, or remove it if the value is None. ~1 is a / within a step."""
    kind, name = of.split("/")
    [first, *_] = [each for each in objects if (each["kind"], each["metadata"]["name"]) == (kind, name)]
    for path, value in values.items():
        *above, last = (step.replace("~1", "/") for step in path.split("/"))
        here: Any = first
        for step in above:
            here = here[int(step)] if isinstance(here, list) else here.setdefault(step, {})
        if isinstance(here, list):
            here[int(last) : int(last) + 1] = [] if value is None else [value]
        elif value is None:
            del here[last]
        else:
            here[last] = value


def mutated(mutation: dict[str, Any]) -> dict[str, list[Any]]:
    files = copy.deepcopy(good(mutation["in"].split("/")[0]))
    for each in (mutation, *([mutation["and"]] if "and" in mutation else [])):
        change(files[each["in"]], each["of"], each["set"])
    return files


@pytest.mark.parametrize("cloud", CLOUDS)
def test_the_good_manifests_have_no_finding(cloud: str, tmp_path: Path) -> None:
    report = judged(tmp_path, good(cloud))

    assert [each.finding.message for each in report.open] == []
    assert report.objects == sum(map(len, good(cloud).values()))


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda each: each["mistake"].replace(" ", "-"))
def test_a_mistake_is_found_by_its_rule(mutation: dict[str, Any], tmp_path: Path) -> None:
    files = mutated(mutation)
    assert files != good(mutation["in"].split("/")[0])
    report = judged(tmp_path, files)

    assert [each for each in (*report.findings, *report.undecided) if is_defect(each.finding)] == []
    reported = {each.finding.rule for each in report.open}
    assert mutation["found_by"] in reported if mutation["found_by"] else reported == set()


def test_at_least_fifty_five_of_sixty_mistakes_are_found() -> None:
    found = [each for each in MUTATIONS if each["found_by"]]

    assert len(MUTATIONS) >= 60
    assert len(found) / len(MUTATIONS) >= 55 / 60
    assert len({each["found_by"] for each in found}) >= 45
