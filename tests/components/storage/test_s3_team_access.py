"""S3TeamAccess: a team's role, its trust policy and invalid arguments."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pulumi
import pytest
from s3_team_access_args import CHECKPOINTS, DATASETS, KEY, team_access_args

from flexspot.components.storage.s3_team_access import S3TeamAccess, team_role_name

if TYPE_CHECKING:
    from component_types import Outputs, Refusal, Register

ROLE = "aws:iam/role:Role"
ROLE_POLICY = "aws:iam/rolePolicy:RolePolicy"
ASSOCIATION = "aws:eks/podIdentityAssociation:PodIdentityAssociation"


def test_only_a_teams_own_pods_in_its_own_cluster_can_assume_its_role(register: Register) -> None:
    registered = register(lambda: S3TeamAccess("red", team_access_args()))

    [role] = registered.of(ROLE)
    assert (role["name"], role["tags"]) == ("acme-dev-team-red", {"environment": "dev", "team": "red"})
    assert role["description"] == "Pods of team red in namespace team-red of dev; made by Flexspot."
    [statement] = json.loads(role["assumeRolePolicy"])["Statement"]
    assert (statement["Principal"], statement["Action"]) == (
        {"Service": "pods.eks.amazonaws.com"},
        ["sts:AssumeRole", "sts:TagSession"],
    )
    assert statement["Condition"] == {
        "StringEquals": {
            "aws:RequestTag/eks-cluster-arn": "arn:aws:eks:us-east-1:111122223333:cluster/acme-dev",
            "aws:RequestTag/kubernetes-namespace": "team-red",
            "aws:RequestTag/kubernetes-service-account": "trainer",
        }
    }


def test_the_teams_service_account_gets_the_role_once_the_cluster_exists(register: Register) -> None:
    registered = register(lambda: S3TeamAccess("red", team_access_args(cluster_name=pulumi.Output.from_input("acme-dev"))))

    assert registered.of(ASSOCIATION) == [
        {
            "clusterName": "acme-dev",
            "namespace": "team-red",
            "serviceAccount": "trainer",
            "roleArn": "arn:aws:iam::111122223333:role/acme-dev-team-red",
            "region": "us-east-1",
            "tags": {"environment": "dev", "team": "red"},
        }
    ]
    kinds = [kind for kind, _, _ in registered.resources]
    assert kinds.index(ROLE_POLICY) < kinds.index(ASSOCIATION), "pods that start at once may use the buckets at once"


def test_a_key_that_is_not_known_yet_is_named_when_it_is(register: Register) -> None:
    registered = register(lambda: S3TeamAccess("red", team_access_args(kms_key=pulumi.Output.from_input(KEY))))

    [policy] = registered.of(ROLE_POLICY)
    assert (policy["role"], policy["name"]) == ("acme-dev-team-red", "buckets")
    assert [each["Sid"] for each in json.loads(policy["policy"])["Statement"] if each["Resource"] == KEY] == ["UseKeyForCheckpoints"]


def test_every_arn_is_of_the_partition(register: Register) -> None:
    place = {"partition": "aws-us-gov", "region": "us-gov-west-1", "dataset_bucket": DATASETS}

    registered = register(lambda: S3TeamAccess("red", team_access_args(**place)))

    written = json.dumps([registered.of(ROLE), registered.of(ROLE_POLICY), registered.of(ASSOCIATION)])
    assert "arn:aws-us-gov:iam::" in written
    assert "arn:aws-us-gov:s3:::" in written
    assert "arn:aws-us-gov:eks:us-gov-west-1:" in written
    assert "arn:aws:" not in written


def test_a_role_of_a_cluster_with_the_longest_name_fits_and_is_unique(register: Register) -> None:
    names = [
        register(lambda team=team: S3TeamAccess("long", team_access_args(cluster="c" * 100, team=team))).of(ROLE)[0]["name"]
        for team in ("red", "blue")
    ]

    assert [len(name) for name in names] == [64, 64]
    assert names == [team_role_name("c" * 100, "red"), team_role_name("c" * 100, "blue")]
    assert names[0] != names[1]


def test_its_outputs_are_the_role_and_the_folder(outputs: Outputs) -> None:
    assert outputs(lambda: S3TeamAccess("red", team_access_args())) == {
        "role_name": "acme-dev-team-red",
        "role_arn": "arn:aws:iam::111122223333:role/acme-dev-team-red",
        "checkpoint_url": f"s3://{CHECKPOINTS}/red/",
    }


@pytest.mark.parametrize(
    "change,problem",
    [
        ({"team": "Red"}, "team (is 'Red'): must have 1 to 40 characters of a-z, 0-9 and inner -, and begin with a letter; respell it"),
        (
            {"team": "red/../blue"},
            "team (is 'red/../blue'): must have 1 to 40 characters of a-z, 0-9 and inner -, and begin with a letter; respell it",
        ),
        ({"region": "us-gov-west-1"}, "partition (is 'aws'): region us-gov-west-1 is in partition aws-us-gov"),
        ({"namespace": "team_red"}, "namespace (is 'team_red'): must have 1 to 63 characters of a-z, 0-9 and inner -; respell it"),
        (
            {"checkpoint_bucket": "acme.ai"},
            "checkpoint_bucket (is 'acme.ai', 7 characters): must have 3 to 63 characters of a-z, 0-9 and -, and begin and end with",
        ),
        (
            {"dataset_bucket": CHECKPOINTS},
            "dataset_bucket (is '111122223333-dev-checkpoints-us-east-1'): is also the checkpoint bucket, whose folders belong to",
        ),
        ({"kms_key": "alias/ai"}, "kms_key (is 'alias/ai'): must be a key's ARN such as arn:aws:kms:"),
        ({"tags": {"aws:team": "red"}}, "tags: the key 'aws:team' must"),
    ],
)
def test_access_that_could_not_be_granted_is_refused_before_anything_is_registered(
    change: dict[str, Any], problem: str, refusal: Refusal
) -> None:
    assert problem in refusal(S3TeamAccess, "red", team_access_args(**change))
