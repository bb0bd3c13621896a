"""Comparison of a text with a reviewed file, which shows changes as a readable difference."""

from __future__ import annotations

import difflib
import os
import re
from typing import TYPE_CHECKING

import pytest
import yaml

from flexspot.capacity.plan.model import plan_data

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from flexspot.capacity.plan.model import Plan

REWRITE = "FLEXSPOT_REWRITE_SNAPSHOTS"
"""Environment variable that, set to 1, rewrites snapshots instead of comparing."""

_HUNK = re.compile(r"@@ -(\d+)(,\d+)? \+\d+(,\d+)? @@")


def plan_text(plan: Plan) -> str:
    """Return the plan as YAML, one value a line, so that differences are readable."""
    return yaml.dump(plan_data(plan), Dumper=yaml.CSafeDumper, sort_keys=False, width=140, default_flow_style=False)


def assert_snapshot(text: str, path: Path) -> None:
    """Fail if `text` is not the content of `path`, with the difference and the way to rewrite the file."""
    if os.environ.get(REWRITE) == "1":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return
    remedy = f"if this is intended, run the test with {REWRITE}=1 and review what git shows"
    if not path.is_file():
        pytest.fail(f"there is no {path.name}; {remedy}", pytrace=False)
    if lines := snapshot_difference(path.read_text(encoding="utf-8"), text, path.name):
        pytest.fail("\n".join([f"{path.name} differs from the current output; {remedy}:", *lines]), pytrace=False)


def snapshot_difference(before: str, after: str, name: str) -> list[str]:
    """Return a unified diff, each hunk with its place in the YAML: `pools, name: l4-spot`. Empty if both are equal."""
    old = before.splitlines()
    lines = list(difflib.unified_diff(old, after.splitlines(), f"{name} as reviewed", f"{name} now", n=2, lineterm=""))
    return list(_placed(lines, old))


def _placed(lines: list[str], old: list[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        if hunk := _HUNK.match(line):
            same, first = next((offset, each) for offset, each in enumerate(lines[number + 1 :]) if not each.startswith(" "))
            # Added lines have the place of the line before them.
            yield f"{line} {_place(old, int(hunk[1]) - 1 + same - first.startswith('+'))}"
        else:
            yield line


def _place(lines: list[str], at: int) -> str:
    """Return the top-level key, and the first line of the list item, around line `at` (from 0)."""
    item = ""
    for line in reversed(lines[: at + 1]):
        if not line.startswith((" ", "-")):
            return f"{line.partition(':')[0]}{', ' if item else ''}{item}"
        if line.startswith("- ") and not item:
            item = line.removeprefix("- ")
    return item


@pytest.fixture
def snapshot() -> Callable[[str, Path], None]:
    """Return `assert_snapshot`, which compares a text with a reviewed file."""
    return assert_snapshot
