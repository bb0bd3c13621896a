"""The pack's policies as the engine reaches them: requests in protobuf, where every number is a float."""

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
    """Analyses one resource after the other, as one update does. `settings` are those under the pack's own policy."""

    def __init__(self, gate: Gate, **settings: Any) -> None:
        self._gate = gate
        self.info = gate.GetAnalyzerInfo(NOTHING, None)
        if settings:
            self.configure({"flexspot": {"enforcementLevel": "mandatory", **settings}})

    def configure(self, written: dict[str, str | dict[str, Any]]) -> None:
        """As the engine does (3.259, resource/analyzer/config.go): every policy gets its own level where none is written for it."""
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
        """What is reported about a resource: the level of each, and policy and message in one."""
        return [(level, told) for level, _, told in reported(self.answer(type_token, name, inputs).diagnostics)]

    def remediate(self, type_token: str, name: str, inputs: dict[str, Any]) -> int:
        """How many remediations there are of a resource: the engine asks that before it has it analyzed, of every pack."""
        request = proto.AnalyzeRequest(type=type_token, properties=struct(inputs), urn=urn_of(type_token, name), name=name)
        return len(self._gate.Remediate(request, None).remediations)

    def stack_answer(self, resources: list[tuple[str, str, dict[str, Any]]]) -> proto.AnalyzeResponse:
        listed = [
            proto.AnalyzerResource(type=token, name=name, urn=urn_of(token, name), properties=struct(outputs))
            for token, name, outputs in resources
        ]
        return self._gate.AnalyzeStack(proto.AnalyzeStackRequest(resources=listed), None)

    def analyze_stack(self, resources: list[tuple[str, str, dict[str, Any]]]) -> list[tuple[str, str, str]]:
        """What is reported about the whole stack: level and URN of each, and policy and message in one.

        `resources` are type, name and outputs of each.
        """
        return reported(self.stack_answer(resources).diagnostics)


def reported(diagnostics: Iterable[proto.AnalyzeDiagnostic]) -> list[tuple[str, str, str]]:
    return [(LEVELS[each.enforcementLevel], each.urn, f"{each.policyName}: {each.message}") for each in diagnostics]
