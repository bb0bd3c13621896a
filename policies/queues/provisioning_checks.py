"""Kueue's admission checks that ask an autoscaler for nodes before a job starts: whom they ask, and for what."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from policies.inventory.objects import AdmissionCheck, KarpenterNodePool, NodeClass, ProvisioningRequestConfig, named
from policies.inventory.pool_index import pools_for
from policies.inventory.views import GkeNodePool, Pool
from policies.pods.scheduling_options import flavors_with_gpus
from policies.values.field import UNKNOWN, Tri, all_of, any_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from capacity.values.verdict import ObjectIdentity
    from policies.inventory.objects import ClusterQueue, ResourceFlavor
    from policies.inventory.views import Inventory
    from policies.values.field import Field, Unknown

CONTROLLER = "kueue.x-k8s.io/provisioning-request"
GKE_CLASS = "queued-provisioning.gke.io"
"""The class of ProvisioningRequest that GKE serves, and nobody else. Others are the Cluster Autoscaler's own, on any cloud."""

_OF_AWS = ("karpenter.k8s.aws", "eks.amazonaws.com")


def configs_of(check: AdmissionCheck, inventory: Inventory) -> list[ProvisioningRequestConfig]:
    """Those that were given and may be the one that the check names."""
    name = check.spec.at("parameters", "name").text()
    if name is UNKNOWN:
        return list(inventory.of(ProvisioningRequestConfig))
    return list(named(ProvisioningRequestConfig, name or "", inventory))


def asks_gke(check: AdmissionCheck, inventory: Inventory) -> Tri:
    """Whether the check asks for GKE's queued capacity; UNKNOWN where its configuration is not among what was given."""
    ours = check.spec.at("controllerName").equals(CONTROLLER)
    configs = configs_of(check, inventory)
    sure = len(configs) == 1 and check.spec.at("parameters", "name").known and configs[0].name.known
    return all_of([ours, configs[0].spec.at("provisioningClassName").equals(GKE_CLASS) if sure else UNKNOWN])


def on_eks_alone(inventory: Inventory) -> bool:
    """Whether capacity of EKS was given, and none of GKE."""
    return inventory.once("on EKS alone", None, lambda: _on_eks_alone(inventory))


def _on_eks_alone(inventory: Inventory) -> bool:
    if inventory.of(GkeNodePool):
        return False
    references = [each.spec.at("template", "spec", "nodeClassRef", "group").text() for each in inventory.of(KarpenterNodePool)]
    classes = [each.group for each in inventory.of(NodeClass)]
    groups = any(pool.identity.api_version.startswith("aws:eks") for pool in inventory.of(Pool))
    return groups or any(group in _OF_AWS for group in (*references, *classes))


def asked_for(queue: ClusterQueue, inventory: Inventory) -> Iterator[tuple[Tri, str, str | Unknown | None]]:
    """Of each check and flavor with GPUs of the queue: whether the check asks GKE for queued capacity, its name, and the flavor's."""
    known = inventory.once("admission checks", None, lambda: {each.name.text(): each for each in inventory.of(AdmissionCheck)})
    for name, only in _checks_of(queue):
        check = known.get(name.text()) if name.known else None
        asks = asks_gke(check, inventory) if check else UNKNOWN
        for flavor in flavors_with_gpus(queue.spec) if asks is not False else ():
            listed = UNKNOWN if flavor is UNKNOWN else only.parts().any(partial(_is, str(flavor)))
            yield all_of([asks, True if only.absent else listed]), str(name.text()), flavor


def _is(wanted: str, name: Field) -> Tri:
    return name.equals(wanted)


def _checks_of(queue: ClusterQueue) -> Iterator[tuple[Field, Field]]:
    """The name of each check of the queue, and the flavors that it is for; absent for all. v1beta1 has names alone as well."""
    for rule in queue.spec.at("admissionChecksStrategy", "admissionChecks").parts().fields:
        yield rule.at("name"), rule.at("onFlavors")
    for name in queue.spec.at("admissionChecks").parts().fields:
        yield name, name.at("onFlavors")


def queued(flavor: ResourceFlavor, inventory: Inventory) -> tuple[Tri, str]:
    """Whether a pool that may serve the flavor is of queued capacity, and the first that serves it. Where none does, it is UNKNOWN."""
    labels = flavor.spec.at("nodeLabels").parts()
    wanted = dict(labels.named)
    serving = [(pool.offer.carries(wanted), pool) for pool in pools_for(Pool, wanted, inventory)]
    first = next((pool.identity.described for carries, pool in serving if carries is True), "")
    queues = inventory.once("queued pools", None, lambda: _queues(inventory))
    answers = [all_of([carries, queues.get((pool.identity, _where(pool)), False)]) for carries, pool in serving]
    return (any_of(answers) if first and labels.complete else UNKNOWN), first


def _queues(inventory: Inventory) -> dict[tuple[ObjectIdentity, str], Tri]:
    """Whether a GKE node pool is of queued capacity, by its object and the path to it there."""
    return {(each.identity, each.where): each.pool.at("queuedProvisioning", "enabled").equals("true") for each in inventory.of(GkeNodePool)}


def _where(pool: Pool) -> str:
    """The path to a GKE node pool, by which those of one cluster are told apart."""
    return pool.taints_field.removesuffix("nodeConfig.taints")
