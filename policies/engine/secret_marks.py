"""The marks of secrets, which the SDK takes off before a policy sees a resource."""

from __future__ import annotations

from typing import Any

import pulumi_policy.policy
from pulumi_policy.deserialize import deserialize_properties

# What the SDK's server calls to decode inputs; it is not public, so nothing but a test holds it in place.
_OPENS = "deserialize_properties"


def keep_secret_marks() -> None:
    """Lets policies of this process see which inputs are secrets. May be called again.

    The engine sends every secret in its envelope. The SDK opens them for validation and keeps them for remediation alone (pulumi-policy
    1.21, Analyze, AnalyzeStack and Remediate of policy.py), so that a policy could print a password and not know. A policy that remediates
    would see the marks too, but a user's configuration can turn that off. tests/policies/test_secrecy.py fails with an SDK where this has
    no effect.
    """
    setattr(pulumi_policy.policy, _OPENS, _with_marks)


def _with_marks(props: dict[str, Any], proxy_secrets: bool = True) -> dict[str, Any]:  # noqa: ARG001, FBT001, FBT002 -- the SDK's signature
    return deserialize_properties(props, proxy_secrets=True)
