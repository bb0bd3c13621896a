"""Rules about access to clusters and buckets, and permissions of identities."""

from collections.abc import Iterator

from flexspot.capacity.values.verdict import NOT_APPLICABLE, PASSES, Outcome, Severity, fails, undecided
from flexspot.policies.inventory.cloud_resources import (
    BucketAccess,
    EksClusterView,
    GcsBucketView,
    GkeClusterView,
    Holder,
    IamDocument,
    IamGrant,
    S3BucketView,
    characters_of,
    faults_of,
    lets_in_everybody,
    open_to_everybody,
    statements_of,
)
from flexspot.policies.inventory.views import Inventory
from flexspot.policies.judging import Cloud, Parameter, Parameters, Rule
from flexspot.policies.values.field import UNKNOWN, Field, Tri, all_of, any_of, negated

_MOST = {Holder.MANAGED: 6_144, Holder.ROLE: 10_240, Holder.GROUP: 5_120, Holder.USER: 2_048}


"""Largest number of characters, by holder: quotas that cannot be raised. Inline documents of a role, group or user share its quota."""


_REMEDIES = {
    Holder.MANAGED: "split it into several policies by purpose, or shorten it with wildcards in names",
    Holder.TRUST: "remove principals that need not assume the role, or request a higher quota from AWS and set trust-characters to it",
}


@Rule(
    code="FLX060",
    severity=Severity.HIGH,
    clouds=(Cloud.EKS,),
    why="AWS refuses the document when it is created, after the cluster exists; longer cluster and account names make the same text "
    "longer.",
    remediation="Split the document, as upstream splits Karpenter's permissions into six policies.",
    link="https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html",
    sources=("https://github.com/aws/karpenter-provider-aws/issues/7874",),
    parameters=(
        Parameter(
            "trust-characters", 2_048, "The maximum number of characters in a role's trust policy: a quota that AWS raises on request."
        ),
    ),
)
def iam_document_too_long(document: IamDocument, parameters: Parameters, inventory: Inventory) -> Outcome:
    """An IAM document that AWS refuses because it is too long.

    White space does not count. A document whose holder is not known yet may count for any holder.
    """
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


_PERSONS = ("user:", "group:", "domain:")


@Rule(
    code="FLX059",
    severity=Severity.HIGH,
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
def identity_too_broad(judged: IamDocument | IamGrant, parameters: Parameters) -> Outcome:
    """A program's identity with unrestricted permissions.

    Grants are judged by name, documents by their statements. A statement with a condition passes.
    """
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
        # A policy or a custom role that this program creates is judged by its document. Names of AWS's and Google's own are literals.
        return NOT_APPLICABLE
    of_google = grant.cloud == IamGrant.GCP
    name = str(granted) if of_google else str(granted).rpartition(":policy/")[2]
    if name not in parameters.texts("basic-roles" if of_google else "broad-policies"):
        return PASSES
    to_program = any_of([not of_google, *(_is_program(each.text()) for each in grant.members)])
    if to_program is UNKNOWN or (to_program is False and not grant.members_complete):
        return undecided(f"who is granted {grant.where} {name} is not known yet")
    if to_program is False:
        return NOT_APPLICABLE
    return fails(
        f"{grant.where} is {name}, which grants far more than one program needs",
        f"grant only the {'roles' if of_google else 'policies'} that it needs",
        grant.where,
    )


def _is_program(member: object) -> Tri:
    return UNKNOWN if member is UNKNOWN else not str(member).startswith(_PERSONS)


_ANYBODY = ("allUsers", "allAuthenticatedUsers")


_PUBLIC_ACLS = ("public-read", "public-read-write", "authenticated-read", "publicRead", "publicReadWrite", "authenticatedRead")


_PUBLIC_GROUPS = tuple(f"http://acs.amazonaws.com/groups/global/{name}" for name in ("AllUsers", "AuthenticatedUsers"))


_BLOCKS = ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets")


@Rule(
    code="FLX058",
    severity=Severity.HIGH,
    why="Anyone who can read a checkpoint has the model, and anyone who can write one runs code at the next restart: "
    "most formats are pickles.",
    remediation="Keep buckets private: publicAccessPrevention enforced in Cloud Storage, all four blocks of public access in S3.",
    link="https://docs.aws.amazon.com/AmazonS3/latest/userguide/access-control-block-public-access.html",
    sources=(
        "https://docs.cloud.google.com/storage/docs/public-access-prevention",
        "https://aws.amazon.com/about-aws/whats-new/2023/01/amazon-s3-automatically-encrypts-new-objects/",
    ),
)
def public_bucket(resource: GcsBucketView | S3BucketView | BucketAccess, _: Parameters) -> Outcome:
    """A bucket that anyone can read or write.

    New buckets are private in both clouds, so only settings that open a bucket are judged. Both always encrypt data at rest.
    """
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
    # A member that is not known yet is a service account or a person: programs write allUsers as a literal.
    yield from ((_is_anybody(fields.at(name)), name, "is everybody") for name in ("member", "entity"))
    yield any(map(_is_anybody, fields.at("members").parts().fields)), "members", "includes everybody"
    if kind in {"BucketPolicy", "Bucket", "BucketV2"} and not fields.at("policy").absent:
        statements = statements_of(fields.at("policy"))
        opened = UNKNOWN if statements is UNKNOWN else any_of(open_to_everybody(each) for _, each in statements)
        yield opened, "policy", "allows everybody access, without a condition"


def _is_anybody(field: Field) -> bool:
    return field.equals(*_ANYBODY) is True


@Rule(
    code="FLX056",
    severity=Severity.HIGH,
    why="Anyone can then use a leaked kubeconfig or an API server vulnerability, and GPU clusters are what miners look for.",
    remediation="Restrict access to the API server to your own network, or to listed address ranges.",
    link="https://docs.aws.amazon.com/eks/latest/userguide/cluster-endpoint.html",
    sources=("https://docs.cloud.google.com/kubernetes-engine/docs/concepts/network-isolation",),
)
def public_control_plane(cluster: GkeClusterView | EksClusterView, _: Parameters) -> Outcome:
    """A cluster whose API server is reachable from the whole internet.

    Fails if it has a public address and no address range restricts access. GKE's DNS endpoint does not count, because it requires IAM.
    """
    public, ranges, remedy = _of_eks(cluster.fields) if isinstance(cluster, EksClusterView) else _of_gke(cluster.fields)
    if public is UNKNOWN:
        return undecided(f"who can reach the API server ({cluster.where}{ranges}) is not known yet")
    if public:
        return fails(
            f"its API server has a public address, and {cluster.where}{ranges} lets everybody in", remedy, f"{cluster.where}{ranges}"
        )
    return PASSES


def _of_gke(cluster: Field) -> tuple[Tri, str, str]:
    """Return whether everybody can reach the API server, the field with the ranges, and a remedy.

    By default a cluster has a public address without restrictions.
    """
    private = cluster.at("privateClusterConfig", "enablePrivateEndpoint").equals("true")
    without_address = cluster.at("controlPlaneEndpointsConfig", "ipEndpointsConfig", "enabled").equals("false")
    networks = cluster.at("masterAuthorizedNetworksConfig")
    everybody = True if networks.absent else networks.at("cidrBlocks").parts().any(lambda each: lets_in_everybody(each.at("cidrBlock")))
    return (
        all_of([negated(any_of([private, without_address])), everybody if networks.known else UNKNOWN]),
        "masterAuthorizedNetworksConfig",
        "set privateClusterConfig.enablePrivateEndpoint, use only the DNS endpoint, or list your own ranges in cidrBlocks",
    )


def _of_eks(cluster: Field) -> tuple[Tri, str, str]:
    """Return whether everybody can reach the API server, the field with the ranges, and a remedy.

    By default the address is public and allows 0.0.0.0/0. ACK has other names for two of the fields.
    """
    ack = not cluster.at("resourcesVPCConfig").absent
    network = cluster.at("resourcesVPCConfig" if ack else "vpcConfig")
    ranges = "publicAccessCIDRs" if ack else "publicAccessCidrs"
    listed = network.at(ranges).parts()
    everybody = listed.any(lets_in_everybody) if listed.named or not listed.complete else True
    return (
        all_of([negated(network.at("endpointPublicAccess").equals("false")), everybody]),
        f"{'resourcesVPCConfig' if ack else 'vpcConfig'}.{ranges}",
        f"set endpointPublicAccess to false and endpointPrivateAccess to true, or list your own ranges in {ranges}",
    )
