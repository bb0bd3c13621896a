"""Shares that Kueue ignores because of its configuration."""

from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, not_applicable, undecided
from flexspot.policies.inventory.objects import ClusterQueue, Cohort
from flexspot.policies.inventory.views import Inventory
from flexspot.policies.judging import Parameters, Rule
from flexspot.policies.queues import fair_sharing
from flexspot.policies.values.field import UNKNOWN, all_of, negated


def judge(queue: ClusterQueue | Cohort, _: Parameters, inventory: Inventory) -> Outcome:
    """Weights need fair sharing, borrowWithinCohort needs that it is off. A weight of 1 is what every queue has, and says nothing."""
    weight = queue.spec.at("fairSharing", "weight").number()
    borrows = queue.spec.at("preemption", "borrowWithinCohort", "policy").equals("LowerPriority")
    weighs = UNKNOWN if weight is UNKNOWN else weight is not None and weight != 1
    if weighs is False and borrows is False:
        return not_applicable("it sets no weight, and does not preempt to borrow")
    on, where = fair_sharing(inventory)
    inert, ignored = all_of([weighs, negated(on)]), all_of([borrows, on])
    if inert is True:
        return fails(
            f"spec.fairSharing.weight is {queue.spec.at('fairSharing', 'weight').text()}, but {where} does not enable fair sharing",
            f"set {where} to {{preemptionStrategies: [LessThanOrEqualToFinalShare, LessThanInitialShare]}}, or remove the weight",
            "spec.fairSharing.weight",
        )
    if ignored is True:
        return fails(
            f"spec.preemption.borrowWithinCohort is set, but {where} enables fair sharing, which ignores it",
            "remove borrowWithinCohort; under fair sharing, weights decide who may preempt",
            "spec.preemption.borrowWithinCohort",
        )
    return undecided(f"its weight, its preemption, or {where} is not known") if UNKNOWN in (inert, ignored) else PASSES


RULE = Rule(
    code="FLX035",
    severity=Severity.MEDIUM,
    judge_among=judge,
    why="Fair sharing is off unless the configuration enables it: weights are then ignored, and the agreed shares are not enforced.",
    remediation=(
        "Turn on fairSharing in Kueue's configuration where weights are set, and use borrowWithinCohort only in clusters without it."
    ),
    link="https://kueue.sigs.k8s.io/docs/concepts/preemption/#fair-sharing",
    sources=("Kueue 0.19, apis/kueue/v1beta2/clusterqueue_types.go: borrowWithinCohort is for classical preemption.",),
)
