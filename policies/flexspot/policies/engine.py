"""The rules as a Pulumi policy pack: their description for the engine, the analysis of resources and of the stack, and the server."""

from __future__ import annotations

import itertools
import json
import os
import sys
import threading
import time
from concurrent import futures
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

import grpc
from google.protobuf import empty_pb2, json_format
from pulumi.runtime import proto
from pulumi.runtime.proto import analyzer_pb2_grpc

from flexspot.capacity.values.verdict import Severity, Verdict
from flexspot.policies.core import Reading, RuleIndex, is_defect, judge_across, judge_alone, read_source
from flexspot.policies.inventory.reading.eks import PROPERTIES, is_template, takes_template, with_template
from flexspot.policies.inventory.reading.source import from_pulumi
from flexspot.policies.judging import DEFAULTS, LEVEL, Level, Rule, policy_schema, read_settings, schema
from flexspot.policies.rules import all_rules

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping, Sequence

    from flexspot.policies.values.finding import Finding


PACK: Final = "flexspot"
"""Name of the pack, and of its only policy that is not a rule. That policy takes the settings of all rules and reports problems in them."""

VERSION: Final = "0.1.0"
"""Version reported to the engine. Where it finds PulumiPolicy.yaml, it uses the version in that file instead."""

DESCRIPTION: Final = "Rules that keep GPU capacity on GKE and EKS finite, reserved for GPU work, and accounted for."

PORT: Final = "FLEXSPOT_POLICY_PACK_PORT"
"""Environment variable that gives `policies/pack` the loopback port of a process that already serves the pack."""

_EVERY: Final = "all"
"""The engine's own word in a policy configuration for the level of every policy. The engine has applied it before it configures the pack.
"""

LEVELS: Final[Mapping[Level, proto.EnforcementLevel.ValueType]] = {level: getattr(proto, level.name) for level in Level}

# The pack remediates nothing. A user who sets "remediate" wants the violation gone, so it stops the deployment.
_READ: Final = {**{sent: level for level, sent in LEVELS.items()}, proto.REMEDIATE: Level.MANDATORY}

SEVERITIES: Final[Mapping[Severity, proto.PolicySeverity.ValueType]] = {
    severity: getattr(proto, f"POLICY_SEVERITY_{severity.name}") for severity in Severity
}


def analyzer_info(rules: Sequence[Rule]) -> proto.AnalyzerInfo:
    """Return the pack as the engine and Pulumi Cloud list it: the policy of the settings, then one policy for each rule."""
    settings = proto.PolicyInfo(
        name=PACK,
        description="The settings of all rules in one place, and objects that no rule can judge.",
        enforcementLevel=proto.MANDATORY,
        policy_type=proto.POLICY_TYPE_RESOURCE,
        configSchema=_config_schema(schema(rules)),
    )
    return proto.AnalyzerInfo(
        name=PACK,
        displayName=PACK.capitalize(),
        version=VERSION,
        description=DESCRIPTION,
        supportsConfig=True,
        policies=[settings, *map(_policy_info, rules)],
    )


def _policy_info(rule: Rule) -> proto.PolicyInfo:
    return proto.PolicyInfo(
        name=rule.name,
        description=rule.why,
        enforcementLevel=LEVELS[rule.level],
        policy_type=proto.POLICY_TYPE_STACK if rule.among else proto.POLICY_TYPE_RESOURCE,
        configSchema=_config_schema({name: _default_in_words(each) for name, each in policy_schema(rule).items()}),
        severity=SEVERITIES[rule.severity],
        tags=[rule.code, *rule.clouds],
        remediation_steps=rule.remediation,
        url=rule.link,
    )


def _default_in_words(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema with its default in the description.

    With a `default` key the engine would fill it in, and values that a user wrote would be indistinguishable from it.
    """
    default = json.dumps(schema["default"]).strip("[]")
    return {
        **{key: value for key, value in schema.items() if key != "default"},
        "description": f"{schema['description']} Default: {default}.",
    }


def _config_schema(properties: Mapping[str, Any]) -> proto.PolicyConfigSchema:
    described = proto.PolicyConfigSchema()
    described.properties.update(properties)
    return described


def level_of_settings(configured: Mapping[str, proto.PolicyConfig]) -> Level:
    """Return the level of the policy of the settings."""
    return _READ[configured[PACK].enforcementLevel] if PACK in configured else Level.MANDATORY


def written_settings(configured: Mapping[str, proto.PolicyConfig], rules: Iterable[Rule]) -> dict[str, Any]:
    """Return the settings that a user wrote, in the form that flexspot.policies.judging reads.

    They may be under the pack's own policy and under those of the rules; where both set the same key, the pack's own policy counts. The
    engine gives each policy a level, written or not, so a level equal to the rule's own counts as not written. Names without a policy are
    kept, so that misspelt ones are reported.
    """
    shipped = {rule.name: rule.level for rule in rules}
    written = _properties(configured[PACK]) if PACK in configured else {}
    for name, config in configured.items():
        if name in {PACK, _EVERY}:
            continue
        level = _READ[config.enforcementLevel]
        usual = {**_properties(config), **({LEVEL: level.value} if level is not shipped.get(name) else {})}
        if usual:
            own = written.get(name, {})
            written[name] = {**usual, **(own if isinstance(own, dict) else {LEVEL: own})}
    return written


def _properties(config: proto.PolicyConfig) -> dict[str, Any]:
    return json_format.MessageToDict(config.properties)


_REPORTED = frozenset({Verdict.FAIL, Verdict.UNKNOWN, Verdict.SUPPRESSED})


def _waits(finding: Finding) -> bool:
    """Return whether the finding is undecided because a value is not known yet, rather than by a defect of a rule or reader."""
    return finding.verdict is Verdict.UNKNOWN and not is_defect(finding)


def violation_text(finding: Finding) -> str:
    """Return the text of one diagnostic. The engine prints the severity and the policy's name, which is the rule's, before it."""
    lead = "cannot be decided yet: " if finding.verdict is Verdict.UNKNOWN else ""
    if finding.suppressed:
        lead = f"suppressed ({finding.suppressed}): "
    links = "".join(f"; see {link}" for link in (finding.page, finding.link) if link)
    lines = [f"{finding.object.described}: {lead}{finding.message}.", f"  To fix it: {finding.remediation}"]
    return "\n".join([*lines, f"  {finding.code}{links}"])


_LISTED_REASONS: Final = 3
"""Most reasons that one line lists for findings that several rules cannot decide."""


def undecided_text(findings: Sequence[Finding]) -> str:
    """Return the text of one diagnostic for everything that several rules cannot decide about a resource."""
    rules = list(dict.fromkeys(finding.rule for finding in findings))
    reasons = list(dict.fromkeys(finding.message for finding in findings))
    more = f"; and {len(reasons) - _LISTED_REASONS} more reasons" if len(reasons) > _LISTED_REASONS else ""
    lead = f"{findings[0].object.described}: cannot be decided yet by {len(rules)} rules: {'; '.join(reasons[:_LISTED_REASONS])}{more}."
    return f"{lead}\n  These rules judge again once the values are known: {', '.join(rules)}"


def unread_text(urn: str, error: Exception) -> str:
    """Return the text for a resource whose inputs could not be unwrapped.

    It names the error's type only, since the error's text may quote a secret.
    """
    return f"{urn}: no rule could judge it: {type(error).__name__} while reading its inputs.\n  Review this resource by hand."


class Gate(analyzer_pb2_grpc.AnalyzerServicer):
    """The pack as the engine calls it: one Pulumi policy for each rule, under the rule's name.

    It implements the engine's protocol itself, since Pulumi's SDK for policies (pulumi-policy 1.21, policy.py) cannot serve such a pack.
    The SDK removes the marks of secrets before a policy sees the inputs, so that a message could print a password. It decodes each resource
    again for each policy, and the whole stack for each policy of the stack. Its diagnostics always have the policy's level, but a verdict
    that depends on an unknown value must be advice. tests/policies/engine tests that both describe the same policies in the same way.

    Every rule runs on the resources' inputs, which are complete even in the first preview of a stack whose cluster does not exist yet. The
    outputs that the engine then passes for the stack are empty. So the reading of each resource is kept, and the policies of the stack
    judge the readings. Resources that come with the stack alone are no longer declared. After a refresh in the same run the engine (3.259,
    step_executor.go and AnalyzeResources) also passes resources about to be deleted, and after `--target` resources that were skipped.
    Judging them would refuse every change that removes a team and its share. Resources that are only read never come.

    A verdict that depends on an unknown value is reported as advice, once for each resource when all have come. It blocks nothing, and the
    update judges again with the value known.
    """

    def __init__(self, rules: Sequence[Rule] | None = None) -> None:
        self._rules = tuple(all_rules() if rules is None else rules)
        self._named = {rule.name: rule for rule in self._rules}
        self._settings = DEFAULTS
        self._alone = RuleIndex(self._rules, DEFAULTS, among=False)
        self._level = Level.MANDATORY
        self._problems: tuple[str, ...] = ()
        self._readings: dict[str, Reading] = {}
        self._undecided: dict[str, list[Finding]] = {}

    def GetAnalyzerInfo(self, request: empty_pb2.Empty, context: Any) -> proto.AnalyzerInfo:  # noqa: ARG002, N802 -- the protocol's
        """Return the policies and their settings."""
        return analyzer_info(self._rules)

    def GetPluginInfo(self, request: empty_pb2.Empty, context: Any) -> proto.PluginInfo:  # noqa: ARG002, N802 -- the protocol's
        """Return the pack's version."""
        return proto.PluginInfo(version=VERSION)

    def Handshake(self, request: Any, context: Any) -> proto.AnalyzerHandshakeResponse:  # noqa: ARG002, N802 -- the protocol's
        """Return an empty answer: the pack does not depend on the engine's location."""
        return proto.AnalyzerHandshakeResponse()

    def ConfigureStack(self, request: Any, context: Any) -> proto.AnalyzerStackConfigureResponse:  # noqa: ARG002, N802 -- the protocol's
        """Return an empty answer: the pack does not depend on the stack's configuration."""
        return proto.AnalyzerStackConfigureResponse()

    def Cancel(self, request: empty_pb2.Empty, context: Any) -> empty_pb2.Empty:  # noqa: ARG002, N802 -- the protocol's
        """Return an empty answer: no call runs long enough to cancel."""
        return empty_pb2.Empty()

    def Remediate(self, request: proto.AnalyzeRequest, context: Any) -> proto.RemediateResponse:  # noqa: ARG002, N802 -- the protocol's
        """Return an empty answer: the pack changes no resource."""
        return proto.RemediateResponse()

    def Configure(self, request: proto.ConfigureAnalyzerRequest, context: Any) -> empty_pb2.Empty:  # noqa: ARG002, N802 -- the protocol's
        """Apply the levels and parameters that a user set. Problems in them are reported with the first resource."""
        self._settings = read_settings(written_settings(request.policyConfig, self._rules), self._rules)
        self._alone = RuleIndex(self._rules, self._settings, among=False)
        self._level = level_of_settings(request.policyConfig)
        self._problems = self._settings.problems
        return empty_pb2.Empty()

    def Analyze(self, request: proto.AnalyzeRequest, context: Any) -> proto.AnalyzeResponse:  # noqa: ARG002, N802 -- the protocol's
        """Return the findings of the rules that need no other object about one resource."""
        diagnostics = [*self._settings_diagnostics()]
        findings: list[Finding] = []
        try:
            source = from_pulumi(request.type, request.name, json_format.MessageToDict(request.properties))
        except Exception as error:  # noqa: BLE001 -- an unexpected shape of an input must not stop the update
            diagnostics.append(self._diagnostic(PACK, unread_text(request.urn, error), Level.ADVISORY))
        else:
            reading = self._readings[request.urn] = read_source(source)
            findings = judge_alone(reading, self._alone, self._settings)
            # Undecided findings of a resource are reported together with those of the rules of the whole stack.
            self._undecided[request.urn] = [each for each in findings if _waits(each)]
            diagnostics += self._diagnostics(each for each in findings if not _waits(each))
        return self._answer(diagnostics, findings, (rule for rule in self._rules if not rule.among))

    def AnalyzeStack(self, request: proto.AnalyzeStackRequest, context: Any) -> proto.AnalyzeResponse:  # noqa: ARG002, N802 -- the protocol's
        """Return the findings of the rules that compare resources with one another."""
        given = {each.urn: self._readings[each.urn] for each in request.resources if each.urn in self._readings}
        alone = self._with_templates(given, request.resources)
        judged = judge_across(list(given.values()), self._rules, self._settings)
        diagnostics: list[proto.AnalyzeDiagnostic] = []
        for urn, across in zip(given, judged, strict=True):
            findings = [*alone.get(urn, ()), *across]
            diagnostics += self._diagnostics((each for each in findings if not _waits(each)), urn)
            diagnostics += self._undecided_diagnostics([*self._undecided.pop(urn, ()), *filter(_waits, findings)], urn)
        return self._answer(diagnostics, itertools.chain.from_iterable(judged), (rule for rule in self._rules if rule.among))

    def _with_templates(self, given: dict[str, Reading], resources: Iterable[proto.AnalyzerResource]) -> dict[str, list[Finding]]:
        """Read the machine groups among `given` again, each with its launch template, and return their new findings.

        In a first preview only the engine knows which template a group uses: the template's id is unknown, but the group's field depends on
        it.
        """
        of_groups = {each.urn: each for each in resources if each.urn in given and takes_template(given[each.urn].source)}
        templates = {urn: each.source for urn, each in given.items() if is_template(each.source)}
        found: dict[str, list[Finding]] = {}
        for urn, resource in of_groups.items():
            named = (resource.propertyDependencies[name].urns for name in PROPERTIES if name in resource.propertyDependencies)
            urns = {each for listed in named for each in listed}
            group = given[urn].source
            whole = with_template(group, [templates[each] for each in urns if each in templates], templates.values())
            if whole is not group:
                given[urn] = read_source(whole)
                before = judge_alone(read_source(group), self._alone, self._settings)
                said = {(each.rule, each.verdict, each.message) for each in before if not _waits(each)}
                findings = judge_alone(given[urn], self._alone, self._settings)
                found[urn] = [each for each in findings if (each.rule, each.verdict, each.message) not in said]
                self._undecided[urn] = []
        return found

    def _diagnostics(self, findings: Iterable[Finding], urn: str = "") -> Iterable[proto.AnalyzeDiagnostic]:
        """Yield a diagnostic for each finding that a person should see, once however many pod templates it concerns.

        A finding that belongs to no rule, such as a suppression that does not count, is advice.
        """
        said: set[tuple[str, str, str]] = set()
        for finding in findings:
            words = (finding.rule, finding.verdict, finding.message)
            if finding.verdict in _REPORTED and words not in said:
                said.add(words)
                rule = self._named.get(finding.rule)
                level = self._settings.level(rule) if rule and finding.verdict is Verdict.FAIL else Level.ADVISORY
                text = violation_text(finding) if rule else f"{finding.rule}: {violation_text(finding)}"
                yield self._diagnostic(rule.name if rule else PACK, text, level, urn, finding.severity)

    def _undecided_diagnostics(self, findings: list[Finding], urn: str) -> Iterable[proto.AnalyzeDiagnostic]:
        """Return one diagnostic for all that several rules cannot decide about a resource. A single rule's finding is reported as usual."""
        if len({finding.rule for finding in findings}) < 2:  # noqa: PLR2004 -- one rule needs no summary
            return self._diagnostics(findings, urn)
        return [self._diagnostic(PACK, undecided_text(findings), Level.ADVISORY, urn, Severity.LOW)]

    def _settings_diagnostics(self) -> Iterable[proto.AnalyzeDiagnostic]:
        """Yield the problems of the settings once, and so that they block: a gate without its owner's settings protects nothing."""
        problems, self._problems = self._problems, ()
        if problems and self._level is not Level.DISABLED:
            listed = "".join(f"\n  {problem}" for problem in problems)
            yield self._diagnostic(PACK, f"settings: the policy configuration is invalid:{listed}", self._level)

    def _diagnostic(
        self, policy: str, message: str, level: Level, urn: str = "", severity: Severity = Severity.HIGH
    ) -> proto.AnalyzeDiagnostic:
        return proto.AnalyzeDiagnostic(
            policyName=policy,
            policyPackName=PACK,
            policyPackVersion=VERSION,
            message=message,
            urn=urn,
            enforcementLevel=LEVELS[level],
            severity=SEVERITIES[severity],
        )

    def _answer(
        self, diagnostics: Sequence[proto.AnalyzeDiagnostic], findings: Iterable[Finding], rules: Iterable[Rule]
    ) -> proto.AnalyzeResponse:
        """Return the diagnostics, blocking ones first, and the policies that had nothing to judge.

        The engine counts all others as passed.
        """
        judged = {finding.rule for finding in findings if finding.verdict is not Verdict.NOT_APPLICABLE}
        idle = [rule.name for rule in rules if rule.name not in judged]
        return proto.AnalyzeResponse(
            diagnostics=sorted(diagnostics, key=lambda each: each.enforcementLevel != proto.MANDATORY),
            not_applicable=[proto.PolicyNotApplicable(policy_name=name, reason="there is nothing here for it to judge") for name in idle],
        )


_SECONDS = 1.0
"""Interval between two checks of the parent."""

_MOST_BYTES = 400 * 1024 * 1024
"""Largest message. The engine passes a whole stack in one message. Pulumi's own SDKs use the same limit."""


def end_with_parent() -> None:
    """Start watching this process's parent, and exit at once when it is gone.

    Where an orphan keeps its parent's process id (Windows), this has no effect.
    """
    threading.Thread(target=_watch, args=(os.getppid(),), daemon=True, name="end-with-parent").start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_SECONDS)
    os._exit(0)


@contextmanager
def served() -> Generator[int]:
    """Serve the pack on a free port of loopback while the context lasts; yield the port."""
    # One thread: a resource is read before the stack is judged, and settings before both.
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=1), options=[("grpc.max_receive_message_length", _MOST_BYTES)])
    analyzer_pb2_grpc.add_AnalyzerServicer_to_server(Gate(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield port
    finally:
        server.stop(0).wait()


def serve() -> None:
    """Serve the pack to the engine that started this process, until either is ended. The first line on stdout is the port."""
    end_with_parent()
    with served() as port:
        sys.stdout.write(f"{port}\n")
        sys.stdout.flush()
        with suppress(KeyboardInterrupt):
            threading.Event().wait()
