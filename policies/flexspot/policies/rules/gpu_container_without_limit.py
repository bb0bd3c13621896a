"""A pod on GPU nodes in which no container requests a GPU, or a GPU request without a limit."""

from flexspot.capacity.catalog.accelerators import RESOURCES
from flexspot.capacity.catalog.node_labels import GPU_RESOURCE
from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, not_applicable, undecided
from flexspot.policies.inventory.pod_gpus import unbacked_request
from flexspot.policies.inventory.views import PodSet
from flexspot.policies.judging import Parameters, Rule
from flexspot.policies.values.field import UNKNOWN, all_of, negated

UNBACKED = "{where}: {container} requests {resource} without a limit, which Kubernetes refuses"
IDLE = f"{{where}} runs on GPU nodes (by {{by}}), and none of its containers has a limit on {' or '.join(RESOURCES)}"
IDLE_REMEDY = f'set resources.limits["{GPU_RESOURCE}"], or that of its nodes, in the container that computes, or take the pod off GPU nodes'


def judge(pods: PodSet, _: Parameters) -> Outcome:
    """Fails on what the pod alone proves: a request for GPUs without a limit, or a place on GPU nodes and no GPU asked for."""
    if exempt := pods.exemption:
        return not_applicable(exempt)
    unbacked, container, resource = unbacked_request(pods.pod)
    if unbacked is True:
        return fails(UNBACKED.format(where=pods.where, container=container, resource=resource))
    asks = pods.asks_for_gpus
    placed, by = pods.placed_on_gpus
    idle = all_of([placed, negated(asks)])
    if idle is True:
        return fails(IDLE.format(where=pods.where, by=by), IDLE_REMEDY)
    if unbacked is UNKNOWN or idle is UNKNOWN:
        return undecided(f"{pods.where}: where it runs, or the GPU requests of its containers, are not known yet")
    return PASSES if asks is True else not_applicable("it neither requests GPUs nor runs on GPU nodes")


RULE = Rule(
    code="FLX003",
    severity=Severity.HIGH,
    judge=judge,
    why="A pod on a GPU node that does not request a GPU keeps the node alive, and no quota and no chargeback counts it.",
    remediation=f'Set resources.limits["{GPU_RESOURCE}"] in each container that uses GPUs, and the request equal to it or not at all.',
    link="https://kubernetes.io/docs/tasks/manage-gpus/scheduling-gpus/#using-device-plugins",
)
