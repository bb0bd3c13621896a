"""Four Pulumi policies that run all rules: for single resources and for the stack, each one mandatory and one advisory."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pulumi_policy.policy
from pulumi_policy import EnforcementLevel, PolicyConfigSchema, ResourceValidationPolicy, StackValidationPolicy
from pulumi_policy.deserialize import deserialize_properties, serialize_properties

from capacity.values.verdict import Verdict
from policies.core import READING, judge_across, judge_alone, read_source
from policies.inventory.reading import views_of
from policies.inventory.reading.source import from_pulumi
from policies.judging.rule import Level
from policies.judging.settings import Settings, read_settings, schema
from policies.rules import all_rules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pulumi_policy import Policy, ReportViolation, ResourceValidationArgs, StackValidationArgs

    from policies.core import Reading
    from policies.inventory.reading.source import Source
    from policies.inventory.views import View
    from policies.judging.rule import AnyRule
    from policies.values.finding import Finding


# What the SDK's server calls to decode inputs; it is not public, so nothing but a test holds it in place.
_OPENS = "deserialize_properties"


def keep_secret_marks() -> None:
    """Lets policies of this process see which inputs are secrets. May be called again.

    The engine sends every secret in its envelope. The SDK opens them for validation and keeps them for remediation alone (pulumi-policy
    1.21, Analyze, AnalyzeStack and Remediate of policy.py), so that a policy could print a password and not know. A policy that remediates
    would see the marks too, but a user's configuration can turn that off. tests/policies/values/test_secrecy.py fails with an SDK where
    this has no effect.
    """
    setattr(pulumi_policy.policy, _OPENS, _with_marks)


def _with_marks(props: dict[str, Any], proxy_secrets: bool = True) -> dict[str, Any]:  # noqa: ARG001, FBT001, FBT002 -- the SDK's signature
    return deserialize_properties(props, proxy_secrets=True)


class GivesWay(str):
    """A policy's description that gives way to the message, so that diagnostics start with the rule's name.

    The SDK joins description, line break and message (pulumi-policy 1.21, _create_report_violation); another SDK might put the
    description on a line of its own before the message, and nothing else would change.
    """

    __slots__ = ()

    def __add__(self, message: str) -> str:
        return message.removeprefix("\n")


def violation_text(finding: Finding) -> str:
    """The text of one diagnostic."""
    lead = "cannot be decided yet: " if finding.verdict is Verdict.UNKNOWN else ""
    if finding.suppressed:
        lead = f"suppressed ({finding.suppressed}): "
    links = "".join(f"; see {link}" for link in (finding.page, finding.link) if link)
    lines = [f"{finding.rule}: {finding.object.described}: {lead}{finding.message}.", f"  To fix it: {finding.remediation}"]
    return "\n".join([*lines, f"  Severity {finding.severity} ({finding.code}){links}"])


def unread_text(rule: str, urn: str, error: Exception) -> str:
    """For a resource whose inputs could not even be unwrapped; names the error's type, since its text may quote a secret."""
    return f"{rule}: {urn}: no rule could judge it: {type(error).__name__} while its inputs were read.\n  Review this resource by hand."


BLOCKING = "flexspot"
"""The policy that stops preview and up; its configuration sets the level and the parameters of every rule."""

ADVICE = "flexspot-advice"
"""The policy that reports advisory violations, verdicts that depend on unknown values, and defects of the rules themselves."""

STACK_BLOCKING, STACK_ADVICE = "flexspot-stack", "flexspot-stack-advice"
"""The same two for the rules that compare resources with one another. They are configured by BLOCKING as well."""

_TOLD = frozenset({Verdict.FAIL, Verdict.UNKNOWN, Verdict.SUPPRESSED})


class Gate:
    """The rules as policies of one pack.

    Every rule runs on the resources' inputs, which are whole even in the first preview of a stack whose cluster does not exist yet, while
    the outputs that the engine hands to stack policies are then empty: so the blocking policy of resources keeps what it reads, and the
    policies of the stack judge that. What comes with the stack alone is not declared any more: after a refresh in the same run the engine
    (3.259, step_executor.go and AnalyzeResources) hands over also what is about to be deleted, and after `--target` what is left for later.
    Held against the program it would refuse every change that takes a team and its share away. What is only read never comes.

    The blocking policies run first and hand what does not block to the advisory ones: the SDK calls the policies of a pack one after the
    other, in the order of the pack, on one thread. With the blocking policy disabled, no rule runs.

    A verdict that hangs on an unknown value is reported as advice: it blocks nothing, and the update judges again with the value known.
    """

    def __init__(self, rules: Sequence[AnyRule] | None = None, read: Callable[[Source], Sequence[View]] = views_of) -> None:
        self._rules = tuple(all_rules() if rules is None else rules)
        self._levels = {rule.name: rule for rule in self._rules}
        self._read = read
        self._advice = threading.local()
        self._problems_told: set[tuple[str, ...]] = set()
        self._settings: Settings | None = None
        self._readings: dict[str, Reading] = {}
        self._stack_advice: list[tuple[str, str]] = []

    def policies(self) -> list[Policy]:
        """The policies, in the order that they must have in the pack."""
        keep_secret_marks()
        about, advice = "GPU capacity and GPU workloads keep the rules of this platform.", "Advice about GPU capacity and GPU workloads."
        return [
            ResourceValidationPolicy(
                name=BLOCKING,
                description=GivesWay(about),
                enforcement_level=EnforcementLevel.MANDATORY,
                config_schema=PolicyConfigSchema(properties=schema(self._rules)),
                validate=self._block,
            ),
            ResourceValidationPolicy(
                name=ADVICE, description=GivesWay(advice), enforcement_level=EnforcementLevel.ADVISORY, validate=self._advise
            ),
            StackValidationPolicy(
                name=STACK_BLOCKING,
                description=GivesWay(about),
                enforcement_level=EnforcementLevel.MANDATORY,
                validate=self._block_stack,
            ),
            StackValidationPolicy(
                name=STACK_ADVICE, description=GivesWay(advice), enforcement_level=EnforcementLevel.ADVISORY, validate=self._advise_stack
            ),
        ]

    def _block(self, args: ResourceValidationArgs, report: ReportViolation) -> None:
        settings = read_settings(_unwrapped(args.get_config()), self._rules)
        self._settings = settings
        self._tell_problems(settings, report)
        advice: list[str] = []
        try:
            source = from_pulumi(args.resource_type, args.name, _unwrapped(args.props))
        except Exception as error:  # noqa: BLE001 -- an input of a shape that nobody foresaw must not stop the update
            advice.append(unread_text(READING, args.urn, error))
        else:
            reading = read_source(source, self._read)
            self._readings[args.urn] = reading
            for text, blocks in self._told(judge_alone(reading, self._rules, settings), settings):
                if blocks:
                    report(text, None)
                else:
                    advice.append(text)
        self._advice.of = (args.urn, advice)

    def _advise(self, args: ResourceValidationArgs, report: ReportViolation) -> None:
        urn, advice = getattr(self._advice, "of", ("", ()))
        self._advice.of = ("", ())
        for text in advice if urn == args.urn else ():
            report(text, None)

    def _block_stack(self, args: StackValidationArgs, report: ReportViolation) -> None:
        self._stack_advice = []
        if self._settings is None:
            # Nothing was declared, or the blocking policy is off.
            return
        given = {resource.urn: self._readings[resource.urn] for resource in args.resources if resource.urn in self._readings}
        for urn, findings in zip(given, judge_across(list(given.values()), self._rules, self._settings), strict=True):
            for text, blocks in self._told(findings, self._settings):
                if blocks:
                    report(text, urn)
                else:
                    self._stack_advice.append((text, urn))

    def _advise_stack(self, _args: StackValidationArgs, report: ReportViolation) -> None:
        advice, self._stack_advice = self._stack_advice, []
        for text, urn in advice:
            report(text, urn)

    def _told(self, findings: Iterable[Finding], settings: Settings) -> list[tuple[str, bool]]:
        """The text of each finding that a person should see, and whether it stops the update."""
        return [
            (violation_text(finding), finding.verdict is Verdict.FAIL and self._level(finding, settings) is Level.MANDATORY)
            for finding in findings
            if finding.verdict in _TOLD
        ]

    def _level(self, finding: Finding, settings: Settings) -> Level:
        """The level of the finding's rule. A suppression that does not count has none: what it failed to hide stops."""
        rule = self._levels.get(finding.rule)
        return settings.level(rule) if rule else Level.ADVISORY

    def _tell_problems(self, settings: Settings, report: ReportViolation) -> None:
        """Once, and so that it blocks: a gate that is not set as its owner wrote it is no gate."""
        if settings.problems and settings.problems not in self._problems_told:
            self._problems_told.add(settings.problems)
            listed = "".join(f"\n  {problem}" for problem in settings.problems)
            report(f"settings: the policy configuration under {BLOCKING} is not understood:{listed}", None)


def _unwrapped(proxied: Any) -> dict[str, Any]:
    """The plain data behind the SDK's proxies, which raise at the first unknown value and are neither dict nor list."""
    return dict(serialize_properties(proxied))
