"""Own rules tried on fixtures: files named `passes_*`, `fails_*` and `ignores_*`, with the objects of which that must be so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from capacity.values.verdict import Verdict
from policies.core import judge
from policies.inventory.reading.source import from_manifest
from policies.judging import Level, Settings
from policies.lint.run import read_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from policies.own_rules.rule import OwnRule

WORDS: Final = {"passes": Verdict.PASS, "fails": Verdict.FAIL, "ignores": Verdict.NOT_APPLICABLE}

_NEEDED: Final = ("passes", "fails")


@dataclass(frozen=True)
class Tried:
    """One object of a fixture: where it stands, what it must get, and what it got."""

    rule: str
    path: str
    line: int
    wanted: Verdict
    got: Verdict
    message: str

    @property
    def right(self) -> bool:
        """Whether the rule says of it what its file's name says."""
        return self.got is self.wanted


def tried(rule: OwnRule, folder: Path) -> tuple[list[Tried], list[str]]:
    """Every object of a rule's fixtures, and what is wrong with these: a rule needs one object that passes and one that fails.

    A rule that is off is tried all the same.
    """
    wrong: list[str] = []
    found = [each for word in WORDS for each in _of_word(rule, folder / rule.fixtures, word, wrong)]
    there = {each.wanted for each in found}
    missing = [word for word in _NEEDED if WORDS[word] not in there]
    wrong += [f"{rule.name}: there is no object in {rule.fixtures}/{word}_*.yaml" for word in missing]
    return found, wrong


def _of_word(rule: OwnRule, folder: Path, word: str, wrong: list[str]) -> Iterator[Tried]:
    on = Settings(levels={rule.name: Level.MANDATORY})
    for path in sorted(folder.glob(f"{word}_*.y*ml")):
        reading = read_file(str(path))
        wrong += [f"{each.path}:{each.line}: {each.message}" for each in reading.problems]
        for manifest in reading.manifests:
            findings = [each for each in judge(from_manifest(manifest.value), [rule], on) if each.rule == rule.name]
            verdict = next((each.verdict for each in findings if each.verdict is not Verdict.NOT_APPLICABLE), Verdict.NOT_APPLICABLE)
            message = next((each.message for each in findings if each.verdict is verdict), "")
            yield Tried(rule.name, str(path), manifest.line, WORDS[word], verdict, message)
