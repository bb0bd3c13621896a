"""An IAM document that AWS refuses because it is too long."""

from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, undecided
from flexspot.policies.inventory.cloud_resources import Holder, IamDocument, characters_of
from flexspot.policies.inventory.views import Inventory
from flexspot.policies.judging import Cloud, Parameter, Parameters, Rule
from flexspot.policies.values.field import UNKNOWN

_MOST = {Holder.MANAGED: 6_144, Holder.ROLE: 10_240, Holder.GROUP: 5_120, Holder.USER: 2_048}
"""Quotas that nobody can raise; those of a role, a group and a user are for all documents that are written into it together."""

_REMEDIES = {
    Holder.MANAGED: "split it into several policies by purpose, or shorten it with wildcards in names",
    Holder.TRUST: "remove principals that need not assume the role, or request a higher quota from AWS and set trust-characters to it",
}


def judge(document: IamDocument, parameters: Parameters, inventory: Inventory) -> Outcome:
    """White space does not count. Documents of a holder that is not known yet may be of any."""
    most = parameters.number("trust-characters") if document.holder is Holder.TRUST else _MOST[document.holder]
    by_holder = inventory.by("holder", IamDocument, lambda each: (each.holder, each.holder_name.text()))
    name = document.holder_name.text()
    together = by_holder[document.holder, name] if isinstance(name, str) else [document]
    certain, own = _lengths(together), characters_of(document.document)
    if certain > most:
        others = f" ({certain} together with the others of the same {document.holder})" if certain != own else ""
        return fails(
            f"{document.where} has {own} characters without white space{others}, but AWS allows {most} for a {document.holder}",
            _REMEDIES.get(document.holder, "use managed policies instead, each for one purpose, and attach them"),
            document.where,
        )
    perhaps = [each for each in by_holder.get((document.holder, UNKNOWN), []) if each is not document]
    if any(characters_of(each.document) is UNKNOWN for each in together) or certain + _lengths(perhaps) > most:
        return undecided(f"{document.where}: its length, or that of others of the same {document.holder}, is not known yet")
    return PASSES


def _lengths(documents: list[IamDocument]) -> int:
    return sum(length for each in documents if isinstance(length := characters_of(each.document), int))


RULE = Rule(
    code="FLX060",
    severity=Severity.HIGH,
    clouds=(Cloud.EKS,),
    judge_among=judge,
    why=(
        "AWS refuses the document when it is created, after the cluster exists; longer cluster and account names make the same text longer."
    ),
    remediation="Split the document, as upstream splits Karpenter's permissions into six policies.",
    link="https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html",
    sources=("https://github.com/aws/karpenter-provider-aws/issues/7874",),
    parameters=(
        Parameter(
            "trust-characters", 2_048, "The maximum number of characters in a role's trust policy: a quota that AWS raises on request."
        ),
    ),
)
