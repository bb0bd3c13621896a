"""What `pulumi import --file` needs to adopt resources that are there, under the very names that the stack's program gives them.

The file's form is that of pulumi/pulumi, pkg/cmd/pulumi/operations/import.go (importFile, importSpec; read 2026-11-27): an entry has a
type, a name and an id, a component no id and `component: true`. Ids as the providers' own documentation has them: of a node pool
PROJECT/LOCATION/CLUSTER/NAME, of a GKE cluster projects/P/locations/L/clusters/N, of an EKS cluster its name, of a node group
CLUSTER:NODEGROUP, of an object in Kubernetes NAMESPACE/NAME, or its NAME where it is in none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from capacity.catalog.platform import Platform
from capacity.catalog.workload_classes import shipped_classes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from capacity.adopting.found import Found, Known

_KUBERNETES: Final = "kubernetes:"


def provider_name(cloud: str) -> str:
    """What the program of a stack calls its provider of the cluster."""
    return "lab" if cloud == Platform.LOCAL else "cluster"


_COMPONENTS: Final = {
    "gcp:container/nodePool:NodePool": ("flexspot:index:GkeGpuNodePool", "{}", "{}-node-pool"),
    "kubernetes:karpenter.sh/v1:NodePool": ("flexspot:index:GpuNodePool", "{}", "{}-node-pool"),
    "kubernetes:core/v1:Namespace": ("flexspot:index:Team", "{}", "{}-namespace"),
    "kubernetes:scheduling.k8s.io/v1:PriorityClass": ("flexspot:index:Priorities", "priorities", "priorities-{}"),
    "kubernetes:kueue.x-k8s.io/v1beta2:ResourceFlavor": ("flexspot:index:Queues", "queues", "queues-{}"),
    "kubernetes:kueue.x-k8s.io/v1beta2:Cohort": ("flexspot:index:Queues", "queues", "queues-{}-cohort"),
    "kubernetes:kueue.x-k8s.io/v1beta2:ClusterQueue": ("flexspot:index:Queues", "queues", "queues-{}"),
}
"""The component that holds a resource in the program, its name, and the resource's own; {} is what it is called in its cluster."""


@dataclass(frozen=True)
class Adoption:
    """`cloud` and `cluster` are files for `pulumi import --file`, empty where they would hold nothing.

    Those in `cluster` are read by the program's own provider of the cluster, which must be in the state before. `elsewhere` are resources
    that no program of a stack declares: they are in no file, since the next `up` would delete what is in the state and not in the program.
    """

    cloud: dict[str, Any]
    cluster: dict[str, Any]
    adopted: tuple[Known, ...]
    elsewhere: tuple[Known, ...]


def adoption(found: Found, settings: Mapping[str, Any], project: str, stack: str) -> Adoption:
    """What of the known resources the proposed stack declares, and what not."""
    wanted = _declared(found, settings)
    adopted = [each for each in _once(found.known) if (each.type, each.name) in wanted]
    elsewhere = [each for each in _once(found.known) if (each.type, each.name) not in wanted]
    in_cloud, in_cluster = ([each for each in adopted if each.type.startswith(_KUBERNETES) is wanted] for wanted in (False, True))
    provider = provider_name(settings["cloud"])
    urn = f"urn:pulumi:{stack}::{project}::pulumi:providers:kubernetes::{provider}"
    cluster = _file(in_cluster, provider)
    return Adoption(_file(in_cloud), {"nameTable": {provider: urn}, **cluster} if cluster else {}, tuple(adopted), tuple(elsewhere))


def _file(adopted: list[Known], provider: str | None = None) -> dict[str, Any]:
    entries: dict[tuple[str, str], dict[str, Any]] = {}
    for each in adopted:
        component, holder, name = _COMPONENTS[each.type]
        entries.setdefault((component, holder.format(each.name)), _component(component, holder.format(each.name)))
        entry = {"type": each.type, "name": f"{name.format(each.name)}", "id": each.id, "parent": _entry_name(component, holder, each.name)}
        if provider is not None:
            entry["provider"] = provider
        # Names in the file are told apart by more than the program's own, which `logicalName` is.
        logical = entry["name"]
        entry |= {"name": f"{each.type.rpartition(':')[2]}:{logical}", "logicalName": logical}
        entries[each.type, each.name] = entry
    return {"resources": list(entries.values())} if entries else {}


def _component(kind: str, name: str) -> dict[str, Any]:
    return {"type": kind, "name": f"{kind.rpartition(':')[2]}:{name}", "logicalName": name, "component": True}


def _entry_name(component: str, holder: str, name: str) -> str:
    return f"{component.rpartition(':')[2]}:{holder.format(name)}"


def _declared(found: Found, settings: Mapping[str, Any]) -> set[tuple[str, str]]:
    """Type and name of what the program will declare under the same name, of the types that are adopted."""
    pools = {each["name"] for each in settings.get("pools", [])}
    known = {each.name: each.known for each in found.pools if each.known is not None and each.name in pools}
    teams = {each["name"] for each in settings.get("teams", [])}
    queued = {pool for each in [*settings.get("teams", []), *settings.get("cohorts", [])] for pool in each.get("shares", {})}
    named = {(each.type, each.name) for each in known.values()}
    named |= {("kubernetes:core/v1:Namespace", name) for name in teams}
    named |= {("kubernetes:kueue.x-k8s.io/v1beta2:ClusterQueue", each["name"]) for each in settings.get("teams", []) if each.get("shares")}
    named |= {("kubernetes:kueue.x-k8s.io/v1beta2:ResourceFlavor", name) for name in queued}
    cohorts = {each["name"] for each in settings.get("cohorts", [])} | {settings.get("cohort", "")}
    named |= {("kubernetes:kueue.x-k8s.io/v1beta2:Cohort", name) for name in cohorts}
    served = {name for each in settings.get("pools", []) for name in each.get("serves", ())}
    shipped = shipped_classes()
    return named | {("kubernetes:scheduling.k8s.io/v1:PriorityClass", shipped[name].priority_class) for name in served if name in shipped}


def _once(known: Iterable[Known]) -> list[Known]:
    return list({(each.type, each.id): each for each in known}.values())
