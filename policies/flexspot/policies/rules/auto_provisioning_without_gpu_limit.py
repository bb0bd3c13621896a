"""Node auto-provisioning without a limit for a GPU type that workloads request."""

from collections.abc import Iterator, Mapping

from flexspot.capacity.catalog.node_labels import COMPUTE_CLASS_LABEL, GKE_POOL_LABEL
from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, not_applicable, undecided
from flexspot.policies.inventory.gpu_machines import GKE_LABELS
from flexspot.policies.inventory.objects import ComputeClassView, ResourceFlavor
from flexspot.policies.inventory.views import Inventory, NodeAutoProvisioning, PodSet, Pool
from flexspot.policies.judging import Cloud, Parameters, Rule
from flexspot.policies.pools import created_accelerators, pools_for
from flexspot.policies.values.field import UNKNOWN, Field, Unknown, any_of


def judge(provisioning: NodeAutoProvisioning, _: Parameters, inventory: Inventory) -> Outcome:
    """A type with a limit of 0 has none that a node could be made under."""
    limits = provisioning.limits.parts()
    limited = [each.at("resourceType").text() for each in limits.fields if each.at("maximum").number() != 0]
    wanted = list(_asked_for(inventory))
    missing = {each: by for each, by in wanted if each is not UNKNOWN and each not in limited}
    if missing and limits.complete and UNKNOWN not in limited:
        types = ", ".join(f"{accelerator} (requested by {by})" for accelerator, by in sorted(missing.items(), key=str))
        return fails(
            f"clusterAutoscaling.resourceLimits has no limit for {types}, and no pool in the input provides it",
            "for each of them, add {resourceType: TYPE, maximum: the most GPUs you would pay for} to clusterAutoscaling.resourceLimits",
            "clusterAutoscaling.resourceLimits",
        )
    if missing or any(each is UNKNOWN for each, _ in wanted):
        return undecided("clusterAutoscaling.resourceLimits, or the GPU type that a workload requests, is not known yet")
    return PASSES if wanted else not_applicable("nothing in the input requests GPUs from it")


def _asked_for(inventory: Inventory) -> Iterator[tuple[str | Unknown, str]]:
    """The GPU types that no declared pool can give, each with who asks for it."""
    for flavor in inventory.of(ResourceFlavor):
        yield from _selected(dict(flavor.spec.at("nodeLabels").parts().named), flavor.identity.described, inventory)
    for pods in inventory.of(PodSet):
        if not pods.exemption and pods.asks_for_gpus is True:
            yield from _selected(dict(pods.pod.at("nodeSelector").parts().named), pods.identity.described, inventory)
    for compute_class in inventory.of(ComputeClassView):
        yield from ((accelerator, compute_class.identity.described) for accelerator in created_accelerators(compute_class))


def _selected(labels: Mapping[str, Field], by: str, inventory: Inventory) -> Iterator[tuple[str | Unknown, str]]:
    """What selects a pool asks for no other, and what selects a compute class asks for what that has among its priorities."""
    accelerator = next((labels[key].text() for key in GKE_LABELS if key in labels), None)
    if accelerator is None or labels.keys() & {GKE_POOL_LABEL, COMPUTE_CLASS_LABEL}:
        return
    if any_of(pool.offer.carries(labels) for pool in pools_for(Pool, labels, inventory)) is False:
        yield accelerator, by


RULE = Rule(
    code="FLX030",
    severity=Severity.HIGH,
    clouds=(Cloud.GKE,),
    judge_among=judge,
    why="GKE creates no nodes for a GPU type without a limit: the pods stay pending, and only the autoscaler's log says why.",
    remediation=(
        "In resourceLimits, list cpu, memory and every GPU type that pods, flavors or compute classes request, each with a maximum."
    ),
    link="https://docs.cloud.google.com/kubernetes-engine/docs/how-to/node-auto-provisioning",
    sources=('GoogleCloudPlatform/cluster-autoscaler (2026-08): "GPU type doesn\'t have a limit defined".',),
)
