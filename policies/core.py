"""Running rules over objects: the one way from an object to findings, for the engine and for manifests alike."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from capacity.verdict import Finding, Outcome, Severity, Verdict
from policies.reading import views_of
from policies.rule import Level, not_applicable, undecided
from policies.unknown import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from policies.inventory import View
    from policies.reading.source import Source
    from policies.rules import AnyRule
    from policies.settings import Settings

READING = "inventory"
"""Stands in a finding's rule where the object could not be read at all, so that no rule saw it."""


def judge(
    source: Source, rules: Iterable[AnyRule], settings: Settings, read: Callable[[Source], Sequence[View]] = views_of
) -> list[Finding]:
    """The findings of every rule that is not disabled about every view of one object, passes included.

    Never raises for what a rule or a reader does: their defects become findings with the verdict UNKNOWN that name them.
    """
    try:
        views = read(source)
    except Exception as error:  # noqa: BLE001 -- one defect must not stop the other objects, nor the update
        return [
            Finding(
                rule=READING,
                code="FLX000",
                severity=Severity.HIGH,
                verdict=Verdict.UNKNOWN,
                object=source.identity,
                message=f"no rule could judge it: {_defect(error)}",
                remediation="Report it with the shape of the object; until then review this object by hand.",
            )
        ]
    return [
        _finding(rule, view, _judge_one(rule, view, settings))
        for rule in rules
        if settings.level(rule) is not Level.DISABLED
        for view in views
        if isinstance(view, rule.looks_at)
    ]


def _judge_one(rule: AnyRule, view: View, settings: Settings) -> Outcome:
    try:
        outcome = rule.judge(view, settings.parameters(rule))
    except Exception as error:  # noqa: BLE001 -- one defect must not stop the other rules, nor the update
        return undecided(f"the rule itself is broken: {_defect(error)}; report it, and review this object by hand")
    if outcome.verdict is Verdict.FAIL and view.concerned is UNKNOWN:
        return undecided(f"if it makes GPU nodes, which is not known yet: {outcome.reason}")
    if outcome.verdict is Verdict.UNKNOWN and view.partial:
        return not_applicable("only a part of the object is written here")
    return outcome


def _finding(rule: AnyRule, view: View, outcome: Outcome) -> Finding:
    return Finding(
        rule=rule.name,
        code=rule.code,
        severity=rule.severity,
        verdict=outcome.verdict,
        object=view.identity,
        message=outcome.reason,
        remediation=outcome.remedy or rule.remediation,
        link=rule.link,
    )


def _defect(error: Exception) -> str:
    """Type and place of a defect. Not its text, which may quote a secret of the object."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {Path(last.filename).name}, line {last.lineno}"
