"""Manifests with one defect each of those that the project's source documents teach, and where rules find it. Not a test.

A line that a rule must name ends in `# finds: RULE`. A document with `resource` is a Pulumi resource, as in the rules' own fixtures.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from capacity.values.verdict import Verdict
from policies.core import judge_all
from policies.inventory.reading.source import from_manifest, from_pulumi
from policies.judging import DEFAULTS
from policies.lint.chunks import yaml_chunks
from policies.lint.file_reading import Manifest
from policies.lint.places import Places
from policies.lint.yaml_reading import documents_in
from policies.rules import all_rules

if TYPE_CHECKING:
    from policies.inventory.reading.source import Source

FOLDER = Path(__file__).parent / "seed_defects"

_MARK = re.compile(r"# finds: (.+)$")

Found = set[tuple[int, str]]
"""Lines, each with the rule that names it."""


def marked(path: Path) -> Found:
    """What the file's comments say that rules must find."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return {(number, mark[1]) for number, line in enumerate(lines, start=1) if (mark := _MARK.search(line))}


def found(path: Path) -> Found:
    """What all rules find in the file, nothing else being known."""
    written = _objects(path)
    places = Places(lambda _: path.read_bytes())
    findings = judge_all([source for _, source in written], all_rules(), DEFAULTS)
    return {
        (places.line(manifest, each.at, each.message), each.rule)
        for (manifest, _), listed in zip(written, findings, strict=True)
        for each in listed
        if each.verdict is Verdict.FAIL
    }


def _objects(path: Path) -> list[tuple[Manifest, Source]]:
    read: list[tuple[Manifest, Source]] = []
    for chunk in yaml_chunks(path.read_bytes()):
        for document in documents_in(chunk.text):
            value, line = document.value, chunk.line + document.line
            if "resource" in value:
                source, steps = from_pulumi(value["resource"], value["name"], value["inputs"]), ("inputs",)
            else:
                source, steps = from_manifest(value), ()
            read.append((Manifest(str(path), chunk.line, line, steps, value), source))
    return read
