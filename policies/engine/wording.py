"""How a finding reads in the engine's output: rule, resource, reason, remedy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.values.verdict import Verdict

if TYPE_CHECKING:
    from policies.finding import Finding


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
