"""Pod Security of namespaces in which nothing runs with privileges."""

from __future__ import annotations

POD_SECURITY_VERSION = "v1.35"
"""The Kubernetes version whose Pod Security rules hold, so that an upgrade of the cluster refuses nothing that ran before.

The oldest version that the shipped stacks run. Source: https://kubernetes.io/docs/concepts/security/pod-security-admission/
"""


def restricted() -> dict[str, str]:
    """Labels of a namespace that takes only pods of Pod Security `restricted`, enforced, and told in warnings and the audit log."""
    return {
        f"pod-security.kubernetes.io/{mode}{suffix}": value
        for mode in ("enforce", "audit", "warn")
        for suffix, value in (("", "restricted"), ("-version", POD_SECURITY_VERSION))
    }
