"""How a finding reads in the engine's output: rule, resource, reason, remedy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.verdict import Verdict

if TYPE_CHECKING:
    from capacity.verdict import Finding


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
    lines = [f"{finding.rule}: {finding.object.described}: {lead}{finding.message}.", f"  To fix it: {finding.remediation}"]
    lines.append(f"  Severity {finding.severity} ({finding.code}){'; see ' + finding.link if finding.link else ''}")
    return "\n".join(lines)


def unread_text(rule: str, urn: str, error: Exception) -> str:
    """For a resource whose inputs could not even be unwrapped; names the error's type, since its text may quote a secret."""
    return f"{rule}: {urn}: no rule could judge it: {type(error).__name__} while its inputs were read.\n  Review this resource by hand."
