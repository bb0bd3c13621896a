"""EksTeamLogins: one access entry for each role, with all its groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from eks_cluster_args import ACCOUNT, TAGS

from flexspot.components.eks.cluster import EksTeamLogins, EksTeamLoginsArgs

if TYPE_CHECKING:
    from component_types import Refusal, Register

ENTRY = "aws:eks/accessEntry:AccessEntry"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/aws-reserved/sso.amazonaws.com/us-east-1/AWSReservedSSO_Nlp_0123456789abcdef"


def args(**changes: Any) -> EksTeamLoginsArgs:
    return {"cluster_name": "prod", "groups": {ROLE: ["nlp"]}, "tags": TAGS} | changes  # pyrefly: ignore[bad-return] -- a test's own


def test_a_role_with_its_path_has_one_entry_with_all_its_groups_always_in_the_same_order(register: Register) -> None:
    [entry] = register(lambda: EksTeamLogins("logins", args(groups={ROLE: ["vision", "nlp", "nlp"]}))).of(ENTRY)

    assert entry == {
        "clusterName": "prod",
        "principalArn": ROLE,
        "type": "STANDARD",
        "kubernetesGroups": ["nlp", "vision"],
        "tags": TAGS,
    }


def test_roles_with_the_same_name_have_separate_entries_by_account_and_path(register: Register) -> None:
    roles = [f"arn:aws:iam::{account}:role/{path}nlp" for account in (ACCOUNT, "444455556666") for path in ("", "teams/", "teams-")]

    registered = register(lambda: EksTeamLogins("logins", args(groups={role: ["nlp"] for role in roles})))

    assert sorted(each["principalArn"] for each in registered.of(ENTRY)) == sorted(roles)
    assert len(set(registered.names(ENTRY))) == len(roles)


@pytest.mark.parametrize(
    "changes,problem",
    [
        ({"groups": {"nlp": ["nlp"]}}, "groups (is 'nlp'): must be the ARN of a role"),
        ({"groups": {f"arn:aws:iam::{ACCOUNT}:user/ada": ["nlp"]}}, "must be the ARN of a role"),
        (
            {"groups": {ROLE: []}},
            "groups.arn:aws:iam::111122223333:role/aws-reserved/sso.amazonaws.com/us-east-1/AWSReservedSSO_Nlp_0123456789ab",
        ),
        ({"groups": {ROLE: ["system:masters"]}}, "begins with a prefix that EKS reserves: system:, eks:, aws:, amazon:, iam:"),
        ({"groups": {ROLE: ["nlp", "iam:nlp"]}}, "(is 'iam:nlp')"),
        (
            {"partition": "aws-cn"},
            "groups.arn:aws:iam::111122223333:role/aws-reserved/sso.amazonaws.com/us-east-1/AWSReservedSSO_Nlp_0123456789ab",
        ),
    ],
)
def test_arguments_that_eks_would_reject_are_refused_before_anything_is_registered(
    changes: dict[str, Any], problem: str, refusal: Refusal
) -> None:
    assert problem in refusal(EksTeamLogins, "logins", args(**changes))
