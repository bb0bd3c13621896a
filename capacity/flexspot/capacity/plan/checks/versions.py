"""Checks of versions and upgrades: Kubernetes, GKE features, EKS add-ons, Karpenter and Kueue, and maintenance of clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.catalog.versions import (
    RECOMMENDED,
    Addon,
    GkeFeature,
    gke_floors,
    is_below,
    minor_version,
    names_a_patch,
    shipped_versions,
    version_order,
)
from flexspot.capacity.plan.needs import gke_features
from flexspot.capacity.plan.pools import compute_class_of
from flexspot.capacity.plan.versions import EKS_DEFAULT
from flexspot.capacity.settings.maintenance import WITHOUT_UPGRADES, WITHOUT_UPGRADES_DAYS, ExclusionScope
from flexspot.capacity.settings.platform import EksSettings, GkeSettings
from flexspot.capacity.settings.pools import GkePool
from flexspot.capacity.values.errors import SettingsProblem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexspot.capacity.plan.resolve import ResolvedSettings


def addons_are_not_too_old(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Refuse add-ons that are older than the platform requires."""
    for name, version in _pins(resolved).items():
        floor = shipped_versions().addons_at_least.get(name)
        if floor is not None and version_order(version) < version_order(floor.version):
            remedy = f"allowed: {floor.version} or newer, or {EKS_DEFAULT}"
            yield SettingsProblem(f"cluster.addon_versions.{name}", repr(version), floor.because, remedy, "addon-too-old")


def kube_proxy_follows_the_cluster(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Refuse a kube-proxy that is newer than the API server or over three minor versions older. Kubernetes supports neither."""
    version = _pins(resolved).get(Addon.KUBE_PROXY)
    cluster = _cluster_version(resolved)
    if version is None or cluster is None:
        return
    most = shipped_versions().kube_proxy_minors_behind.most
    behind = version_order(cluster)[1] - version_order(version)[1]
    path = f"cluster.addon_versions.{Addon.KUBE_PROXY}"
    remedy = f"name a version of {cluster}, or leave it out"
    if not 0 <= behind <= most:
        wrong = "newer than" if behind < 0 else f"more than {most} minor versions older than"
        yield SettingsProblem(
            path, repr(version), f"is {wrong} the cluster's {cluster}, which Kubernetes does not support", remedy, "kube-proxy-skew"
        )
    elif behind:
        problem = f"is older than the cluster's {cluster}: EKS does not install it on a new cluster, and a running cluster keeps it"
        yield SettingsProblem(path, repr(version), problem, remedy, "kube-proxy-behind", refused=False)


def addons_are_known_for_the_version(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Warn if no add-on versions are known for the cluster's version.

    EKS then chooses them at creation, and an upgrade leaves them behind.
    """
    cluster = _cluster_version(resolved)
    table = shipped_versions()
    if cluster is None or cluster in table.kubernetes or resolved.auto_mode:
        return
    left = [name.value for name in (Addon.KUBE_PROXY, Addon.COREDNS, Addon.VPC_CNI) if name not in _named(resolved)]
    if left:
        known = list(table.kubernetes)
        problem = f"Flexspot knows no version of {', '.join(left)} for it: EKS chooses one at creation, and upgrades do not change it"
        remedy = f"set the versions in cluster.addon_versions (Flexspot knows those for {known[0]} to {known[-1]})"
        yield SettingsProblem("cluster.version", repr(cluster), problem, remedy, "addons-not-known", refused=False)


def karpenter_works_with_the_version(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Refuse a Karpenter that reports itself incompatible with the cluster's version (pkg/providers/version/version.go)."""
    if not isinstance(resolved.settings, EksSettings) or resolved.auto_mode or resolved.settings.cluster.existing_karpenter is not None:
        return
    cluster, own = _cluster_version(resolved), resolved.settings.controllers.karpenter.version
    table = shipped_versions().karpenter
    version, path = own or table.chart.version, "controllers.karpenter.version" if own else "cluster.version"
    known = table.range_of(version)
    if known is None:
        problem = f"is a minor version that Flexspot does not know: the platform is written for {minor_version(table.chart.version)}"
        remedy = "see https://karpenter.sh/docs/upgrading/ for what changed, or leave it out"
        yield SettingsProblem(path, repr(version), problem, remedy, "karpenter-not-known", refused=False)
    elif cluster is not None and not known.has(cluster):
        problem = f"Karpenter {version} works with Kubernetes {known.least} to {known.most}, and reports itself incompatible with {cluster}"
        fitting = [minor for minor, each in table.kubernetes.items() if each.has(cluster)]
        remedy = f"use {' or '.join(fitting)}" if fitting else "set a newer controllers.karpenter.version or an older cluster.version"
        yield SettingsProblem(path, repr(own or cluster), problem, remedy, "karpenter-of-another-version")
    elif minor_version(version) != minor_version(table.chart.version):
        problem = f"is not the minor version for which the platform's policies and node classes are written ({table.chart.version})"
        yield SettingsProblem(
            path, repr(version), problem, "leave it out, or read its release notes", "karpenter-of-another-minor", refused=False
        )


def kueue_works_with_the_version(resolved: ResolvedSettings, settings: GkeSettings | EksSettings) -> Iterator[SettingsProblem]:
    """Refuse a Kueue that needs a newer Kubernetes or that is too old for the queues."""
    if settings.queueing.existing_kueue:
        return
    table, own = shipped_versions().kueue, settings.controllers.kueue.version
    cluster, written = _cluster_version(resolved) or _gke_version(resolved), table.chart.version
    path = "controllers.kueue.version"
    if cluster is not None and is_below(cluster, table.kubernetes_at_least.version):
        problem, remedy = f"Kueue {own or written} requires Kubernetes {table.kubernetes_at_least.version} or newer", "raise it"
        field = "version" if isinstance(settings, EksSettings) else "min_version"
        yield SettingsProblem(f"cluster.{field}", repr(cluster), problem, remedy, "kueue-needs-newer-kubernetes")
    if own is None:
        return
    if version_order(own) < version_order(table.at_least.version):
        remedy = f"allowed: {table.at_least.version} or newer"
        yield SettingsProblem(path, repr(own), table.at_least.because, remedy, "kueue-too-old")
    elif minor_version(own) != minor_version(written):
        problem = f"is not the minor version for which the platform's configuration is written ({written})"
        yield SettingsProblem(path, repr(own), problem, "leave it out, or read its release notes", "kueue-of-another-minor", refused=False)


def jobset_has_the_rendered_version(settings: GkeSettings | EksSettings) -> Iterator[SettingsProblem]:
    """Warn about another minor version of JobSet. JobSets are rendered for the one that Kueue is built with."""
    if not (wanted := settings.controllers.jobset).install:
        return
    written, own = shipped_versions().jobset.version, wanted.version
    if own is not None and minor_version(own) != minor_version(written):
        problem = f"is not the minor version for which JobSets are rendered ({written})"
        path, remedy = "controllers.jobset.version", "leave it out, or read its release notes"
        yield SettingsProblem(path, repr(own), problem, remedy, "jobset-of-another-minor", refused=False)


def load_balancer_controller_has_its_policy(settings: EksSettings) -> Iterator[SettingsProblem]:
    """Warn about another minor version of the load balancer controller: it may need more AWS permissions than its role has."""
    if not (wanted := settings.controllers.load_balancer_controller).install:
        return
    written, own = shipped_versions().load_balancer_controller.version, wanted.version
    if own is not None and minor_version(own) != minor_version(written):
        problem = f"is not the minor version for which its role's policy is written ({written})"
        remedy = "leave it out, or compare docs/install/iam_policy.json of both versions"
        path = "controllers.load_balancer_controller.version"
        yield SettingsProblem(path, repr(own), problem, remedy, "load-balancer-controller-of-another-minor", refused=False)


def gke_has_the_features(resolved: ResolvedSettings, settings: GkeSettings) -> Iterator[SettingsProblem]:
    """Refuse GKE versions without a feature that the settings use. The version of an existing cluster is not known."""
    if settings.cluster.existing is not None:
        return
    version, path = settings.cluster.min_version, "cluster.min_version"
    for user, feature in _gke_features(resolved):
        floor = gke_floors()[feature]
        least = floor.of(autopilot=resolved.autopilot)
        if version is None and floor.older_in_channels:
            problem = f"{user} needs GKE {least} or newer, but a release channel may have an older one"
            remedy = f"set it to {minor_version(least)!r} or newer"
            yield SettingsProblem(path, "missing", problem, remedy, "gke-version-not-said", refused=False)
        elif version is not None and is_below(version, least):
            problem, remedy = (
                f"{user} needs GKE {least} or newer",
                f"set it to {minor_version(least)!r} or newer, or leave out what needs it",
            )
            yield SettingsProblem(path, repr(version), problem, remedy, "gke-too-old")


def gke_keeps_offering_the_version(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Warn about a patch version of GKE. A channel offers a release for some weeks, and new clusters need an offered one."""
    version = _gke_version(resolved)
    if version is not None and names_a_patch(version):
        problem = "names one patch, which its channel offers only for some weeks: after that GKE creates no cluster with it"
        remedy = f"set it to {minor_version(version)!r}: GKE then uses its newest release"
        yield SettingsProblem("cluster.min_version", repr(version), problem, remedy, "gke-release-leaves-the-channel", refused=False)


def _gke_features(resolved: ResolvedSettings) -> Iterator[tuple[str, GkeFeature]]:
    """Yield each use of a feature that needs a version of GKE, by the pools that could be resolved and by a new cluster."""
    pools = [(number, pool) for number, pool in enumerate(resolved.settings.pools) if pool.name in resolved.pools]
    named = {pool.name: compute_class_of(resolved, pool) for pool in resolved.pools.values()}
    yield from gke_features(pools, {pool: name for pool, name in named.items() if name is not None})
    if resolved.settings.observability.managed_prometheus:
        yield "observability.managed_prometheus, which requests metrics of JobSets,", GkeFeature.JOBSET_METRICS


def _gke_version(resolved: ResolvedSettings) -> str | None:
    """Return the minimum version of a new GKE cluster, if set."""
    settings = resolved.settings
    return settings.cluster.min_version if isinstance(settings, GkeSettings) and settings.cluster.existing is None else None


def _cluster_version(resolved: ResolvedSettings) -> str | None:
    """Return the version of a new EKS cluster. It is not known for an existing one."""
    settings = resolved.settings
    return settings.cluster.version if isinstance(settings, EksSettings) and settings.cluster.existing is None else None


def _named(resolved: ResolvedSettings) -> set[Addon]:
    """Return the add-ons in the settings, `default` included."""
    settings = resolved.settings
    return set(settings.cluster.addon_versions) if isinstance(settings, EksSettings) else set()


def _pins(resolved: ResolvedSettings) -> dict[Addon, str]:
    """Return the versions in the settings of installed add-ons, without those that AWS chooses."""
    settings = resolved.settings
    if not isinstance(settings, EksSettings) or settings.cluster.existing is not None:
        return {}
    return {name: version for name, version in settings.cluster.addon_versions.items() if version not in {EKS_DEFAULT, RECOMMENDED}}


def upgrades_do_not_interrupt_runs(resolved: ResolvedSettings, settings: GkeSettings) -> Iterator[SettingsProblem]:
    """Warn about runs that are longer than the time between two maintenance windows: GKE may replace their nodes in a window.

    Spot nodes may end at any time anyway, and GKE does not upgrade DWS nodes.
    """
    if resolved.autopilot or settings.cluster.existing is not None:
        return
    maintenance = settings.cluster.maintenance
    between = maintenance.hours_between_windows
    longest = [name for name, each in resolved.classes.items() if each.queued and (each.run_limit_hours or between + 1) > between]
    for pool in resolved.pools.values():
        upgraded = pool.settings.capacity_type in {CapacityType.ON_DEMAND, CapacityType.RESERVED} and not maintenance.holds_nodes
        met = sorted(set(pool.settings.serves) & set(longest))
        if upgraded and met and isinstance(pool.settings, GkePool) and not pool.settings.hold_upgrades:
            problem = f"a window opens every {between} hours, but runs of {', '.join(met)} on {pool.name} last longer: upgrades stop them"
            remedy = "open windows on fewer days, set hold_upgrades on the pool, or give the class a shorter run_limit_hours"
            written = ", ".join(maintenance.days) or "every day"
            yield SettingsProblem("cluster.maintenance", written, problem, remedy, "upgrade-within-a-run", refused=False)


def exclusions_are_short_enough(settings: GkeSettings) -> Iterator[SettingsProblem]:
    """Warn about exclusions beyond GKE's documented limits, which GKE may have raised since they were read."""
    if settings.cluster.existing is not None:
        return
    whole = [(at, each) for at, each in enumerate(settings.cluster.maintenance.exclusions) if each.scope is ExclusionScope.NO_UPGRADES]
    for at, each in whole:
        if each.days is not None and each.days > WITHOUT_UPGRADES_DAYS:
            problem = f"is {each.days} days long, but GKE's documentation allows {WITHOUT_UPGRADES_DAYS} days without any upgrade"
            remedy = f"use {ExclusionScope.NO_MINOR_OR_NODE_UPGRADES}, which replaces no nodes either"
            yield SettingsProblem(f"cluster.maintenance.exclusions.{at}", each.name, problem, remedy, "exclusion-too-long", refused=False)
    if len(whole) > WITHOUT_UPGRADES:
        problem = f"has {len(whole)} exclusions of all upgrades, but GKE's documentation allows {WITHOUT_UPGRADES}"
        names = ", ".join(each.name for _, each in whole)
        remedy = f"use {ExclusionScope.NO_MINOR_OR_NODE_UPGRADES} for the others"
        yield SettingsProblem("cluster.maintenance.exclusions", names, problem, remedy, "exclusion-too-long", refused=False)
