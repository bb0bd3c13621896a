"""The IAM documents of the EKS stacks, before judges that we did not write: parliament lints them, principalmapper decides by them."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from eks_declarations import CLUSTER, NODE_CLASS
from foreign_iam import Finding, findings, foreign_decision, service_decision
from iam_evaluator import Request, Verdict, decide
from moto.iam.aws_managed_policies import aws_managed_policies_data
from organisation_stack import everything_settings
from program_declarations import as_shipped, declared, plan_of

if TYPE_CHECKING:
    from program_declarations import Declarations

    from components.iam import Document

pytestmark = pytest.mark.thorough

STACKS = ("dev-eks", "prod-eks")

EVERYTHING = "everything"
"""Production as an organisation wants it, with all of AWS's that a stack can ask for."""

JUDGED = (*STACKS, EVERYTHING)
DOCUMENTED = {"policy": False, "assumeRolePolicy": True}
"""The inputs that are documents, and whether they say who may take a role."""

UPSTREAM = "as Karpenter's own CloudFormation template has it (website/content/en/docs/getting-started of aws/karpenter-provider-aws)"
ACCEPTED: dict[tuple[str, str], str] = {
    ("RESOURCE_MISMATCH", "karpenter-identity-node-lifecycle-policy"): "a launch touches several kinds, each with conditions of its own, "
    f"so that no one statement names them all; {UPSTREAM}",
    ("RESOURCE_MISMATCH", "karpenter-identity-resource-discovery-policy"): f"AWS's public parameters belong to no account; {UPSTREAM}",
    (
        "MISMATCHED_TYPE",
        "*-policy",
    ): "parliament takes 1.2 for no number; s3:TlsVersion has a point (S3 user guide, condition keys)",
    ("UNKNOWN_ACTION", "load-balancers-policy"): "ModifyIpPools is newer than parliament's list; botocore's model of elbv2 has it",
    ("UNKNOWN_CONDITION_FOR_ACTION", "load-balancers-policy"): "as upstream's docs/install/iam_policy.json has it",
    ("UNKNOWN_CONDITION_FOR_ACTION", "*-policy"): "of s3:*, two actions do not know s3:TlsVersion: these are not denied for it",
}
"""What parliament says and stays, by its name of it and the resource, and why."""


@cache
def judged(stack: str) -> Declarations:
    return declared("prod-eks", everything_settings()) if stack == EVERYTHING else as_shipped(stack)


@cache
def documents(stack: str) -> dict[str, str]:
    """Every document of the stack, by its resource and input, but for those that name what is not there yet."""
    made = [each for each in judged(stack).made.values() if each.type.startswith("aws:") and each.type not in NOT_KNOWN]
    return {f"{each.name} {key}": each.inputs[key] for each in made for key in DOCUMENTED if key in each.inputs}


NOT_KNOWN = {"aws:efs/fileSystemPolicy:FileSystemPolicy"}
"""In tests/components/storage/test_efs_file_system.py both evaluators decide by it; test_eks_choices_on_moto.py has parliament read it."""


@cache
def found(stack: str) -> tuple[tuple[str, Finding], ...]:
    said = {name: findings(text, resource_own=DOCUMENTED[name.rpartition(" ")[2]]) for name, text in documents(stack).items()}
    return tuple((name.partition(" ")[0], each) for name, all_of in said.items() for each in all_of)


def reason(resource: str, finding: Finding) -> str | None:
    of_buckets = resource in {"checkpoints-policy", "datasets-policy"} and "s3:TlsVersion" in finding.details
    return ACCEPTED.get((finding.issue, "*-policy" if of_buckets else resource))


@pytest.mark.parametrize("stack", JUDGED)
def test_every_document_is_known_before_anything_is_made(stack: str) -> None:
    """So that it can be judged in a preview, by these tests and by rules."""
    assert len(documents(stack)) > 20
    assert all(isinstance(json.loads(each)["Statement"], list) for each in documents(stack).values())


@pytest.mark.parametrize("stack", JUDGED)
def test_no_document_has_a_finding_that_is_not_accepted_with_a_reason(stack: str) -> None:
    assert [(resource, each) for resource, each in found(stack) if reason(resource, each) is None] == []


def test_what_is_accepted_is_still_found() -> None:
    reasons = {reason(resource, each) for stack in JUDGED for resource, each in found(stack)}

    assert set(ACCEPTED.values()) == reasons - {None}


@pytest.mark.parametrize(
    "statement,issue",
    [
        ({"Effect": "Allow", "Action": "ec2:RunInstance", "Resource": "*"}, "UNKNOWN_ACTION"),
        ({"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::b"}, "RESOURCE_MISMATCH"),
        (
            {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*", "Condition": {"Bool": {"aws:Tls": "true"}}},
            "UNKNOWN_CONDITION",
        ),
    ],
)
def test_parliament_sees_what_is_wrong(statement: dict[str, Any], issue: str) -> None:
    said = findings(json.dumps({"Version": "2012-10-17", "Statement": [statement]}))

    assert any(each.issue.startswith(issue) for each in said), said


def of_controller(stack: str) -> list[Document]:
    return [json.loads(text) for name, text in documents(stack).items() if name.startswith("karpenter-identity-") and "role" not in name]


def both(given: list[Document], request: Request) -> Verdict:
    """The verdict of both evaluators, which must be one."""
    own, foreign = decide(given, request), foreign_decision(given, request)
    assert own is foreign, request
    return own


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("action", ["ec2:RunInstances", "ec2:CreateFleet", "ec2:TerminateInstances"])
def test_karpenter_starts_and_ends_instances_with_its_clusters_tags_alone(stack: str, action: str) -> None:
    cluster = stack.removesuffix("-eks")
    kind = "aws:ResourceTag" if action == "ec2:TerminateInstances" else "aws:RequestTag"
    own = {f"{kind}/kubernetes.io/cluster/{cluster}": "owned", f"{kind}/karpenter.sh/nodepool": "l4"}
    own |= {} if kind == "aws:ResourceTag" else {f"{kind}/eks:eks-cluster-name": cluster}
    others = {key.replace(f"/{cluster}", "/other"): value for key, value in own.items()}
    instance = "arn:aws:ec2:us-east-1:111122223333:instance/i-0a1b2c3d4e5f60718"

    def verdict(context: dict[str, str], resource: str = instance) -> Verdict:
        return both(of_controller(stack), Request(action, resource, context))

    assert verdict(own) is Verdict.ALLOWED
    assert {verdict({}), verdict(others)} == {Verdict.NOT_ALLOWED}
    assert {verdict({key: value for key, value in own.items() if key != left_out}) for left_out in own} == {Verdict.NOT_ALLOWED}
    assert verdict(own, instance.replace("us-east-1", "eu-west-1")) is Verdict.NOT_ALLOWED


@pytest.mark.parametrize("stack", STACKS)
def test_karpenter_gives_its_nodes_role_to_ec2_and_no_other(stack: str) -> None:
    cluster, ec2 = stack.removesuffix("-eks"), {"iam:PassedToService": "ec2.amazonaws.com"}

    def verdict(role: str, context: dict[str, str]) -> Verdict:
        return both(of_controller(stack), Request("iam:PassRole", f"arn:aws:iam::111122223333:role/{role}", context))

    assert verdict(f"KarpenterNodeRole-{cluster}", ec2) is Verdict.ALLOWED
    assert verdict(f"KarpenterNodeRole-{cluster}", {"iam:PassedToService": "lambda.amazonaws.com"}) is Verdict.NOT_ALLOWED
    assert verdict("admin", ec2) is Verdict.NOT_ALLOWED


@pytest.mark.parametrize("stack", STACKS)
def test_a_team_reads_and_writes_its_own_prefix_and_no_other(stack: str) -> None:
    cluster, teams = stack.removesuffix("-eks"), [each.name for each in plan_of(stack).teams]
    checkpoints, datasets = (f"arn:aws:s3:::111122223333-{cluster}-{name}-us-east-1" for name in ("checkpoints", "datasets"))
    writes = ["s3:PutObject", "s3:DeleteObject"]

    for team in teams:
        given: list[Document] = [json.loads(documents(stack)[f"{team}-storage-policy policy"])]
        for other in teams:
            wanted = Verdict.ALLOWED if other == team else Verdict.NOT_ALLOWED
            of_objects = [both(given, Request(each, f"{checkpoints}/{other}/run/1.pt")) for each in ("s3:GetObject", *writes)]
            of_lists = both(given, Request("s3:ListBucket", checkpoints, {"s3:prefix": f"{other}/run"}))
            assert {*of_objects, of_lists} == {wanted}, (team, other)
        assert both(given, Request("s3:ListBucket", checkpoints)) is Verdict.NOT_ALLOWED, "a list of everything names other teams' work"
        assert {both(given, Request(each, f"{datasets}/shared/a")) for each in writes} == {Verdict.NOT_ALLOWED}
        assert both(given, Request("s3:PutBucketPolicy", checkpoints)) is Verdict.NOT_ALLOWED


@pytest.mark.parametrize("stack", STACKS)
def test_a_node_passes_no_role_and_takes_none(stack: str) -> None:
    """By AWS's own documents of the policies that nodes have, as moto brings them."""
    managed = aws_managed_policies()
    roles = ("karpenter-nodes-role", "cluster-system-role")
    names = {each.inputs["name"] for each in as_shipped(stack).made.values() if each.name in roles}
    attached = as_shipped(stack).inputs_of("aws:iam/rolePolicyAttachment:RolePolicyAttachment")
    given = [managed[each["policyArn"]] for each in attached if each["role"] in names]
    anything: dict[str, str] = {"iam:PassedToService": "ec2.amazonaws.com"}

    assert len(given) == 6
    for action in (
        "iam:PassRole",
        "iam:AttachRolePolicy",
        "iam:CreateRole",
        "sts:AssumeRole",
        "ec2:RunInstances",
        "ec2:TerminateInstances",
    ):
        assert foreign_decision(given, Request(action, "arn:aws:iam::111122223333:role/admin", anything)) is Verdict.NOT_ALLOWED, action
    image = "arn:aws:ecr:us-east-1:602401143452:repository/eks/pause"
    assert foreign_decision(given, Request("ecr:BatchGetImage", image)) is Verdict.ALLOWED


@pytest.mark.parametrize("stack", STACKS)
def test_the_driver_of_disks_attaches_them_to_the_clusters_own_nodes_and_no_others(stack: str) -> None:
    """By AWS's own document of the policy that the driver's role has. Pod Identity gives its session the cluster's name as a tag."""
    declarations = as_shipped(stack)
    [cluster] = declarations.inputs_of(CLUSTER)
    attached = [each["policyArn"] for each in declarations.inputs_of("aws:iam/rolePolicyAttachment:RolePolicyAttachment")]
    [policy] = [arn for arn in aws_managed_policies() if "AmazonEBSCSIDriver" in arn and arn in attached]

    # principalmapper puts variables into resources, not into conditions.
    written = json.dumps(aws_managed_policies()[policy]).replace("${aws:PrincipalTag/eks-cluster-name}", cluster["name"])

    def verdict(kind: str, tags: dict[str, str]) -> Verdict:
        context = {f"ec2:ResourceTag/{key}": each for key, each in tags.items()}
        request = Request("ec2:AttachVolume", f"arn:aws:ec2:us-east-1:111122223333:{kind}/x-0a1b2c3d4e5f60718", context)
        return foreign_decision([json.loads(written)], request)

    for node_class in declarations.inputs_of(NODE_CLASS):
        assert verdict("instance", node_class["spec"]["tags"]) is Verdict.ALLOWED, node_class["metadata"]["name"]
    assert verdict("instance", {}) is Verdict.NOT_ALLOWED
    assert verdict("instance", {"ebs.csi.aws.com/cluster-name": "another"}) is Verdict.NOT_ALLOWED
    assert verdict("volume", {"ebs.csi.aws.com/cluster-name": cluster["name"]}) is Verdict.ALLOWED
    assert verdict("volume", {"ebs.csi.aws.com/cluster-name": "another"}) is Verdict.NOT_ALLOWED


@cache
def aws_managed_policies() -> dict[str, Document]:
    written: dict[str, Any] = json.loads(aws_managed_policies_data)
    return {f"arn:aws:iam::aws:policy{each['Path']}{name}": each["Document"] for name, each in written.items()}


@pytest.mark.parametrize("stack", STACKS)
def test_events_alone_may_send_to_the_interruption_queue_and_by_tls(stack: str) -> None:
    document: Document = json.loads(documents(stack)["interruptions-policy policy"])
    queue = f"arn:aws:sqs:us-east-1:111122223333:{stack.removesuffix('-eks')}"

    def verdict(principal: str, secure: str = "true") -> Verdict:
        request = Request("sqs:SendMessage", queue, {"aws:SecureTransport": secure}, principal)
        assert decide([document], request) is service_decision(document, request), request
        return decide([document], request)

    assert verdict("events.amazonaws.com") is Verdict.ALLOWED
    assert verdict("events.amazonaws.com", "false") is Verdict.DENIED
    assert verdict("s3.amazonaws.com") is Verdict.NOT_ALLOWED
