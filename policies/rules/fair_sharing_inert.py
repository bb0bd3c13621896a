"""Shares that Kueue ignores because of its configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.values.verdict import PASSES, Severity, fails, not_applicable, undecided
from policies.inventory.objects import ClusterQueue, Cohort
from policies.judging import BOTH_CLOUDS, Level, Rule, WithoutCel
from policies.queues.cohorts import fair_sharing
from policies.values.field import UNKNOWN, all_of, negated

if TYPE_CHECKING:
    from capacity.values.verdict import Outcome
    from policies.inventory.views import Inventory
    from policies.values.parameters import Parameters


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
    name="fair-sharing-inert",
    severity=Severity.MEDIUM,
    level=Level.MANDATORY,
    clouds=BOTH_CLOUDS,
    looks_at=(ClusterQueue, Cohort),
    judge_among=judge,
    without_cel=WithoutCel.OWN_PROGRAM,
    why="Fair sharing is off unless the configuration enables it: weights are then ignored, and the agreed shares are not enforced.",
    remediation=(
        "Turn on fairSharing in Kueue's configuration where weights are set, and use borrowWithinCohort only in clusters without it."
    ),
    link="https://kueue.sigs.k8s.io/docs/concepts/preemption/#fair-sharing",
    sources=("Kueue 0.19, apis/kueue/v1beta2/clusterqueue_types.go: borrowWithinCohort is for classical preemption.",),
)
