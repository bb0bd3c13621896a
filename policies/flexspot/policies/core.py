"""Running rules over objects: the only way from an object to findings, for the engine and for manifests alike."""

from __future__ import annotations

import traceback
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from flexspot.capacity.values.verdict import ObjectIdentity, Outcome, Severity, Verdict, not_applicable, undecided
from flexspot.policies.inventory.reading import views_of
from flexspot.policies.inventory.reading.source import ObjectSource, annotations_of
from flexspot.policies.inventory.views import Inventory, View
from flexspot.policies.judging import Level, Parameters, Rule, Settings
from flexspot.policies.rules import all_rules
from flexspot.policies.values.field import UNKNOWN, Field
from flexspot.policies.values.finding import CODE, NOTHING, PREFIX, RULE, Finding, Secrets, Suppressions, suppressions_of, written_on

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Sequence


class Assignment(NamedTuple):
    """A rule that judges a view, with its parameters."""

    place: int
    """Index among all rules, which is the order of findings."""
    rule: Rule
    parameters: Parameters


class RuleIndex:
    """The enabled rules of one run: those that compare a view with others (`among`), or those that judge it alone."""

    def __init__(
        self, rules: Iterable[Rule], settings: Settings, *, among: bool, reported: Container[Verdict] = frozenset(Verdict)
    ) -> None:
        self._assignments = tuple(
            Assignment(place, rule, settings.parameters(rule))
            for place, rule in enumerate(rules)
            if rule.among is among and settings.level(rule) is not Level.DISABLED
        )
        self._of_class: dict[type[View], tuple[Assignment, ...]] = {}
        self._of_classes: dict[tuple[type[View], ...], list[tuple[Assignment, int]]] = {}
        self._reported = reported
        self._unreported: dict[tuple[int, Verdict], Finding] = {}

    def finding(self, assignment: Assignment, view: View, outcome: Outcome) -> Finding:
        """Return the finding of a rule about a view. For a verdict that is not reported, it contains the rule and the verdict only."""
        verdict = outcome.verdict
        if verdict in self._reported:
            return finding_of(assignment.rule, view.identity, outcome)
        key = assignment.place, verdict
        if key not in self._unreported:
            rule = assignment.rule
            self._unreported[key] = Finding(rule.name, rule.code, rule.severity, verdict, _NO_OBJECT, "", "")
        return self._unreported[key]

    def assignments(self, views: Sequence[View]) -> list[tuple[Assignment, View]]:
        """Return each rule with each of the views that it judges: by rule, then in the order of the views."""
        if len(views) == 1:
            return [(assignment, views[0]) for assignment in self._of(type(views[0]))]
        # A run has few shapes of objects, so the rules of each shape are calculated once.
        kinds = tuple(map(type, views))
        if kinds not in self._of_classes:
            found = [(assignment, place) for place, kind in enumerate(kinds) for assignment in self._of(kind)]
            self._of_classes[kinds] = sorted(found, key=lambda each: each[0].place)
        return [(assignment, views[place]) for assignment, place in self._of_classes[kinds]]

    def _of(self, kind: type[View]) -> tuple[Assignment, ...]:
        if kind not in self._of_class:
            self._of_class[kind] = tuple(assignment for assignment in self._assignments if issubclass(kind, assignment.rule.looks_at))
        return self._of_class[kind]


_NOTHING_ELSE = Inventory(())
_NO_OBJECT = ObjectIdentity("", "", "")

READING = "inventory"
"""Rule name of a finding about an object that could not be read, so that no rule judged it."""


_BROKEN = "the rule itself is broken: "


def is_defect(finding: Finding) -> bool:
    """Return whether the finding reports a broken rule or reader, so that nothing was judged."""
    return finding.rule == READING or finding.message.startswith(_BROKEN)


@dataclass(frozen=True)
class Reading:
    """One object as rules see it."""

    source: ObjectSource
    views: tuple[View, ...]
    defect: Finding | None = None
    """Finding that it could not be read."""

    @cached_property
    def suppressing(self) -> tuple[Field, ...]:
        """Annotations of the object and of its pod templates that suppress a rule."""
        return tuple(each for each in annotations_of(self.source) if any(True for _ in written_on([each])))


def read_source(source: ObjectSource, read: Callable[[ObjectSource], Sequence[View]] = views_of) -> Reading:
    """Return the views of one object. Never raises: a reader's error becomes a finding."""
    try:
        return Reading(source, tuple(read(source)))
    except Exception as error:  # noqa: BLE001 -- one defect must not stop the other objects, nor the update
        defect = Finding(
            rule=READING,
            code="FLX000",
            severity=Severity.HIGH,
            verdict=Verdict.UNKNOWN,
            object=source.identity,
            message=f"no rule could judge it: {_defect(error)}",
            remediation="Report it with the shape of the object, and review this object by hand until it is fixed.",
        )
        return Reading(source, (), defect)


def judge(source: ObjectSource, rules: Iterable[Rule], settings: Settings) -> list[Finding]:
    """Return the findings of every enabled rule that needs no other object, passes included."""
    return judge_alone(read_source(source), RuleIndex(rules, settings, among=False), settings)


def judge_all(
    sources: Iterable[ObjectSource],
    rules: Iterable[Rule],
    settings: Settings,
    *,
    closed: bool = False,
    read: Callable[[ObjectSource], Sequence[View]] = views_of,
) -> list[list[Finding]]:
    """Return the findings of every rule, one list per object in the order of `sources`.

    `closed`: the given objects are the complete set.
    """
    given = list(sources)
    judged = judge_scopes(given, rules, settings, [range(len(given))], closed=closed, read=read)
    return [[finding for finding, _ in findings] for findings in judged]


def judge_scopes(  # noqa: PLR0913 -- the inputs of a run
    sources: Sequence[ObjectSource],
    rules: Iterable[Rule],
    settings: Settings,
    scopes: Sequence[Sequence[int]],
    *,
    closed: bool = False,
    excerpts: Container[int] = (),
    unjudged: Container[int] = (),
    reported: Container[Verdict] = frozenset(Verdict),
    read: Callable[[ObjectSource], Sequence[View]] = views_of,
) -> list[list[tuple[Finding, tuple[int, ...]]]]:
    """Return findings as `judge_all` does, but compare objects only within a scope. Each finding has the numbers of its scopes.

    `scopes` list the indexes of their objects among `sources`; an object may be in several. Findings about a single object have no scope.
    A scope that decides takes precedence over one that does not, and a violation over a pass.

    `excerpts`: numbers of scopes that are pages. They never prove that an object does not exist.
    `unjudged`: indexes of objects that other objects are compared with, and that get no findings.
    `reported`: verdicts whose findings are complete. Findings of other verdicts contain the rule and the verdict only.
    """
    listed = list(rules)
    alone = RuleIndex(listed, settings, among=False, reported=reported)
    readings = [read_source(source, read) for source in sources]
    among = RuleIndex(listed, settings, among=True, reported=reported)
    across: list[list[tuple[int, list[Finding]]]] = [[] for _ in readings]
    for number, members in enumerate(scopes):
        within = [readings[place] for place in members]
        subjects = [place for place in members if place not in unjudged]
        inventory = Inventory(_views(within), closed, number in excerpts)
        judged = _judged_across([readings[place] for place in subjects], among, settings, within, inventory)
        for place, findings in zip(subjects, judged, strict=True):
            across[place].append((number, findings))
    return [
        [] if place in unjudged else [*((finding, ()) for finding in judge_alone(reading, alone, settings)), *_once(_merged(of_scopes))]
        for place, (reading, of_scopes) in enumerate(zip(readings, across, strict=True))
    ]


def _once(findings: Iterable[tuple[Finding, tuple[int, ...]]]) -> Iterator[tuple[Finding, tuple[int, ...]]]:
    """Yield each violation once. A problem of the whole object would otherwise be repeated for each of its pod templates."""
    yielded: set[tuple[str, str, str, tuple[int, ...]]] = set()
    for finding, scopes in findings:
        key = finding.rule, finding.message, finding.at, scopes
        if finding.verdict in _DECIDED[0]:
            if key in yielded:
                continue
            yielded.add(key)
        yield finding, scopes


_DECIDED = (frozenset({Verdict.FAIL, Verdict.SUPPRESSED}), frozenset({Verdict.PASS}), frozenset({Verdict.NOT_APPLICABLE}))
"""Verdicts in order of precedence: the first group found in any scope is reported. UNKNOWN is reported only where none is found."""


def _merged(of_scopes: list[tuple[int, list[Finding]]]) -> Iterator[tuple[Finding, tuple[int, ...]]]:
    """Yield the merged findings of the scopes of one object. Each scope applies the same rules to the same views, so their orders agree."""
    if len(of_scopes) == 1:
        [(number, findings)] = of_scopes
        yield from ((finding, (number,)) for finding in findings)
        return
    numbers = [number for number, _ in of_scopes]
    for each in zip(*(findings for _, findings in of_scopes), strict=True):
        verdicts = {finding.verdict for finding in each}
        wanted = next((kinds for kinds in _DECIDED if verdicts & kinds), frozenset[Verdict]())
        alike: dict[tuple[Verdict, str, str], tuple[Finding, list[int]]] = {}
        for number, finding in zip(numbers, each, strict=True):
            if finding.verdict in wanted or not wanted:
                alike.setdefault((finding.verdict, finding.message, finding.at), (finding, []))[1].append(number)
        yield from ((finding, tuple(of)) for finding, of in alike.values())


def judge_alone(reading: Reading, alone: RuleIndex, settings: Settings) -> list[Finding]:
    """Return findings as `judge` does, for an object that has been read, and report problems of its suppressions.

    `alone` are the rules that need no other object. Never raises: a defect of a rule becomes an UNKNOWN finding that names it.
    """
    secrets = reading.source.secrets
    if reading.defect:
        return [secrets.hide(reading.defect)]
    accepted = _accepted(reading, settings)
    findings = _findings(reading, alone, _NOTHING_ELSE, accepted)
    findings += [of_suppression(reading.source.identity, problem) for problem in accepted.problems]
    return [secrets.hide(each) for each in findings] if secrets.texts else findings


def judge_across(readings: Sequence[Reading], rules: Iterable[Rule], settings: Settings) -> list[list[Finding]]:
    """Return the findings of the rules that need other objects, one list for each of `readings`."""
    among = RuleIndex(rules, settings, among=True)
    return _judged_across(readings, among, settings, readings, Inventory(_views(readings)))


def _views(readings: Iterable[Reading]) -> tuple[View, ...]:
    return tuple(view for reading in readings for view in reading.views)


def _judged_across(
    readings: Sequence[Reading], among: RuleIndex, settings: Settings, within: Sequence[Reading], inventory: Inventory
) -> list[list[Finding]]:
    """Return the findings about `readings`, which are part of `within`, without the secrets of any of these objects."""
    secrets = Secrets.of_all(reading.source.secrets for reading in within)
    judged = [_findings(reading, among, inventory, _accepted(reading, settings)) if reading.views else [] for reading in readings]
    return [[secrets.hide(each) for each in findings] for findings in judged] if secrets.texts else judged


def _findings(reading: Reading, index: RuleIndex, inventory: Inventory, accepted: Suppressions) -> list[Finding]:
    found = [
        index.finding(assignment, view, _judge_one(assignment, view, inventory)) for assignment, view in index.assignments(reading.views)
    ]
    if not accepted.valid:
        return found
    return [
        replace(each, verdict=Verdict.SUPPRESSED, suppressed=accepted.valid[each.rule])
        if each.verdict is Verdict.FAIL and each.rule in accepted.valid
        else each
        for each in found
    ]


def _judge_one(assignment: Assignment, view: View, inventory: Inventory) -> Outcome:
    rule, parameters = assignment.rule, assignment.parameters
    try:
        assert rule.judge, "a rule about objects has its function"  # noqa: S101 -- a defect of the rule, which becomes a finding
        outcome = rule.judge(view, parameters, inventory) if rule.among else rule.judge(view, parameters)
    except Exception as error:  # noqa: BLE001 -- one defect must not stop the other rules, nor the update
        return undecided(f"{_BROKEN}{_defect(error)}; report it, and review this object by hand")
    if outcome.verdict is Verdict.FAIL and view.concerned is UNKNOWN and not view.partial:
        return undecided(f"if it creates GPU nodes, which is not known yet: {outcome.reason}")
    if view.partial and (outcome.verdict is Verdict.UNKNOWN or (outcome.verdict is Verdict.FAIL and view.concerned is UNKNOWN)):
        return not_applicable("only part of the object is written here")
    return outcome


def _accepted(reading: Reading, settings: Settings) -> Suppressions:
    if not reading.suppressing and not settings.suppressions:
        return NOTHING
    locked = {**{rule.name: settings.locks(rule) for rule in all_rules()}, **{name: name in settings.locked for name in settings.custom}}
    return suppressions_of(reading.suppressing, reading.source.identity, settings.suppressions, locked, settings.today)


def finding_of(rule: Rule, identity: ObjectIdentity, outcome: Outcome) -> Finding:
    """Return an outcome as a finding, with the texts of its rule."""
    return Finding(
        rule=rule.name,
        code=rule.code,
        severity=rule.severity,
        verdict=outcome.verdict,
        object=identity,
        message=outcome.reason,
        remediation=outcome.remedy or rule.remediation,
        link=rule.link,
        at=outcome.at,
        page=rule.page,
        adds=outcome.adds,
    )


def of_suppression(identity: ObjectIdentity, problem: str, at: str = "metadata.annotations") -> Finding:
    """Return the finding about a suppression that does not count."""
    return Finding(
        rule=RULE,
        code=CODE,
        severity=Severity.MEDIUM,
        verdict=Verdict.FAIL,
        object=identity,
        message=f"a suppression is invalid: {problem}",
        remediation=f"write {PREFIX}RULE: REASON; until=DAY; by=WHO, with a rule's name and a reason, or remove it",
        at=at,
        page="docs/policies.md",
    )


def _defect(error: Exception) -> str:
    """Return type and place of a defect. Not its text, which may quote a secret of the object."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {Path(last.filename).name}, line {last.lineno}"
