"""Whether those whom a stack lets into its cluster can get in: roles of IAM and groups, as EKS takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexspot.capacity.catalog.platform import partition_of
from flexspot.capacity.plan.teams import is_role
from flexspot.capacity.settings.platform import EksSettings
from flexspot.capacity.settings.teams import RESERVED_GROUPS, AdmissionMode
from flexspot.capacity.values.errors import SettingsProblem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexspot.capacity.plan.resolve import ResolvedSettings


def roles_are_of_the_clusters_partition(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """AWS's partitions know nothing of each other's roles, and other clouds nothing of any."""
    settings = resolved.settings
    for path, role in [*_members(resolved, roles=True), *_admins(resolved)]:
        if not isinstance(settings, EksSettings):
            yield SettingsProblem(path, role, "is an IAM role, which only EKS can map to a group", "name a group", "role-without-eks")
        elif role.split(":")[1] != (partition := partition_of(settings.region)):
            problem = f"is a role of another partition: {settings.region} is in {partition}"
            yield SettingsProblem(path, role, problem, f"name a role, arn:{partition}:iam::...", "role-of-another-partition")


def roles_have_one_access_entry(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """EKS refuses a second access entry of a role; an administrator may do all that a team may."""
    admins: set[str] = set()
    for path, role in _admins(resolved):
        if role in admins:
            yield SettingsProblem(path, role, "is named twice", "name it once", "duplicate-name")
        admins.add(role)
    for path, role in _members(resolved, roles=True):
        if role in admins:
            problem = "is one of cluster.admin_roles, which may do all that a team may"
            yield SettingsProblem(path, role, problem, "remove it from one of the two", "role-is-administrator")


def groups_can_have_members(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """EKS takes no access entry with a group of a reserved name, so nobody would be in it."""
    if not isinstance(resolved.settings, EksSettings):
        return
    for path, group in _members(resolved, roles=False):
        if group.startswith(RESERVED_GROUPS):
            problem = f"is a group that no access entry may name: EKS reserves {', '.join(RESERVED_GROUPS)}"
            yield SettingsProblem(path, group, problem, "choose another name, or name an IAM role", "reserved-name")


def the_api_server_holds_what_is_guaranteed(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Without the policies whoever may make Jobs gets GPUs that no queue counts."""
    mode = resolved.settings.admission.mode
    if mode is not AdmissionMode.ENFORCE and len(resolved.settings.teams) > 1:
        problem = "refuses nothing, so members of one team can take GPUs that are guaranteed to another"
        yield SettingsProblem(
            "admission.mode", repr(mode.value), problem, f"use {AdmissionMode.ENFORCE}", "guarantee-not-held", refused=False
        )


def _members(resolved: ResolvedSettings, *, roles: bool) -> Iterator[tuple[str, str]]:
    for number, team in enumerate(resolved.settings.teams):
        for field, members in (("submitters", team.submitters), ("viewers", team.viewers)):
            yield from ((f"teams.{number}.{field}.{each}", member) for each, member in enumerate(members) if is_role(member) == roles)


def _admins(resolved: ResolvedSettings) -> Iterator[tuple[str, str]]:
    """Those of a cluster that the stack makes: on another one their access is its owner's."""
    if isinstance(resolved.settings, EksSettings) and resolved.settings.cluster.existing is None:
        yield from ((f"cluster.admin_roles.{number}", role) for number, role in enumerate(resolved.settings.cluster.admin_roles))


CHECKS = (
    roles_are_of_the_clusters_partition,
    roles_have_one_access_entry,
    groups_can_have_members,
    the_api_server_holds_what_is_guaranteed,
)
