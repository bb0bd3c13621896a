"""The pack's policies as the engine reaches them: requests in protobuf, inputs behind the SDK's proxies, every number a float."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pulumi_policy.policy
from google.protobuf import struct_pb2
from pulumi.runtime import proto
from pulumi_policy import EnforcementLevel

if TYPE_CHECKING:
    from policies.engine.gate import Gate

# The SDK's own server is not public; nothing else builds the arguments as they are in an update (pulumi-policy#445).
SERVICER = "_PolicyAnalyzerServicer"


LEVELS = {proto.MANDATORY: "mandatory", proto.ADVISORY: "advisory"}


def urn_of(type_token: str, name: str) -> str:
    return f"urn:pulumi:dev::flexspot::{type_token}::{name}"


def struct(value: dict[str, Any]) -> struct_pb2.Struct:
    message = struct_pb2.Struct()
    message.update(value)
    return message


class PolicyServer:
    """Analyses one resource after the other, as one update does."""

    def __init__(self, gate: Gate, **configuration: Any) -> None:
        make = getattr(pulumi_policy.policy, SERVICER)
        self._servicer = make("flexspot", "0.1.0", gate.policies(), EnforcementLevel.ADVISORY)
        self.info = self._servicer.GetAnalyzerInfo(None, None)
        if configuration:
            properties = struct(configuration)
            config = proto.PolicyConfig(enforcementLevel=proto.MANDATORY, properties=properties)
            self._servicer.Configure(proto.ConfigureAnalyzerRequest(policyConfig={"flexspot": config}), None)

    def disable(self, policy: str) -> None:
        config = proto.PolicyConfig(enforcementLevel=proto.DISABLED)
        self._servicer.Configure(proto.ConfigureAnalyzerRequest(policyConfig={policy: config}), None)

    def analyze(self, type_token: str, name: str, inputs: dict[str, Any]) -> list[tuple[str, str]]:
        """What is reported about a resource: level and message of each."""
        urn = urn_of(type_token, name)
        request = proto.AnalyzeRequest(type=type_token, properties=struct(inputs), urn=urn, name=name)
        return [(LEVELS[each.enforcementLevel], each.message) for each in self._servicer.Analyze(request, None).diagnostics]

    def remediate(self, type_token: str, name: str, inputs: dict[str, Any]) -> int:
        """How many remediations there are of a resource: the engine asks that before it has it analyzed, of every pack."""
        request = proto.AnalyzeRequest(type=type_token, properties=struct(inputs), urn=urn_of(type_token, name), name=name)
        return len(self._servicer.Remediate(request, None).remediations)

    def analyze_stack(self, resources: list[tuple[str, str, dict[str, Any]]]) -> list[tuple[str, str, str]]:
        """What is reported about the whole stack: level, URN and message of each. `resources` are type, name and outputs of each."""
        listed = [
            proto.AnalyzerResource(type=token, name=name, urn=urn_of(token, name), properties=struct(outputs))
            for token, name, outputs in resources
        ]
        response = self._servicer.AnalyzeStack(proto.AnalyzeStackRequest(resources=listed), None)
        return [(LEVELS[each.enforcementLevel], each.urn, each.message) for each in response.diagnostics]
