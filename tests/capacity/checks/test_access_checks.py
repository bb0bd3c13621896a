"""Roles and groups that a stack would let in, and nobody could use."""

from __future__ import annotations

from typing import Any

import pytest
from resolved_fixtures import told

from flexspot.capacity.plan.checks.shares import (
    groups_can_have_members,
    roles_are_of_the_clusters_partition,
    roles_have_one_access_entry,
    the_api_server_holds_what_is_guaranteed,
)

ROLE = "arn:aws:iam::111122223333:role/teams/nlp"
CHINESE = "arn:aws-cn:iam::111122223333:role/nlp"


@pytest.mark.parametrize("cloud", ["gke", "local"])
def test_roles_of_iam_are_members_on_eks_alone(cloud: str) -> None:
    team = {"teams.0.submitters": ["ml-red@acme.com", ROLE]}

    assert told(roles_are_of_the_clusters_partition, cloud, team) == ["refused: role-without-eks at teams.0.submitters.1"]
    assert told(roles_are_of_the_clusters_partition, "eks", team) == []


@pytest.mark.parametrize("path", ["teams.0.viewers", "cluster.admin_roles"])
def test_a_role_is_of_the_partition_of_the_region(path: str) -> None:
    assert told(roles_are_of_the_clusters_partition, "eks", {path: [CHINESE]}) == [f"refused: role-of-another-partition at {path}.0"]
    assert told(roles_are_of_the_clusters_partition, "eks", {path: [ROLE]}) == []


def test_a_role_is_in_several_teams_and_no_administrator() -> None:
    team: dict[str, Any] = {"teams.0.submitters": [ROLE], "teams.0.viewers": [ROLE], "teams.1": {"name": "blue", "viewers": [ROLE]}}

    assert told(roles_have_one_access_entry, "eks", team) == []
    assert told(roles_have_one_access_entry, "eks", team | {"cluster.admin_roles": [ROLE]}) == [
        f"refused: role-is-administrator at teams.{path}.0" for path in ("0.submitters", "0.viewers", "1.viewers")
    ]


def test_an_administrator_is_named_once() -> None:
    twice = {"cluster.admin_roles": [ROLE, ROLE]}

    assert told(roles_have_one_access_entry, "eks", twice) == ["refused: duplicate-name at cluster.admin_roles.1"]


@pytest.mark.parametrize("group", ["eks:people", "aws:people", "amazon:people", "iam:people"])
def test_no_access_entry_names_a_group_that_eks_keeps(group: str) -> None:
    team = {"teams.0.viewers": ["people", group]}

    assert told(groups_can_have_members, "eks", team) == ["refused: reserved-name at teams.0.viewers.1"]
    assert told(groups_can_have_members, "gke", team) == []


def test_a_guarantee_among_several_teams_that_the_api_server_does_not_hold_is_warned_of() -> None:
    warned = ["warned: guarantee-not-held at admission.mode"]

    for mode, expected in (("enforce", []), ("warn", warned), ("none", warned)):
        changes = {"admission.mode": mode, "teams": [{"name": "red"}, {"name": "blue"}]}
        assert told(the_api_server_holds_what_is_guaranteed, "gke", changes) == expected
    alone: dict[str, Any] = {"admission.mode": "none", "teams": [{"name": "red"}]}
    assert told(the_api_server_holds_what_is_guaranteed, "gke", alone) == []
