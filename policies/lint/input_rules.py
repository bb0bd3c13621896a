"""What can be wrong with the text of a manifest, described as rules are: with a code, a severity, a level and a remedy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from capacity.values.verdict import ObjectIdentity, Severity, Verdict
from policies.finding import Finding
from policies.lint.manifests import InputProblem
from policies.rule import BOTH_CLOUDS, PASSES, Level, Rule

if TYPE_CHECKING:
    from capacity.values.verdict import Outcome
    from policies.lint.manifests import Problem


def _never(_view: Any, _parameters: Any) -> Outcome:
    """No view is of these rules: the reader of files finds what they stand for."""
    return PASSES


INPUT_RULES: Final[tuple[Rule[Any], ...]] = (
    Rule(
        code="FLX901",
        name=InputProblem.UNREADABLE,
        severity=Severity.HIGH,
        level=Level.MANDATORY,
        clouds=BOTH_CLOUDS,
        looks_at=(),
        judge=_never,
        why="What cannot be read is judged by no rule, and what is applied may not be what a reviewer believes to read.",
        remediation="Mend the text so that `kubectl apply --dry-run=client -f FILE` takes it; split what is too long into several files.",
        link="https://yaml.org/spec/1.1/",
    ),
    Rule(
        code="FLX902",
        name=InputProblem.DUPLICATE_KEY,
        severity=Severity.HIGH,
        level=Level.MANDATORY,
        clouds=BOTH_CLOUDS,
        looks_at=(),
        judge=_never,
        why="YAML forbids a key that one mapping holds twice. Tools that take it keep the last value and say nothing of the first, which "
        "may be the limit or the taint that a reviewer saw.",
        remediation="Keep one of the two keys, with everything that belongs below it.",
        link="https://yaml.org/spec/1.1/#id932806",
    ),
)


def problem_finding(problem: Problem) -> Finding:
    """The finding that tells of a problem."""
    [rule] = [each for each in INPUT_RULES if each.name == problem.kind]
    version, kind, namespace, name = problem.named
    return Finding(
        rule=rule.name,
        code=rule.code,
        severity=rule.severity,
        verdict=Verdict.FAIL,
        object=ObjectIdentity(version, kind, name, namespace),
        message=problem.message,
        remediation=rule.remediation,
        link=rule.link,
        page="docs/lint.md",
    )
