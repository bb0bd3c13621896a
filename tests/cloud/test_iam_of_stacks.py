"""The IAM documents of the EKS stacks, judged by an independent linter: parliament, which knows every AWS action and condition.

The whole documents of the shipped stacks are in tests/infra/snapshots.
"""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from eks_declarations import CLUSTER, NODE_CLASS
from iam_judge import Finding, findings, listed
from moto.iam.aws_managed_policies import aws_managed_policies_data
from organisation_stack import everything_settings
from program_declarations import as_shipped, declared, plan_of

if TYPE_CHECKING:
    from program_declarations import Declarations

    from flexspot.components.iam import PolicyDocument

pytestmark = pytest.mark.slow

EVERYTHING = "everything"
"""Production as an organisation uses it, with all AWS resources that a stack can declare."""

JUDGED = ("dev-eks", EVERYTHING)
DOCUMENTED = {"policy": False, "assumeRolePolicy": True}
"""Inputs that are documents, and whether they say who may assume a role."""

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
"""Accepted findings of parliament, by its name of the finding and the resource, with the reason."""


@cache
def judged(stack: str) -> Declarations:
    return declared("prod-eks", everything_settings()) if stack == EVERYTHING else as_shipped(stack)


@cache
def documents(stack: str) -> dict[str, str]:
    """Return every document of the stack, by its resource and input, except those that contain unknown values."""
    made = [each for each in judged(stack).made.values() if each.type.startswith("aws:") and each.type not in NOT_KNOWN]
    return {f"{each.name} {key}": each.inputs[key] for each in made for key in DOCUMENTED if key in each.inputs}


NOT_KNOWN = {"aws:efs/fileSystemPolicy:FileSystemPolicy"}
"""Documents with unknown values. tests/components/storage/test_efs_file_system.py has its statements, and parliament reads it in
test_eks_choices_on_moto.py.
"""


@cache
def found(stack: str) -> tuple[tuple[str, Finding], ...]:
    said = {name: findings(text, resource_own=DOCUMENTED[name.rpartition(" ")[2]]) for name, text in documents(stack).items()}
    return tuple((name.partition(" ")[0], each) for name, all_of in said.items() for each in all_of)


def reason(resource: str, finding: Finding) -> str | None:
    of_buckets = resource in {"checkpoints-policy", "datasets-policy"} and "s3:TlsVersion" in finding.details
    return ACCEPTED.get((finding.issue, "*-policy" if of_buckets else resource))


@pytest.mark.parametrize("stack", JUDGED)
def test_every_document_is_known_in_a_preview(stack: str) -> None:
    """So that rules and these tests can judge it in a preview."""
    assert len(documents(stack)) > 20
    assert all(isinstance(json.loads(each)["Statement"], list) for each in documents(stack).values())


def test_no_document_of_ours_passes_any_role_or_allows_everything() -> None:
    for name, text in documents(EVERYTHING).items():
        for each in json.loads(text)["Statement"]:
            actions, resources = listed(each["Action"]), listed(each.get("Resource", []))
            assert each["Effect"] == "Deny" or not {"*", "iam:*", "s3:*", "ec2:*"} & {*actions}, name
            if "iam:PassRole" in actions:
                assert resources == ["arn:aws:iam::111122223333:role/platform/KarpenterNodeRole-prod"], name
                assert each["Condition"] == {"StringEquals": {"iam:PassedToService": ["ec2.amazonaws.com", "ec2.amazonaws.com.cn"]}}, name


@pytest.mark.parametrize("stack", JUDGED)
def test_every_finding_is_accepted_with_a_reason(stack: str) -> None:
    assert [(resource, each) for resource, each in found(stack) if reason(resource, each) is None] == []


def test_every_accepted_finding_still_occurs() -> None:
    reasons = {reason(resource, each) for stack in JUDGED for resource, each in found(stack)}

    assert set(ACCEPTED.values()) == reasons - {None}


def test_a_team_reads_and_writes_only_its_own_prefix() -> None:
    for team in (each.name for each in plan_of("prod-eks").teams):
        document = json.loads(documents(EVERYTHING)[f"{team}-storage-policy policy"])
        written = [each for each in document["Statement"] if "s3:PutObject" in each["Action"]]
        assert [each["Resource"] for each in written] == [f"arn:aws:s3:::111122223333-prod-checkpoints-us-east-1/{team}/*"]
        [listing] = [each for each in document["Statement"] if each["Sid"] == "ListCheckpoints"]
        assert listing["Condition"] == {"StringLike": {"s3:prefix": [f"{team}/*"]}}, "a list of everything names other teams' work"


@cache
def aws_managed_policies() -> dict[str, PolicyDocument]:
    written: dict[str, Any] = json.loads(aws_managed_policies_data)
    return {f"arn:aws:iam::aws:policy{each['Path']}{name}": each["Document"] for name, each in written.items()}


def attached(*roles: str) -> dict[str, PolicyDocument]:
    """Return AWS's own documents of the policies attached to roles of dev-eks, as moto has them."""
    names = {each.inputs["name"] for each in as_shipped("dev-eks").made.values() if each.name in roles}
    found = as_shipped("dev-eks").inputs_of("aws:iam/rolePolicyAttachment:RolePolicyAttachment")
    return {each["policyArn"]: aws_managed_policies()[each["policyArn"]] for each in found if each["role"] in names}


def test_a_node_has_the_three_policies_that_nodes_need_and_no_document_of_ours() -> None:
    of_nodes = {"AmazonEKSWorkerNodePolicy", "AmazonEC2ContainerRegistryPullOnly", "AmazonSSMManagedInstanceCore"}

    for role in ("karpenter-nodes-role", "cluster-system-role"):
        assert {arn.rpartition("/")[2] for arn in attached(role)} == of_nodes


def test_the_clusters_nodes_carry_the_tag_that_the_disk_driver_requires() -> None:
    """AWS's own policy of the driver attaches disks to instances that are tagged with the name of the session's cluster."""
    [cluster] = as_shipped("dev-eks").inputs_of(CLUSTER)
    [policy] = [document for arn, document in attached("cluster-aws-ebs-csi-driver-role").items() if "AmazonEBSCSIDriver" in arn]
    conditions = [each.get("Condition") for each in policy["Statement"] if "ec2:AttachVolume" in each["Action"]]

    tag = "ebs.csi.aws.com/cluster-name"
    assert {"StringEquals": {f"ec2:ResourceTag/{tag}": "${aws:PrincipalTag/eks-cluster-name}"}} in conditions
    tagged = {each["metadata"]["name"]: each["spec"]["tags"].get(tag) for each in as_shipped("dev-eks").inputs_of(NODE_CLASS)}
    assert set(tagged.values()) == {cluster["name"]}, tagged
