"""A bucket that anyone can read or write."""

from collections.abc import Iterator

from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, undecided
from flexspot.policies.inventory.cloud_resources import BucketAccess, GcsBucketView, S3BucketView, open_to_everybody, statements_of
from flexspot.policies.judging import Parameters, Rule
from flexspot.policies.values.field import UNKNOWN, Field, Tri, any_of, negated

_ANYBODY = ("allUsers", "allAuthenticatedUsers")
_PUBLIC_ACLS = ("public-read", "public-read-write", "authenticated-read", "publicRead", "publicReadWrite", "authenticatedRead")
_PUBLIC_GROUPS = tuple(f"http://acs.amazonaws.com/groups/global/{name}" for name in ("AllUsers", "AuthenticatedUsers"))
_BLOCKS = ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets")


def judge(resource: GcsBucketView | S3BucketView | BucketAccess, _: Parameters) -> Outcome:
    """Both clouds keep a new bucket private; judged is what opens it. Encryption at rest is on in both and cannot be turned off."""
    found = list(_openings(resource))
    for answer, path, what in found:
        if answer is True:
            remedy = f"set {', '.join(_BLOCKS)} to true" if path in _BLOCKS else "remove it, and name who may use the bucket"
            return fails(f"{resource.where}{path} {what}", remedy, f"{resource.where}{path}")
    if any(answer is UNKNOWN for answer, _, _ in found):
        return undecided("who may use the bucket is not known yet")
    enforced = resource.fields.at("publicAccessPrevention").equals("enforced")
    if isinstance(resource, GcsBucketView) and enforced is not True:
        return undecided("publicAccessPrevention is not enforced here; whether the organisation enforces it is not in the input")
    return PASSES


def _openings(resource: GcsBucketView | S3BucketView | BucketAccess) -> Iterator[tuple[Tri, str, str]]:
    fields, kind = resource.fields, resource.identity.kind
    if kind == "BucketPublicAccessBlock":
        yield from ((negated(fields.at(name).equals("true")), name, "is not true, so public access is possible") for name in _BLOCKS)
    yield from ((fields.at(name).equals(*_PUBLIC_ACLS), name, "is open to the public") for name in ("acl", "predefinedAcl"))
    for place, grant in fields.at("accessControlPolicy", "grants").parts().named:
        yield grant.at("grantee", "uri").equals(*_PUBLIC_GROUPS), f"accessControlPolicy.grants[{place}]", "is open to everybody"
    for place, entity in fields.at("roleEntities").parts().named:
        text = entity.text()
        yield UNKNOWN if text is UNKNOWN else str(text).endswith(_ANYBODY), f"roleEntities[{place}]", "is open to everybody"
    # A member that is not known yet is a service account or a person: allUsers is a literal wherever it is meant.
    yield from ((_is_anybody(fields.at(name)), name, "is everybody") for name in ("member", "entity"))
    yield _anybody_among(fields.at("members")), "members", "includes everybody"
    if kind in {"BucketPolicy", "Bucket", "BucketV2"} and not fields.at("policy").absent:
        statements = statements_of(fields.at("policy"))
        opened = UNKNOWN if statements is UNKNOWN else any_of(open_to_everybody(each) for _, each in statements)
        yield opened, "policy", "allows everybody access, without a condition"


def _is_anybody(field: Field) -> bool:
    return field.equals(*_ANYBODY) is True


def _anybody_among(members: Field) -> bool:
    return any(_is_anybody(each) for each in members.parts().fields)


RULE = Rule(
    code="FLX058",
    severity=Severity.HIGH,
    judge=judge,
    why=(
        "Anyone who can read a checkpoint has the model, and anyone who can write one runs code at the next restart: "
        "most formats are pickles."
    ),
    remediation="Keep buckets private: publicAccessPrevention enforced in Cloud Storage, all four blocks of public access in S3.",
    link="https://docs.aws.amazon.com/AmazonS3/latest/userguide/access-control-block-public-access.html",
    sources=(
        "https://docs.cloud.google.com/storage/docs/public-access-prevention",
        "https://aws.amazon.com/about-aws/whats-new/2023/01/amazon-s3-automatically-encrypts-new-objects/",
    ),
)
