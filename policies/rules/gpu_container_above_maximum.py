"""A container that asks for more GPUs than a node has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.catalog.accelerators import RESOURCES
from capacity.values.verdict import PASSES, Severity, fails, not_applicable, undecided
from policies.inventory.pod_gpus import containers
from policies.inventory.views import PodSet
from policies.judging import BOTH_CLOUDS, Level, Rule
from policies.values.field import UNKNOWN
from policies.values.parameters import Parameter, Parameters

if TYPE_CHECKING:
    from capacity.values.verdict import Outcome

MOST = "most-gpus"
ABOVE = "{where}: {container} has a limit of {count} on {resource}, and no node that it may have has more than {most}"
ABOVE_REMEDY = "write {most} or less, and split what needs more over several pods"


def judge(pods: PodSet, parameters: Parameters) -> Outcome:
    """A container is on one node. In a cluster the API server knows the largest node of the pod's class."""
    asks = pods.asks_for_gpus
    if exempt := pods.exemption or ("asks for no GPUs" if asks is False else ""):
        return not_applicable(exempt)
    most = parameters.number(MOST)
    counts = [
        (name, resource, container.at("resources", "limits", resource).number())
        for resource in RESOURCES
        for name, container in containers(pods.pod)
    ]
    for name, resource, count in counts:
        if count is not UNKNOWN and count is not None and count > most:
            told = ABOVE.format(where=pods.where, container=name, count=count, resource=resource, most=most)
            return fails(told, ABOVE_REMEDY.format(most=most), f"{pods.where}.containers")
    if asks is UNKNOWN or any(count is UNKNOWN for _, _, count in counts):
        return undecided(f"{pods.where}: which GPUs its containers ask for is not known yet")
    return PASSES


RULE = Rule(
    code="FLX064",
    name="gpu-container-above-maximum",
    severity=Severity.MEDIUM,
    level=Level.MANDATORY,
    clouds=BOTH_CLOUDS,
    looks_at=(PodSet,),
    judge=judge,
    why="Kueue counts its GPUs against the quota and admits it, and no node will ever have room: it holds what others could use.",
    remediation="Ask for no more GPUs than the largest node has; a job gets more by having several pods.",
    link="https://kueue.sigs.k8s.io/docs/concepts/workload/#pod-sets",
    sources=("https://docs.cloud.google.com/compute/docs/gpus", "https://docs.aws.amazon.com/ec2/latest/instancetypes/ac.html"),
    parameters=(Parameter(MOST, 16, "The most GPUs that one container may have: as many as the largest machine of either cloud."),),
)
