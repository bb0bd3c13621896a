"""Ceilings of capacity: whether there is one, and whether it can be reached."""

from collections.abc import Iterator, Mapping

from flexspot.capacity.catalog.node_labels import CAPACITY_TYPE_LABEL, COMPUTE_CLASS_LABEL, GKE_POOL_LABEL
from flexspot.capacity.catalog.unreachable_limits import out_of_reach
from flexspot.capacity.values.verdict import NOT_APPLICABLE, PASSES, Outcome, Severity, fails, undecided
from flexspot.policies.inventory.gpu_machines import GKE_LABELS
from flexspot.policies.inventory.node_offer import allows
from flexspot.policies.inventory.objects import ComputeClassView, KarpenterNodePool, ResourceFlavor
from flexspot.policies.inventory.views import Autopilot, GkeNodePool, GpuPool, Inventory, NodeAutoProvisioning, PodSet, Pool
from flexspot.policies.judging import Cloud, Parameters, Rule
from flexspot.policies.pools import (
    MOST,
    bounded,
    created_accelerators,
    creates_pools,
    gpu_pool_of,
    limited_kind,
    limited_machines,
    made_on_demand,
    node_ceilings,
    pools_for,
    written_limits,
)
from flexspot.policies.values.field import UNKNOWN, Field, Tri, Unknown, all_of, any_of, negated


@Rule(
    code="FLX002",
    severity=Severity.CRITICAL,
    why="An autoscaler buys whatever pending pods ask for; one wrong replica count without a limit is a bill without a limit. "
    "Karpenter's limits are soft: nodes that start at the same moment may exceed them briefly.",
    remediation="Give the pool a finite maximum: nodes on GKE and EKS, nvidia.com/gpu or aws.amazon.com/neuron on Karpenter, every "
    "resource type on GKE's node auto-provisioning.",
    link="https://karpenter.sh/docs/concepts/nodepools/#speclimits",
    parameters=MOST,
)
def gpu_pool_without_limit(capacity: GpuPool | NodeAutoProvisioning, parameters: Parameters) -> Outcome:
    """GPU capacity that can grow without limit.

    In every group of bounds one finite number. A number that nobody could ever pay for counts as none.
    """
    return bounded(capacity.bounds, parameters, f"it creates GPU nodes (by {capacity.evidence})")


@Rule(
    code="FLX031",
    severity=Severity.HIGH,
    why="One Deployment with a few zeros too many in its replicas buys nodes until the account's quota is used up: the bill has no "
    "ceiling.",
    remediation="Give the pool a finite maximum: nodes on GKE and EKS; cpu, memory or nodes on Karpenter.",
    link="https://karpenter.sh/docs/concepts/nodepools/#speclimits",
    sources=("https://github.com/kubernetes-sigs/karpenter/issues/745",),
    parameters=MOST,
)
def unbounded_node_pool(pool: Pool, parameters: Parameters) -> Outcome:
    """Capacity without GPUs that can grow without limit.

    Pools of GPUs, and those that may be such, are judged by gpu-pool-without-limit, which asks for a limit on the GPUs themselves.
    """
    if isinstance(pool, GpuPool):
        return NOT_APPLICABLE
    takes = {kind: pool.offer.carries({CAPACITY_TYPE_LABEL: Field(kind)}) for kind in ("reserved", "spot", "on-demand")}
    if takes == {"reserved": True, "spot": False, "on-demand": False}:
        return NOT_APPLICABLE
    return bounded(pool.bounds, parameters, "it creates nodes")


@Rule(
    code="FLX032",
    severity=Severity.MEDIUM,
    why="A Spot shortage, which may last for days, buys the same GPUs at full price instead, and no one is asked.",
    remediation="Make on-demand an explicit choice: a separate pool, with its own maximum, after the cheaper ones.",
    link="https://karpenter.sh/docs/faq/#what-if-there-is-no-spot-capacity-will-karpenter-use-on-demand",
    sources=("Karpenter AWS provider 1.14.1, pkg/providers/instance: reserved, then Spot, then on-demand, of what is allowed.",),
)
def on_demand_fallback_uncapped(capacity: KarpenterNodePool | ComputeClassView, _: Parameters, inventory: Inventory) -> Outcome:
    """GPU capacity that falls back to on-demand when the cheaper type runs out, without a ceiling.

    A NodePool that takes both; a compute class whose lower priority lets GKE make on-demand pools. Autopilot makes every pool so.
    """
    if isinstance(capacity, KarpenterNodePool):
        return _node_pool(capacity, inventory)
    if inventory.of(Autopilot):
        return NOT_APPLICABLE
    # Autopilot has no node pools that a priority could name.
    names_pools = any(not priority.at("nodepools").absent for priority in capacity.spec.at("priorities").parts().fields)
    return _compute_class(capacity, standard=names_pools or inventory.tells(GkeNodePool, NodeAutoProvisioning))


def _node_pool(pool: KarpenterNodePool, inventory: Inventory) -> Outcome:
    gpus = gpu_pool_of(pool.identity, inventory)
    if gpus is None:
        return NOT_APPLICABLE
    requirements = pool.spec.at("template", "spec", "requirements").parts()
    # Without a requirement Karpenter takes what is cheapest of all: Spot first, then on-demand.
    of_capacity = [each for each in requirements.fields if each.at("key").equals(CAPACITY_TYPE_LABEL) is not False]
    known: list[Tri] = [gpus.concerned, True if requirements.complete else UNKNOWN]
    both = all_of([*known, *(allows(each, kind) for each in of_capacity for kind in ("spot", "on-demand"))])
    if both is UNKNOWN:
        return undecided("its requirements are not fully known yet")
    if both is False:
        return PASSES
    how = f"its requirement on {CAPACITY_TYPE_LABEL} allows both" if of_capacity else f"it has no requirement on {CAPACITY_TYPE_LABEL}"
    return fails(
        f"{how}: when Spot runs out, its nodes are on-demand, up to all that spec.limits allows",
        f"require {{key: {CAPACITY_TYPE_LABEL}, operator: In, values: [spot]}}, and give on-demand its own NodePool, with a lower weight "
        "and its own limit",
        "spec.template.spec.requirements",
    )


def _compute_class(compute_class: ComputeClassView, *, standard: bool) -> Outcome:
    priorities = compute_class.spec.at("priorities").parts()
    answers = [all_of([creates_pools(compute_class), made_on_demand(priority)]) for priority in priorities.fields]
    # A first priority falls back from nothing, and neither do those that only follow priorities like it.
    lower = [all_of([answer, any_of(negated(each) for each in answers[:place])]) for place, answer in enumerate(answers)]
    if True in lower and not standard:
        return undecided("whether its cluster is an Autopilot cluster, where no pool has a ceiling, is not known")
    if True in lower:
        at = f"spec.priorities[{lower.index(True)}]"
        return fails(
            f"{at} lets GKE create on-demand GPU pools when the priorities above it have no capacity, and such pools have no ceiling",
            f"have {at} name an on-demand node pool with a maximum: {{nodepools: [POOL]}}",
            at,
        )
    if UNKNOWN in lower or not priorities.complete:
        return undecided("spec.priorities, or spec.nodePoolAutoCreation, is not fully known yet")
    return PASSES if len(answers) > 1 else NOT_APPLICABLE


@Rule(
    code="FLX030",
    severity=Severity.HIGH,
    clouds=(Cloud.GKE,),
    why="GKE creates no nodes for a GPU type without a limit: the pods stay pending, and only the autoscaler's log says why.",
    remediation="In resourceLimits, list cpu, memory and every GPU type that pods, flavors or compute classes request, each with a "
    "maximum.",
    link="https://docs.cloud.google.com/kubernetes-engine/docs/how-to/node-auto-provisioning",
    sources=('GoogleCloudPlatform/cluster-autoscaler (2026-08): "GPU type doesn\'t have a limit defined".',),
)
def auto_provisioning_without_gpu_limit(provisioning: NodeAutoProvisioning, _: Parameters, inventory: Inventory) -> Outcome:
    """Node auto-provisioning without a limit for a GPU type that workloads request.

    A type with a limit of 0 has none that a node could be made under.
    """
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
    return PASSES if wanted else NOT_APPLICABLE


def _asked_for(inventory: Inventory) -> Iterator[tuple[str | Unknown, str]]:
    """The GPU types that no declared pool can give, each with who asks for it."""
    for flavor in inventory.of(ResourceFlavor):
        yield from _selected(dict(flavor.spec.at("nodeLabels").parts().named), flavor.identity.described, inventory)
    for pods in inventory.of(PodSet):
        if not pods.serve_nodes and pods.asks_for_gpus is True:
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


@Rule(
    code="FLX015",
    severity=Severity.LOW,
    clouds=(Cloud.EKS,),
    why="A fraction of a node cannot be launched, so the actual ceiling differs from the limit: quotas based on the limit promise too "
    "much.",
    remediation="Set a multiple of the number of GPUs that one node of the pool has.",
    link="https://karpenter.sh/docs/concepts/nodepools/#speclimits",
    sources=("https://github.com/aws/karpenter-provider-aws/issues/7038",),
)
def gpu_limit_not_multiple_of_machine(pool: KarpenterNodePool, _: Parameters) -> Outcome:
    """A GPU limit that is not a multiple of a node's GPUs.

    Fails where whole nodes of no machine that the pool may launch add up to the limit.
    """
    found, resource = limited_machines(pool.spec), limited_kind(pool.spec).resource
    if not isinstance(found, tuple):
        return found
    limit, machines = found
    counts = sorted({machine.gpu_counts[0] for machine in machines.gpus})
    if any(limit % count == 0 for count in counts):
        return PASSES
    near = sorted({int(limit // counts[0] * counts[0]), int(-(-limit // counts[0]) * counts[0])} - {0})
    of_machine = next(machine for machine in machines.gpus if machine.gpu_counts[0] == counts[0])
    return fails(
        f'spec.limits["{resource}"] is {limit}, which no whole number of nodes adds up to: a {of_machine.name} has {counts[0]}',
        f"set it to {' or '.join(map(str, near))}",
        f'spec.limits["{resource}"]',
    )


@Rule(
    code="FLX014",
    severity=Severity.MEDIUM,
    clouds=(Cloud.EKS,),
    why="Queues rely on the GPU limit; jobs admitted beyond what cpu or memory allow wait for nodes that Karpenter never starts.",
    remediation="Set the limits on nodes, cpu and memory high enough for the limit on nvidia.com/gpu.",
    link="https://karpenter.sh/docs/concepts/nodepools/#speclimits",
    sources=("https://github.com/aws/karpenter-provider-aws/issues/6328",),
)
def gpu_limit_unreachable(pool: KarpenterNodePool, _: Parameters) -> Outcome:
    """A GPU limit that cannot be reached because of the other limits.

    Fails where one of the machines that the pool may launch does not reach the limit: which one it launches, Karpenter chooses.
    """
    found, resource = limited_machines(pool.spec), limited_kind(pool.spec).resource
    if not isinstance(found, tuple):
        return found
    limit, machines = found
    ceilings, known = node_ceilings(pool.spec)
    ended = out_of_reach([(machine, machine.gpu_counts[0]) for machine in machines.gpus], limit, ceilings)
    if ended:
        machine, written = ended.machine.name, written_limits(pool.spec)
        return fails(
            f'spec.limits["{resource}"] is {limit}, but with {machine} nodes the other limits ({written}) allow only {ended.gpus}',
            f"allow {ended.needed}, remove {machine} from its requirements, or lower the limit on {resource}",
            f'spec.limits["{resource}"]',
        )
    return PASSES if known else undecided("its other limits are not known yet")
