"""Access to the pack's policies as the engine has it: by requests in protobuf, where every number is a float."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.protobuf import empty_pb2, struct_pb2
from pulumi.runtime import proto

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flexspot.policies.engine import Gate

NOTHING = empty_pb2.Empty()

LEVELS = {proto.MANDATORY: "mandatory", proto.ADVISORY: "advisory"}

CONFIGURED = {"disabled": proto.DISABLED, "remediate": proto.REMEDIATE, **{word: level for level, word in LEVELS.items()}}


def urn_of(type_token: str, name: str) -> str:
    return f"urn:pulumi:dev::flexspot::{type_token}::{name}"


def struct(value: dict[str, Any]) -> struct_pb2.Struct:
    message = struct_pb2.Struct()
    message.update(value)
    return message


class PolicyServer:
    """A client that analyses one resource after the other, as an update does.

    `settings` are the settings of the pack's own policy.
    """

    def __init__(self, gate: Gate, **settings: Any) -> None:
        self._gate = gate
        self.info = gate.GetAnalyzerInfo(NOTHING, None)
        if settings:
            self.configure({"flexspot": {"enforcementLevel": "mandatory", **settings}})

    def configure(self, written: dict[str, str | dict[str, Any]]) -> None:
        """Configure the pack as the engine does (3.259, resource/analyzer/config.go): a policy without a written level keeps its own."""
        every = written.get("all")
        levels = {each.name: CONFIGURED[every] if isinstance(every, str) else each.enforcementLevel for each in self.info.policies}
        properties: dict[str, dict[str, Any]] = {}
        for name, setting in written.items():
            properties[name] = {} if isinstance(setting, str) else {key: setting[key] for key in setting if key != "enforcementLevel"}
            level = setting if isinstance(setting, str) else setting.get("enforcementLevel")
            if level:
                levels[name] = CONFIGURED[level]
        configured = {
            name: proto.PolicyConfig(enforcementLevel=level, properties=struct(properties.get(name, {}))) for name, level in levels.items()
        }
        self._gate.Configure(proto.ConfigureAnalyzerRequest(policyConfig=configured), None)

    def answer(self, type_token: str, name: str, inputs: dict[str, Any]) -> proto.AnalyzeResponse:
        request = proto.AnalyzeRequest(type=type_token, properties=struct(inputs), urn=urn_of(type_token, name), name=name)
        return self._gate.Analyze(request, None)

    def analyze(self, type_token: str, name: str, inputs: dict[str, Any]) -> list[tuple[str, str]]:
        """Return level and text of each diagnostic about a resource. The text is policy and message."""
        return [(level, text) for level, _, text in reported(self.answer(type_token, name, inputs).diagnostics)]

    def remediate(self, type_token: str, name: str, inputs: dict[str, Any]) -> int:
        """Return the number of remediations of a resource. The engine requests them from every pack before the analysis."""
        request = proto.AnalyzeRequest(type=type_token, properties=struct(inputs), urn=urn_of(type_token, name), name=name)
        return len(self._gate.Remediate(request, None).remediations)

    def stack_answer(self, resources: list[tuple[str, str, dict[str, Any]]]) -> proto.AnalyzeResponse:
        listed = [
            proto.AnalyzerResource(type=token, name=name, urn=urn_of(token, name), properties=struct(outputs))
            for token, name, outputs in resources
        ]
        return self._gate.AnalyzeStack(proto.AnalyzeStackRequest(resources=listed), None)

    def analyze_stack(self, resources: list[tuple[str, str, dict[str, Any]]]) -> list[tuple[str, str, str]]:
        """Return level, URN and text of each diagnostic about the stack. The text is policy and message.

        `resources` are type, name and outputs of each resource.
        """
        return reported(self.stack_answer(resources).diagnostics)


def reported(diagnostics: Iterable[proto.AnalyzeDiagnostic]) -> list[tuple[str, str, str]]:
    return [(LEVELS[each.enforcementLevel], each.urn, f"{each.policyName}: {each.message}") for each in diagnostics]
