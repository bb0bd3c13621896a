"""A finding: what a rule, or the reader of manifests, says of one object, as persons and machines read it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from capacity.values.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from capacity.values.verdict import Addition, ObjectIdentity, Severity
    from policies.suppression import Suppression


@dataclass(frozen=True, slots=True)
class Finding:
    """One rule's verdict about one object, ready to be shown.

    `code` is the rule's short id, `link` where its facts come from, `page` the rule's page, `at` the path of the field that it is about,
    such as spec.limits, `suppressed` why it is accepted, and `adds` what surely mends it.
    """

    rule: str
    code: str
    severity: Severity
    verdict: Verdict
    object: ObjectIdentity
    message: str
    remediation: str
    link: str = ""
    at: str = ""
    page: str = ""
    suppressed: Suppression | None = None
    adds: Addition | None = None


def tally(findings: Iterable[Finding]) -> Mapping[Verdict, int]:
    """How many findings there are of each verdict; suppressed and undecided ones are never dropped."""
    counted = Counter(finding.verdict for finding in findings)
    return {verdict: counted[verdict] for verdict in Verdict}
