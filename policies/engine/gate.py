"""Two Pulumi policies that run all rules: one stops the deployment, one only tells."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from pulumi_policy import EnforcementLevel, PolicyConfigSchema, ResourceValidationPolicy
from pulumi_policy.deserialize import serialize_properties

from capacity.verdict import Finding, Verdict
from policies.core import READING, judge
from policies.engine.wording import GivesWay, unread_text, violation_text
from policies.reading import views_of
from policies.reading.source import from_pulumi
from policies.rule import Level
from policies.rules import all_rules
from policies.settings import Settings, read_settings, schema

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pulumi_policy import Policy, ReportViolation, ResourceValidationArgs

    from policies.inventory import View
    from policies.reading.source import Source
    from policies.rules import AnyRule

BLOCKING = "flexspot"
"""The policy that stops preview and up; its configuration sets the level and the parameters of every rule."""

ADVICE = "flexspot-advice"
"""The policy that tells of advisory violations, of verdicts that hang on unknown values, and of defects of the rules themselves."""


class Gate:
    """The rules as policies of one pack.

    Every rule runs once a resource, on the resource's inputs, which are whole even in the first preview of a stack whose cluster does not
    exist yet. The blocking policy runs first and hands what does not block to the advisory one: the SDK calls the policies of a pack one
    after the other, in the order of the pack, on one thread. With the blocking policy disabled, no rule runs.

    A verdict that hangs on an unknown value is reported as advice: it blocks nothing, and the update judges again with the value known.
    """

    def __init__(self, rules: Sequence[AnyRule] | None = None, read: Callable[[Source], Sequence[View]] = views_of) -> None:
        self._rules = tuple(all_rules() if rules is None else rules)
        self._read = read
        self._advice = threading.local()
        self._problems_told: set[tuple[str, ...]] = set()

    def policies(self) -> list[Policy]:
        """The policies, in the order that they must have in the pack."""
        return [
            ResourceValidationPolicy(
                name=BLOCKING,
                description=GivesWay("GPU capacity and GPU workloads keep the rules of this platform."),
                enforcement_level=EnforcementLevel.MANDATORY,
                config_schema=PolicyConfigSchema(properties=schema(self._rules)),
                validate=self._block,
            ),
            ResourceValidationPolicy(
                name=ADVICE,
                description=GivesWay("Advice about GPU capacity and GPU workloads."),
                enforcement_level=EnforcementLevel.ADVISORY,
                validate=self._advise,
            ),
        ]

    def _block(self, args: ResourceValidationArgs, report: ReportViolation) -> None:
        settings = read_settings(_unwrapped(args.get_config()), self._rules)
        self._tell_problems(settings, report)
        advice: list[str] = []
        for finding in self._findings(args, settings, advice):
            text = violation_text(finding)
            if finding.verdict is Verdict.FAIL and self._level(finding, settings) is Level.MANDATORY:
                report(text, None)
            elif finding.verdict in {Verdict.FAIL, Verdict.UNKNOWN}:
                advice.append(text)
        self._advice.of = (args.urn, advice)

    def _advise(self, args: ResourceValidationArgs, report: ReportViolation) -> None:
        urn, advice = getattr(self._advice, "of", ("", ()))
        self._advice.of = ("", ())
        for text in advice if urn == args.urn else ():
            report(text, None)

    def _findings(self, args: ResourceValidationArgs, settings: Settings, advice: list[str]) -> list[Finding]:
        try:
            source = from_pulumi(args.resource_type, args.name, _unwrapped(args.props))
        except Exception as error:  # noqa: BLE001 -- an input of a shape that nobody foresaw must not stop the update
            advice.append(unread_text(READING, args.urn, error))
            return []
        return judge(source, self._rules, settings, self._read)

    def _level(self, finding: Finding, settings: Settings) -> Level:
        return next(settings.level(rule) for rule in self._rules if rule.name == finding.rule)

    def _tell_problems(self, settings: Settings, report: ReportViolation) -> None:
        """Once, and so that it blocks: a gate that is not set as its owner wrote it is no gate."""
        if settings.problems and settings.problems not in self._problems_told:
            self._problems_told.add(settings.problems)
            listed = "".join(f"\n  {problem}" for problem in settings.problems)
            report(f"settings: the policy configuration under {BLOCKING} is not understood:{listed}", None)


def _unwrapped(proxied: Any) -> dict[str, Any]:
    """The plain data behind the SDK's proxies, which raise at the first unknown value and are neither dict nor list."""
    return dict(serialize_properties(proxied))
