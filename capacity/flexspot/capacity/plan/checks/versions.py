"""Whether the versions of a stack go together: Kubernetes, what GKE has since when, EKS's add-ons, Karpenter and Kueue."""

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
    """What the platform asks of an add-on has a first version."""
    for name, version in _pins(resolved).items():
        floor = shipped_versions().addons_at_least.get(name)
        if floor is not None and version_order(version) < version_order(floor.version):
            remedy = f"allowed: {floor.version} or newer, or {EKS_DEFAULT}"
            yield SettingsProblem(f"cluster.addon_versions.{name}", repr(version), floor.because, remedy, "addon-too-old")


def kube_proxy_follows_the_cluster(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Kubernetes takes no kube-proxy that is newer than its API server, nor one that is more than three minor versions older."""
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
        problem = f"is older than the cluster's {cluster}; a new cluster does not get it, and a running one keeps it"
        yield SettingsProblem(path, repr(version), problem, remedy, "kube-proxy-behind", refused=False)


def addons_are_known_for_the_version(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Without a row in the table EKS chooses each add-on's version on the day it is made, and an upgrade leaves it behind."""
    cluster = _cluster_version(resolved)
    table = shipped_versions()
    if cluster is None or cluster in table.kubernetes or resolved.auto_mode:
        return
    left = [name.value for name in (Addon.KUBE_PROXY, Addon.COREDNS, Addon.VPC_CNI) if name not in _named(resolved)]
    if left:
        known = list(table.kubernetes)
        problem = f"has no known versions of {', '.join(left)}; EKS chooses them when it creates them, and an upgrade leaves them behind"
        remedy = f"name them in cluster.addon_versions; versions are known for {known[0]} to {known[-1]}"
        yield SettingsProblem("cluster.version", repr(cluster), problem, remedy, "addons-not-known", refused=False)


def karpenter_works_with_the_version(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Each version of Karpenter calls itself incompatible with a Kubernetes out of its range (pkg/providers/version/version.go)."""
    if not isinstance(resolved.settings, EksSettings) or resolved.auto_mode or resolved.settings.cluster.existing_karpenter is not None:
        return
    cluster, own = _cluster_version(resolved), resolved.settings.controllers.karpenter.version
    table = shipped_versions().karpenter
    version, path = own or table.chart.version, "controllers.karpenter.version" if own else "cluster.version"
    known = table.range_of(version)
    if known is None:
        problem = f"is a minor version that Flexspot does not know; the platform is written for {minor_version(table.chart.version)}"
        remedy = "see https://karpenter.sh/docs/upgrading/ for what changed, or leave it out"
        yield SettingsProblem(path, repr(version), problem, remedy, "karpenter-not-known", refused=False)
    elif cluster is not None and not known.has(cluster):
        problem = f"Karpenter {version} works with Kubernetes {known.least} to {known.most}, and reports itself incompatible with {cluster}"
        fitting = [minor for minor, each in table.kubernetes.items() if each.has(cluster)]
        remedy = f"use {' or '.join(fitting)}" if fitting else "name a newer one in controllers.karpenter.version, or stay below"
        yield SettingsProblem(path, repr(own or cluster), problem, remedy, "karpenter-of-another-version")
    elif minor_version(version) != minor_version(table.chart.version):
        problem = f"is not the minor version that the platform's policies and node classes are written for, {table.chart.version}"
        yield SettingsProblem(
            path, repr(version), problem, "leave it out, or read its release notes", "karpenter-of-another-minor", refused=False
        )


def kueue_works_with_the_version(resolved: ResolvedSettings, settings: GkeSettings | EksSettings) -> Iterator[SettingsProblem]:
    """Kueue needs an API of Kubernetes, and the queues need one of Kueue."""
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
        problem = f"is not the minor version that the platform's configuration is written for, {written}"
        yield SettingsProblem(path, repr(own), problem, "leave it out, or read its release notes", "kueue-of-another-minor", refused=False)


def jobset_is_the_one_that_is_rendered_for(settings: GkeSettings | EksSettings) -> Iterator[SettingsProblem]:
    """JobSets are rendered as one minor version reads them, which is the one that Kueue is built with."""
    if not (wanted := settings.controllers.jobset).install:
        return
    written, own = shipped_versions().jobset.version, wanted.version
    if own is not None and minor_version(own) != minor_version(written):
        problem = f"is not the minor version that JobSets are rendered for, {written}"
        path, remedy = "controllers.jobset.version", "leave it out, or read its release notes"
        yield SettingsProblem(path, repr(own), problem, remedy, "jobset-of-another-minor", refused=False)


def load_balancer_controller_has_its_policy(settings: EksSettings) -> Iterator[SettingsProblem]:
    """Each minor version may ask AWS for more; its role has what the version asks for that the platform is written for."""
    if not (wanted := settings.controllers.load_balancer_controller).install:
        return
    written, own = shipped_versions().load_balancer_controller.version, wanted.version
    if own is not None and minor_version(own) != minor_version(written):
        problem = f"is not the minor version that its role's policy is written for, {written}"
        remedy = "leave it out, or compare docs/install/iam_policy.json of both versions"
        path = "controllers.load_balancer_controller.version"
        yield SettingsProblem(path, repr(own), problem, remedy, "load-balancer-controller-of-another-minor", refused=False)


def gke_has_what_is_used(resolved: ResolvedSettings, settings: GkeSettings) -> Iterator[SettingsProblem]:
    """What a pool asks for has a first version of GKE; of a cluster that is there already the version is not known."""
    if settings.cluster.existing is not None:
        return
    version, path = settings.cluster.min_version, "cluster.min_version"
    for user, feature in _gke_features(resolved):
        floor = gke_floors()[feature]
        least = floor.of(autopilot=resolved.autopilot)
        if version is None and floor.older_in_channels:
            problem = f"{user} needs GKE {least} or newer, but a channel may give an older one"
            remedy = f"set it to {minor_version(least)!r} or newer"
            yield SettingsProblem(path, "missing", problem, remedy, "gke-version-not-said", refused=False)
        elif version is not None and is_below(version, least):
            problem, remedy = (
                f"{user} needs GKE {least} or newer",
                f"set it to {minor_version(least)!r} or newer, or leave out what needs it",
            )
            yield SettingsProblem(path, repr(version), problem, remedy, "gke-too-old")


def gke_version_stays_on_offer(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """GKE makes clusters of the releases that their channel offers on the day; after some weeks it is others."""
    version = _gke_version(resolved)
    if version is not None and names_a_patch(version):
        problem = "names one patch, which its channel offers for some weeks only: after that GKE creates no cluster with it"
        remedy = f"set it to {minor_version(version)!r}: GKE then uses its newest release"
        yield SettingsProblem("cluster.min_version", repr(version), problem, remedy, "gke-release-leaves-the-channel", refused=False)


def _gke_features(resolved: ResolvedSettings) -> Iterator[tuple[str, GkeFeature]]:
    """What needs a version, with the setting that asks for it, of the pools that could be resolved and of the cluster that is made."""
    pools = [(number, pool) for number, pool in enumerate(resolved.settings.pools) if pool.name in resolved.pools]
    named = {pool.name: compute_class_of(resolved, pool) for pool in resolved.pools.values()}
    yield from gke_features(pools, {pool: name for pool, name in named.items() if name is not None})
    if resolved.settings.observability.managed_prometheus:
        yield "observability.managed_prometheus, whose metrics of JobSets it asks for,", GkeFeature.JOBSET_METRICS


def _gke_version(resolved: ResolvedSettings) -> str | None:
    """The least version of a cluster of GKE that is made here, where the settings say one."""
    settings = resolved.settings
    return settings.cluster.min_version if isinstance(settings, GkeSettings) and settings.cluster.existing is None else None


def _cluster_version(resolved: ResolvedSettings) -> str | None:
    """The version of a cluster of EKS that is made here; of another it is not known."""
    settings = resolved.settings
    return settings.cluster.version if isinstance(settings, EksSettings) and settings.cluster.existing is None else None


def _named(resolved: ResolvedSettings) -> set[Addon]:
    """The add-ons that the settings say something of, `default` included."""
    settings = resolved.settings
    return set(settings.cluster.addon_versions) if isinstance(settings, EksSettings) else set()


def _pins(resolved: ResolvedSettings) -> dict[Addon, str]:
    """The versions that the settings name, of add-ons that are installed; not those that AWS names."""
    settings = resolved.settings
    if not isinstance(settings, EksSettings) or settings.cluster.existing is not None:
        return {}
    return {name: version for name, version in settings.cluster.addon_versions.items() if version not in {EKS_DEFAULT, RECOMMENDED}}


def upgrades_leave_runs_their_time(resolved: ResolvedSettings, settings: GkeSettings) -> Iterator[SettingsProblem]:
    """A run that is longer than the time between two windows meets one, and GKE may replace its nodes then.

    Spot nodes go at any time anyway, and those of DWS are not upgraded.
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
            problem = f"a window opens every {between} hours, but runs of {', '.join(met)} on {pool.name} are longer: an upgrade stops them"
            remedy = "open it on fewer days, set hold_upgrades on the pool, or give the class a shorter run_limit_hours"
            written = ", ".join(maintenance.days) or "every day"
            yield SettingsProblem("cluster.maintenance", written, problem, remedy, "upgrade-within-a-run", refused=False)


def exclusions_are_short_enough(settings: GkeSettings) -> Iterator[SettingsProblem]:
    """Said and not refused: GKE may have raised its bounds since they were read."""
    if settings.cluster.existing is not None:
        return
    whole = [(at, each) for at, each in enumerate(settings.cluster.maintenance.exclusions) if each.scope is ExclusionScope.NO_UPGRADES]
    for at, each in whole:
        if each.days is not None and each.days > WITHOUT_UPGRADES_DAYS:
            problem = f"is {each.days} days long; GKE's documentation allows {WITHOUT_UPGRADES_DAYS} days without any upgrade"
            remedy = f"use {ExclusionScope.NO_MINOR_OR_NODE_UPGRADES}, which replaces no nodes either"
            yield SettingsProblem(f"cluster.maintenance.exclusions.{at}", each.name, problem, remedy, "exclusion-too-long", refused=False)
    if len(whole) > WITHOUT_UPGRADES:
        problem = f"has {len(whole)} exclusions of all upgrades; GKE's documentation allows {WITHOUT_UPGRADES}"
        names = ", ".join(each.name for _, each in whole)
        remedy = f"use {ExclusionScope.NO_MINOR_OR_NODE_UPGRADES} for the others"
        yield SettingsProblem("cluster.maintenance.exclusions", names, problem, remedy, "exclusion-too-long", refused=False)
