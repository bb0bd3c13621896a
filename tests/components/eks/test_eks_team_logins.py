"""EksTeamLogins: one access entry for each role, with all its groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from eks_cluster_args import ACCOUNT, TAGS
from pulumi.provider.experimental.analyzer import Analyzer

from components.eks.team_logins import EksTeamLogins, EksTeamLoginsArgs

Register = Callable[[Callable[[], object]], Any]

ENTRY = "aws:eks/accessEntry:AccessEntry"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/aws-reserved/sso.amazonaws.com/us-east-1/AWSReservedSSO_Nlp_0123456789abcdef"


def args(**changes: Any) -> EksTeamLoginsArgs:
    return {"cluster_name": "prod", "groups": {ROLE: ["nlp"]}, "tags": TAGS} | changes  # pyrefly: ignore[bad-return] -- a test's own


def test_a_role_with_its_path_has_one_entry_with_all_its_groups_in_one_order_always(register: Register) -> None:
    [entry] = register(lambda: EksTeamLogins("logins", args(groups={ROLE: ["vision", "nlp", "nlp"]}))).of(ENTRY)

    assert entry == {
        "clusterName": "prod",
        "principalArn": ROLE,
        "type": "STANDARD",
        "kubernetesGroups": ["nlp", "vision"],
        "tags": TAGS,
    }


def test_roles_of_one_name_have_entries_of_their_own_whatever_their_account_and_path(register: Register) -> None:
    roles = [f"arn:aws:iam::{account}:role/{path}nlp" for account in (ACCOUNT, "444455556666") for path in ("", "teams/", "teams-")]

    registered = register(lambda: EksTeamLogins("logins", args(groups={role: ["nlp"] for role in roles})))

    assert sorted(each["principalArn"] for each in registered.of(ENTRY)) == sorted(roles)
    assert len(set(registered.names(ENTRY))) == len(roles)


@pytest.mark.parametrize(
    "changes,problem",
    [
        ({"groups": {"nlp": ["nlp"]}}, "groups names 'nlp', which is 'nlp'; it must be the ARN of a role"),
        ({"groups": {f"arn:aws:iam::{ACCOUNT}:user/ada": ["nlp"]}}, "it must be the ARN of a role"),
        ({"groups": {ROLE: []}}, "has none for"),
        ({"groups": {ROLE: [""]}}, "groups has ''"),
        ({"groups": {ROLE: ["system:masters"]}}, "EKS keeps what begins with system:, eks:, aws:, amazon:, iam:"),
        ({"groups": {ROLE: ["nlp", "iam:nlp"]}}, "groups has 'iam:nlp'"),
        ({"partition": "aws-cn"}, "a role of another partition than aws-cn"),
        ({"partition": "gcp"}, "partition is 'gcp'; allowed: aws, aws-cn, aws-us-gov"),
    ],
)
def test_what_eks_would_refuse_is_refused_before_anything_is_registered(changes: dict[str, Any], problem: str, register: Register) -> None:
    with pytest.raises(ValueError, match=f"EksTeamLogins logins: .*{problem}"):
        register(lambda: EksTeamLogins("logins", args(**changes)))


def test_pulumis_component_host_accepts_the_arguments_and_knows_which_are_optional() -> None:
    component = Analyzer("flexspot").analyze([EksTeamLogins])["component_definitions"]["EksTeamLogins"]

    assert {name for name, each in component.inputs.items() if not each.optional} == {"clusterName", "groups"}
