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
        urn = f"urn:pulumi:dev::flexspot::{type_token}::{name}"
        request = proto.AnalyzeRequest(type=type_token, properties=struct(inputs), urn=urn, name=name)
        levels = {proto.MANDATORY: "mandatory", proto.ADVISORY: "advisory"}
        return [(levels[each.enforcementLevel], each.message) for each in self._servicer.Analyze(request, None).diagnostics]
