"""Checks of roles and groups that would get no access, and of enforced guarantees."""

from __future__ import annotations

from typing import Any

import pytest
from resolved_fixtures import reports

from flexspot.capacity.plan.checks.shares import (
    groups_can_have_members,
    roles_are_of_the_clusters_partition,
    roles_have_one_access_entry,
    the_api_server_enforces_guarantees,
)

ROLE = "arn:aws:iam::111122223333:role/teams/nlp"
CHINESE = "arn:aws-cn:iam::111122223333:role/nlp"


@pytest.mark.parametrize("cloud", ["gke", "local"])
def test_iam_roles_are_members_only_on_eks(cloud: str) -> None:
    team = {"teams.0.submitters": ["ml-red@acme.com", ROLE]}

    assert reports(roles_are_of_the_clusters_partition, cloud, team) == ["refused: role-without-eks at teams.0.submitters.1"]
    assert reports(roles_are_of_the_clusters_partition, "eks", team) == []


@pytest.mark.parametrize("path", ["teams.0.viewers", "cluster.admin_roles"])
def test_a_role_must_be_of_the_partition_of_the_region(path: str) -> None:
    assert reports(roles_are_of_the_clusters_partition, "eks", {path: [CHINESE]}) == [f"refused: role-of-another-partition at {path}.0"]
    assert reports(roles_are_of_the_clusters_partition, "eks", {path: [ROLE]}) == []


def test_a_role_may_be_in_several_teams_but_not_an_administrator_too() -> None:
    team: dict[str, Any] = {"teams.0.submitters": [ROLE], "teams.0.viewers": [ROLE], "teams.1": {"name": "blue", "viewers": [ROLE]}}

    assert reports(roles_have_one_access_entry, "eks", team) == []
    assert reports(roles_have_one_access_entry, "eks", team | {"cluster.admin_roles": [ROLE]}) == [
        f"refused: role-is-administrator at teams.{path}.0" for path in ("0.submitters", "0.viewers", "1.viewers")
    ]


def test_a_duplicate_administrator_is_refused() -> None:
    twice = {"cluster.admin_roles": [ROLE, ROLE]}

    assert reports(roles_have_one_access_entry, "eks", twice) == ["refused: duplicate-name at cluster.admin_roles.1"]


@pytest.mark.parametrize("group", ["eks:people", "aws:people", "amazon:people", "iam:people"])
def test_a_group_that_eks_reserves_is_refused(group: str) -> None:
    team = {"teams.0.viewers": ["people", group]}

    assert reports(groups_can_have_members, "eks", team) == ["refused: reserved-name at teams.0.viewers.1"]
    assert reports(groups_can_have_members, "gke", team) == []


def test_several_teams_without_enforced_rules_get_a_warning() -> None:
    warned = ["warned: guarantee-not-held at admission.mode"]

    for mode, expected in (("enforce", []), ("warn", warned), ("none", warned)):
        changes = {"admission.mode": mode, "teams": [{"name": "red"}, {"name": "blue"}]}
        assert reports(the_api_server_enforces_guarantees, "gke", changes) == expected
    alone: dict[str, Any] = {"admission.mode": "none", "teams": [{"name": "red"}]}
    assert reports(the_api_server_enforces_guarantees, "gke", alone) == []
