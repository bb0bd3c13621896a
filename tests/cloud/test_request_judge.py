"""AWS's own models have nothing against the requests of the EKS stacks, and the judge that asks them sees what is wrong."""

from __future__ import annotations

from typing import Any

import pytest
from aws_calls import CREATED_BY
from cloud_resources import kinds
from program_declarations import as_shipped
from request_judge import refused_of, refused_requests

pytestmark = pytest.mark.thorough

NAMES = {"clusterName": "dev", "addonName": "vpc-cni"}


@pytest.mark.parametrize("stack", ["dev-eks", "prod-eks"])
def test_the_models_allow_every_request_of_a_shipped_stack(stack: str) -> None:
    assert refused_requests(as_shipped(stack).made.values()) == []


def test_every_type_that_the_stand_in_cloud_knows_has_its_calls() -> None:
    """So that a resource which only some settings bring is not forgotten."""
    known = {each for each in kinds() if each.startswith("aws:")}

    assert sorted(known - CREATED_BY.keys()) == []


@pytest.mark.parametrize(
    "kind,inputs,said",
    [
        ("aws:ec2/eip:Eip", {"domain": "vpcs"}, "allowed: vpc, standard"),
        ("aws:iam/role:Role", {"name": "a role", "assumeRolePolicy": "{}"}, r"RoleName: is 'a role', which does not match"),
        ("aws:iam/role:Role", {"name": "r" * 65, "assumeRolePolicy": "{}"}, "above 64"),
        ("aws:kms/alias:Alias", {"name": "alias/eks/x"}, "TargetKeyId: is required"),
        ("aws:cloudwatch/logGroup:LogGroup", {"name": "/aws/eks/x", "retentionInDays": "a week"}, "not of type integer"),
        ("aws:eks/addon:Addon", {**NAMES, "resolveConflictsOnUpdate": "KEEP"}, "UpdateAddon.resolveConflicts: is 'KEEP'; allowed"),
        ("aws:eks/addon:Addon", {**NAMES, "podIdentityAssociations": [{"serviceAccount": "aws-node"}]}, "roleArn: is required"),
        ("aws:ec2/vpc:Vpc", {"cidrBlock": "10.0.0.0/16", "flowLogs": True}, "no call takes flowLogs"),
        ("aws:eks/fargateProfile:FargateProfile", {}, "nobody has said by which calls"),
        ("aws:s3/bucketVersioning:BucketVersioning", {"bucket": "b-1", "versioningConfiguration": {"state": "on"}}, "no such member"),
    ],
)
def test_what_is_wrong_with_a_request_is_said(kind: str, inputs: dict[str, Any], said: str) -> None:
    problems = refused_of(kind, inputs)

    assert any(said in each for each in problems), problems
