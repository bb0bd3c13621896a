"""Who is in which group of Kubernetes: teams' own groups, and on EKS the roles of IAM that they name."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from capacity.settings.teams import TeamSettings

SUBMIT, VIEW = "submit", "view"
"""The names of a team's two roles of Kubernetes."""


def is_role(member: str) -> bool:
    """Whether one of a team's submitters or viewers is a role of IAM, and not a group."""
    return member.startswith("arn:")


def group_of_roles(team: str, right: str) -> str:
    """The group that all roles of IAM are in that a team names for a right."""
    return f"flexspot:{team}:{right}"


def groups_of(team: str, members: Iterable[str], right: str) -> tuple[str, ...]:
    """The groups that a team's right is bound to: its own, and one for all its roles of IAM."""
    return tuple(sorted({group_of_roles(team, right) if is_role(each) else each for each in members}))


def groups_by_role(teams: Iterable[TeamSettings]) -> dict[str, list[str]]:
    """The groups of each role of IAM, of all teams together: EKS takes one access entry of a role."""
    found: dict[str, set[str]] = {}
    for team in teams:
        for right, members in ((SUBMIT, team.submitters), (VIEW, team.viewers)):
            for role in filter(is_role, members):
                found.setdefault(role, set()).add(group_of_roles(team.name, right))
    return {role: sorted(groups) for role, groups in sorted(found.items())}
