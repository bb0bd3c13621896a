"""A container that requests more GPUs than a node has."""

from decimal import Decimal

from flexspot.capacity.catalog.accelerators import RESOURCES
from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, not_applicable, undecided
from flexspot.policies.inventory.objects import ComputeClassView
from flexspot.policies.inventory.views import Autopilot, GpuPool, Inventory, NodeAutoProvisioning, PodSet
from flexspot.policies.judging import Parameter, Parameters, Rule
from flexspot.policies.pods.placement import pool_matches
from flexspot.policies.values.field import UNKNOWN, Unknown

MOST, SHIPPED = "most-gpus", 16
ABOVE = "{where}: {container} has a limit of {count} on {resource}, and no node that it may have has more than {most}"
ABOVE_REMEDY = "write {most} or less, and split what needs more over several pods"


def judge(pods: PodSet, parameters: Parameters, inventory: Inventory) -> Outcome:
    """A container is on one node, and the largest of those that there are bounds it, as the API server knows them.

    Where nobody says which nodes there are, no machine of either cloud has more than the parameter; a single GPU fits any.
    """
    asks = pods.asks_for_gpus
    if exempt := pods.not_gpu_work:
        return not_applicable(exempt)
    placed = inventory.closed or any(each.suits is True for each in pool_matches(pods, inventory))
    bounds = {resource: _bound(resource, parameters, inventory, placed=placed) for resource in RESOURCES}
    counts = [
        (name, resource, container.at("resources", "limits", resource).number())
        for resource in RESOURCES
        for name, container in pods.containers
    ]
    for name, resource, count in counts:
        most, _ = bounds[resource]
        if count is not UNKNOWN and count is not None and count > most:
            told = ABOVE.format(where=pods.where, container=name, count=count, resource=resource, most=most)
            return fails(told, ABOVE_REMEDY.format(most=most), f"{pods.where}.containers")
    if asks is UNKNOWN or any(count is UNKNOWN for _, _, count in counts):
        return undecided(f"{pods.where}: the GPU requests of its containers are not known yet")
    if any(not bounds[resource][1] and isinstance(count, Decimal) and count > 1 for _, resource, count in counts):
        return undecided(f"{pods.where}: the number of GPUs of the largest node is not known")
    return PASSES


def _bound(resource: str, parameters: Parameters, inventory: Inventory, *, placed: bool) -> tuple[Decimal, bool]:
    """The most of a resource that a node has, and whether that is known of the nodes.

    Pods that are not `placed` select none of the pools that are listed, so that there are others. What somebody set goes before what the
    nodes have, in the cluster as well.
    """
    most = Decimal(parameters.number(MOST))
    if parameters.is_set(MOST):
        return most, True
    known = inventory.once("largest GPU node", resource, lambda: _largest(inventory, resource)) if placed else UNKNOWN
    return (most, False) if known is UNKNOWN else (min(most, known), True)


def _largest(inventory: Inventory, resource: str) -> Decimal | Unknown:
    """The most of a resource on a node of all pools that have it, on the largest machine where a cloud makes pools by itself.

    UNKNOWN where nobody lists them, or one may be larger than is told.
    """
    if inventory.of(NodeAutoProvisioning) or inventory.of(Autopilot) or inventory.of(ComputeClassView):
        return Decimal(SHIPPED)
    counts = [pool.node_gpus for pool in inventory.of(GpuPool) if resource in pool.resources]
    if not counts or not all(isinstance(each, Decimal) for each in counts):
        return UNKNOWN
    return max(each for each in counts if isinstance(each, Decimal))


RULE = Rule(
    code="FLX064",
    severity=Severity.MEDIUM,
    judge_among=judge,
    why="Kueue counts its GPUs against the quota and admits it, but no node will ever have room: it holds quota that others could use.",
    remediation="Ask for no more GPUs than the largest node has; a job gets more by having several pods.",
    link="https://kueue.sigs.k8s.io/docs/concepts/workload/#pod-sets",
    sources=("https://docs.cloud.google.com/compute/docs/gpus", "https://docs.aws.amazon.com/ec2/latest/instancetypes/ac.html"),
    parameters=(
        Parameter(
            MOST,
            SHIPPED,
            "The most GPUs for one container, regardless of node size: those of the largest machine of either cloud.",
        ),
    ),
)
