"""The one place where the linter asks the core for verdicts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from policies.core import judge_all
from policies.lint.input_rules import INPUT_RULES, problem_finding
from policies.reading.source import from_manifest
from policies.rules import all_rules

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from policies.finding import Finding
    from policies.lint.configuration import Configuration
    from policies.lint.manifests import Manifest, Problem
    from policies.suppression import Suppression

_OF_INPUT: Final = frozenset(rule.name for rule in INPUT_RULES)


def judged(manifests: Sequence[Manifest], configuration: Configuration) -> Iterator[tuple[Manifest, Finding]]:
    """Every finding of every rule about every manifest, passes included."""
    # The core knows the rules on objects alone; a suppression of another name is one that it tells of.
    known = tuple(each for each in configuration.settings.suppressions if each.rule not in _OF_INPUT)
    settings = replace(configuration.settings, suppressions=known)
    sources = [from_manifest(manifest.value) for manifest in manifests]
    findings = judge_all(sources, all_rules(), settings, closed=configuration.closed)
    for manifest, listed in zip(manifests, findings, strict=True):
        for finding in listed:
            yield manifest, finding


def told(problem: Problem, configuration: Configuration) -> tuple[Finding, Suppression | None]:
    """The finding that tells of a problem of the input, and why the configuration accepts it, if it does."""
    finding, settings = problem_finding(problem), configuration.settings
    accepted = (
        each.suppression
        for each in settings.suppressions
        if each.covers(finding.rule, finding.object) and (each.suppression.until is None or each.suppression.until >= settings.today)
    )
    return finding, None if finding.rule in settings.locked else next(accepted, None)
