"""Names that would have two meanings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.catalog.platform import MEASUREMENT_NAMESPACE, Platform
from capacity.values.errors import SettingsProblem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from capacity.plan.resolved_settings import ResolvedSettings


_TAKEN_NAMESPACES = frozenset(
    {
        "default",
        "kueue-system",
        "karpenter",
        "gmp-public",
        "gmp-system",
        "gke-connect",
        "gke-gmp-system",
        "gke-system",
        "gkebackup",
        "config-management-system",
        "monitoring",
        "cert-manager",
        MEASUREMENT_NAMESPACE,
    }
)
_TAKEN_PREFIXES = ("kube-", "gke-managed-")
"""What Kubernetes' and GKE's own namespaces begin with."""

_TAKEN_POOLS: dict[Platform, tuple[tuple[str, ...], tuple[str, ...]]] = {
    # Of controllers, of GKE's first nodes, and of those that it adds by itself.
    Platform.GKE: (("system", "default-pool"), ("nap-",)),
    # For work without GPUs.
    Platform.EKS: (("other-work",), ()),
}
"""Names of pools that are there without the plan's, and what such names begin with."""


def names_are_unique(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Pools, teams and cohorts have names of their own, and classes have PriorityClasses of their own."""
    settings = resolved.settings
    found = [
        [(f"pools.{number}.name", each.name) for number, each in enumerate(settings.pools)],
        [(f"teams.{number}.name", each.name) for number, each in enumerate(settings.teams)],
        [("cohort", settings.cohort), *((f"cohorts.{number}.name", each.name) for number, each in enumerate(settings.cohorts))],
        [(f"classes.{name}.priority_class", each.priority_class) for name, each in resolved.known_classes.items()],
    ]
    for named in found:
        first: dict[str, str] = {}
        for path, name in named:
            if name in first:
                yield SettingsProblem(
                    path,
                    repr(name),
                    f"is taken by {first[name].rpartition('.')[0] or first[name]}",
                    "choose another name",
                    "duplicate-name",
                )
            first.setdefault(name, path)


def alternatives_are_other_machines(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """An alternative is another machine than those before it."""
    for number, pool in enumerate(resolved.settings.pools):
        alternatives: tuple[str, ...] = getattr(pool, "alternatives", ())
        for place, name in enumerate(alternatives):
            if name in (pool.machine, *alternatives[:place]):
                path = f"pools.{number}.alternatives.{place}"
                yield SettingsProblem(path, repr(name), "stands twice", "leave one of them out", "duplicate-name")


def teams_do_not_take_a_namespace_of_the_cluster(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """A team's name is its namespace, which must not be one that the cluster or a controller has."""
    for number, team in enumerate(resolved.settings.teams):
        if team.name in _TAKEN_NAMESPACES or team.name.startswith(_TAKEN_PREFIXES):
            path = f"teams.{number}.name"
            yield SettingsProblem(path, repr(team.name), "is a namespace of the cluster's own", "choose another name", "reserved-name")


def priority_classes_are_not_the_clusters_own(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Kubernetes refuses PriorityClasses of others whose names begin with system-."""
    for name, each in resolved.known_classes.items():
        if each.priority_class.startswith("system-"):
            path = f"classes.{name}.priority_class"
            yield SettingsProblem(path, repr(each.priority_class), "is a name of the cluster's own", "choose another name", "reserved-name")


def flavors_do_not_take_a_pools_name(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """`any-...` is what a flavor of several pools is called."""
    for pool in resolved.pools.values():
        if pool.name.startswith("any-"):
            remedy = "choose a name that does not begin with any-"
            yield SettingsProblem(
                f"{pool.path}.name", repr(pool.name), "is how flavors of several pools are called", remedy, "reserved-name"
            )


def pools_do_not_take_a_name_of_the_platform(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Beside the plan's pools a cluster has some of its own, and creating a second of a name fails in the middle of the deployment."""
    names, prefixes = _TAKEN_POOLS.get(resolved.settings.cloud, ((), ()))
    for pool in resolved.pools.values():
        if pool.name in names or pool.name.startswith(prefixes):
            yield SettingsProblem(
                f"{pool.path}.name", repr(pool.name), "is a pool that the cluster has by itself", "choose another name", "reserved-name"
            )


CHECKS = (
    names_are_unique,
    alternatives_are_other_machines,
    teams_do_not_take_a_namespace_of_the_cluster,
    priority_classes_are_not_the_clusters_own,
    flavors_do_not_take_a_pools_name,
    pools_do_not_take_a_name_of_the_platform,
)
