"""A program's identity with unrestricted permissions."""

from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, not_applicable, undecided
from flexspot.policies.inventory.cloud_resources import Holder, IamDocument, IamGrant, faults_of, statements_of
from flexspot.policies.judging import Parameter, Parameters, Rule
from flexspot.policies.values.field import UNKNOWN, Tri, any_of

_PERSONS = ("user:", "group:", "domain:")


def judge(judged: IamDocument | IamGrant, parameters: Parameters) -> Outcome:
    """A grant by its name, a document by its statements. A condition narrows a statement, and such a one is let through."""
    if isinstance(judged, IamGrant):
        return _grant(judged, parameters)
    statements = statements_of(judged.document)
    if statements is UNKNOWN:
        return undecided(f"{judged.where} is not known yet")
    faults = [(place, *fault) for place, statement in statements for fault in faults_of(statement, trust=judged.holder is Holder.TRUST)]
    for place, broad, what, remedy in faults:
        if broad is True:
            return fails(f"{judged.where} (statement {place}) {what}, without a condition", remedy, judged.where)
    return undecided(f"a statement of {judged.where} is not known yet") if any(each[1] is UNKNOWN for each in faults) else PASSES


def _grant(grant: IamGrant, parameters: Parameters) -> Outcome:
    granted = grant.granted.text()
    if granted is UNKNOWN:
        # A policy or a custom role of this run has a document of its own, and that is judged. AWS's and Google's own are literals.
        return not_applicable("it is created in the same run")
    of_google = grant.cloud == IamGrant.GCP
    name = str(granted) if of_google else str(granted).rpartition(":policy/")[2]
    if name not in parameters.texts("basic-roles" if of_google else "broad-policies"):
        return PASSES
    to_program = any_of([not of_google, *(_is_program(each.text()) for each in grant.members)])
    if to_program is UNKNOWN or (to_program is False and not grant.members_complete):
        return undecided(f"who is granted {grant.where} {name} is not known yet")
    if to_program is False:
        return not_applicable("it is granted to people")
    return fails(
        f"{grant.where} is {name}, which grants far more than one program needs",
        f"grant only the {'roles' if of_google else 'policies'} that it needs",
        grant.where,
    )


def _is_program(member: object) -> Tri:
    return UNKNOWN if member is UNKNOWN else not str(member).startswith(_PERSONS)


RULE = Rule(
    code="FLX059",
    severity=Severity.HIGH,
    judge=judge,
    why="Anyone who obtains the identity, through a notebook or a package, can then read all data and start unlimited machines.",
    remediation="Give each program its own identity, with only the actions and resources that it uses.",
    link="https://docs.aws.amazon.com/IAM/latest/UserGuide/best-practices.html#grant-least-privilege",
    sources=("https://docs.cloud.google.com/iam/docs/roles-overview#basic",),
    parameters=(
        Parameter("basic-roles", ("roles/owner", "roles/editor", "roles/viewer"), "Google Cloud roles that no program may have."),
        Parameter(
            "broad-policies",
            ("AdministratorAccess", "PowerUserAccess", "IAMFullAccess", "AmazonS3FullAccess", "AmazonEC2FullAccess"),
            "AWS managed policies that no program may have.",
        ),
    ),
)
