"""A PodDisruptionBudget for jobs on capacity that the cloud reclaims: it does not stop the reclaim."""

from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, not_applicable, undecided
from flexspot.policies.inventory.objects import PodDisruptionBudget
from flexspot.policies.inventory.views import Inventory
from flexspot.policies.judging import Level, Parameter, Parameters, Rule
from flexspot.policies.pods.interruption import flex_start_of, interruption_of
from flexspot.policies.pods.selection import selected
from flexspot.policies.values.field import UNKNOWN


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
    severity=Severity.LOW,
    level=Level.ADVISORY,
    judge_among=judge,
    why=(
        "A budget limits evictions. The reclaim of a Spot node and the end of a flex-start node are not evictions: "
        "jobs that rely on it lose work."
    ),
    remediation="Rely on checkpoints and a podFailurePolicy that ignores DisruptionTarget; keep the budget only for drains, or remove it.",
    link="https://kubernetes.io/docs/concepts/workloads/pods/disruptions/#pod-disruption-budgets",
    sources=("https://docs.cloud.google.com/kubernetes-engine/docs/concepts/spot-vms",),
    parameters=(Parameter("kinds", ("CronJob", "Job", "JobSet", "Pod", "PyTorchJob", "RayJob"), "Kinds of work that run to completion."),),
)
