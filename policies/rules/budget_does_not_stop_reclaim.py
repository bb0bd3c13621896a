"""A PodDisruptionBudget for jobs on capacity that the cloud reclaims: it does not stop the reclaim."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.values.verdict import PASSES, Severity, fails, not_applicable, undecided
from policies.inventory.objects import PodDisruptionBudget
from policies.judging import BOTH_CLOUDS, Level, Rule, WithoutCel
from policies.pods.interruption import flex_start_of, interruption_of
from policies.pods.selection import selected
from policies.values.field import UNKNOWN
from policies.values.parameters import Parameter, Parameters

if TYPE_CHECKING:
    from capacity.values.verdict import Outcome
    from policies.inventory.views import Inventory


def judge(budget: PodDisruptionBudget, parameters: Parameters, inventory: Inventory) -> Outcome:
    """Services are left out: there a budget does its work, which is with drains."""
    kinds = parameters.texts("kinds")
    jobs = [(pods, answer) for pods, answer in selected(budget, inventory) if pods.kind in kinds and pods.asks_for_gpus is not False]
    if not jobs:
        return not_applicable("it selects no GPU job in the input")
    hangs = False
    for pods, answer in jobs:
        interruption, (flex, by) = interruption_of(pods, inventory), flex_start_of(pods, inventory)
        spot = interruption.possible is True
        if answer is True and pods.asks_for_gpus is True and (spot or flex is True):
            where = interruption.by if spot else by
            return fails(
                f"spec.selector selects the pods of {pods.identity.described}: {where}, and no budget delays its end", at="spec.selector"
            )
        hangs |= UNKNOWN in (answer, interruption.possible, flex) or spot or flex is True
    return undecided("whether a job that it selects runs on Spot or flex-start is not known") if hangs else PASSES


RULE = Rule(
    code="FLX052",
    name="budget-does-not-stop-reclaim",
    severity=Severity.LOW,
    level=Level.ADVISORY,
    clouds=BOTH_CLOUDS,
    looks_at=(PodDisruptionBudget,),
    judge_among=judge,
    without_cel=WithoutCel.COMPARES_OBJECTS,
    why=(
        "A budget limits evictions. The reclaim of a Spot node and the end of a flex-start node are not evictions: "
        "jobs that rely on it lose work."
    ),
    remediation="Rely on checkpoints and a podFailurePolicy that ignores DisruptionTarget; keep the budget only for drains, or remove it.",
    link="https://kubernetes.io/docs/concepts/workloads/pods/disruptions/#pod-disruption-budgets",
    sources=("https://docs.cloud.google.com/kubernetes-engine/docs/concepts/spot-vms",),
    parameters=(Parameter("kinds", ("CronJob", "Job", "JobSet", "Pod", "PyTorchJob", "RayJob"), "Kinds of work that run to completion."),),
)
