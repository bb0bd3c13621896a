"""Checks of nodes without GPUs: room for the platform's controllers, security of clusters, and limits of auto-provisioning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexspot.capacity.plan.spending import gke_could_boot
from flexspot.capacity.plan.system_room import system_room
from flexspot.capacity.settings.controllers import EksControllers
from flexspot.capacity.settings.gke_rules import confidential_refusals
from flexspot.capacity.settings.gke_security import VulnerabilityScanning
from flexspot.capacity.settings.platform import EksSettings, GkeSettings
from flexspot.capacity.values.errors import SettingsProblem, nearest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexspot.capacity.catalog.system_pods import SystemPod
    from flexspot.capacity.plan.resolve import ResolvedSettings


def controllers_have_room(resolved: ResolvedSettings, settings: GkeSettings | EksSettings) -> Iterator[SettingsProblem]:
    """Refuse system nodes without room for all controllers, and warn if the loss of one node leaves too little.

    A pod without a node stays Pending, and the `up` that waits for it fails.
    """
    if settings.cluster.existing or resolved.autopilot:
        return
    pool = settings.cluster.system_pool
    machine = resolved.machines.get(pool.machine)
    if machine is None or machine.gpu is not None or (isinstance(settings, EksSettings) and not machine.max_pods):
        return
    room = system_room(settings, resolved.words.catalog, machine)
    # GKE's autoscaler and Auto Mode replace a lost node. On EKS with a node group the group does, and until then there is one node less.
    field = "min_nodes" if isinstance(settings.controllers, EksControllers) and not resolved.auto_mode else "max_nodes"
    path = f"cluster.system_pool.{field}"
    each = f"{room.of_each.cpu_milli}m vCPU, {room.of_each.memory_mib} MiB and {room.of_each.pods} pods"
    apart = [each for each in room.pods if each.apart and (each.replicas or 0) > room.nodes]
    for pod in apart:
        problem = f"is below controllers.{pod.name}.replicas ({pod.replicas}): each replica needs a separate node"
        yield SettingsProblem(path, str(room.nodes), problem, "raise it, or lower the replicas", "system-pool-too-small")
    if waiting := room.waiting(room.nodes):
        problem = f"is too small: nodes of {pool.machine} (each {each}) have no room for {_named(waiting)}"
        remedy = "use a larger cluster.system_pool.machine or more nodes, or smaller controllers"
        yield SettingsProblem(path, str(room.nodes), problem, remedy, "system-pool-too-small")
    elif not apart and (waiting := room.waiting(room.nodes - 1)):
        problem = f"is too small if one node is lost: nodes of {pool.machine} (each {each}) have no room for {_named(waiting)}"
        remedy = "use a larger cluster.system_pool.machine or one more node"
        yield SettingsProblem(path, str(room.nodes), problem, remedy, "system-pool-without-spare", refused=False)


def confidential_controllers_have_the_machine(resolved: ResolvedSettings, settings: GkeSettings) -> Iterator[SettingsProblem]:
    """Refuse memory encryption that the machine of the system nodes does not support."""
    if settings.cluster.existing or resolved.autopilot:
        return
    pool = settings.cluster.system_pool
    machine = resolved.machines.get(pool.machine)
    if machine is not None:
        yield from confidential_refusals("cluster.system_pool.confidential_nodes", pool.confidential_nodes, machine)


def security_settings_apply_to_the_cluster(settings: GkeSettings) -> Iterator[SettingsProblem]:
    """Refuse security settings for an existing cluster, where they would change nothing.

    Warn about vulnerability scans that Google ends.
    """
    security = settings.cluster.security
    if settings.cluster.existing is not None:
        for name in ("secrets_kms_key", "posture", "vulnerability_scanning", "binary_authorization"):
            if (value := getattr(security, name)) is not None:
                problem = f"is not applied to {settings.cluster.existing}: only the owner of an existing cluster configures its security"
                path = f"cluster.security.{name}"
                yield SettingsProblem(path, repr(str(value)), problem, "leave it out", "security-of-existing-cluster")
    if security.vulnerability_scanning is VulnerabilityScanning.ENTERPRISE:
        # docs.cloud.google.com/kubernetes-engine/docs/deprecations: Advanced Vulnerability Insights; read 2026-11-25.
        problem = "is Advanced Vulnerability Insights, which Google announced it would shut down on 2026-06-16"
        remedy = "leave it out, and scan images in their registry (Artifact Analysis)"
        yield SettingsProblem(
            "cluster.security.vulnerability_scanning", "'enterprise'", problem, remedy, "scanning-shut-down", refused=False
        )


def _named(waiting: list[SystemPod]) -> str:
    names = [each.name for each in waiting]
    counted = [f"{count} x {name}" if (count := names.count(name)) > 1 else name for name in dict.fromkeys(names)]
    return ", ".join(counted)


def former_accelerators_have_no_pool(resolved: ResolvedSettings, settings: GkeSettings) -> Iterator[SettingsProblem]:
    """Refuse former accelerators that are unknown or still have pools.

    Limits apply to the whole cluster, so the minimum limit of a GPU would also restrict pools that use it. A GPU whose machines GKE cannot
    boot may be named: its limit is then that of its pools.
    """
    if settings.cluster.existing is not None or resolved.autopilot:
        return
    known = {each.gpu.name for each in resolved.machines.values() if each.gpu is not None}
    used = {pool.gpu.name for pool in resolved.pools.values()}
    for number, name in enumerate(settings.cluster.former_accelerators):
        path = f"cluster.former_accelerators.{number}"
        if name not in known:
            yield SettingsProblem(path, name, "is not a known GPU of GKE", nearest(name, known), "unknown-accelerator")
        elif name in used and gke_could_boot(resolved, name):
            problem = "is the GPU of a pool, and a limit of 1 would cap the pool"
            yield SettingsProblem(path, name, problem, "remove it: its pools' ceilings are then the limit", "accelerator-with-pool")
