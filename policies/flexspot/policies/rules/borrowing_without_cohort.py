"""A queue that has no other queue to borrow from, or that sets borrowing or lending limits without a cohort."""

from collections.abc import Iterator
from decimal import Decimal

from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, not_applicable, undecided
from flexspot.policies.inventory.objects import ClusterQueue
from flexspot.policies.inventory.views import Inventory
from flexspot.policies.judging import Parameters, Rule
from flexspot.policies.queues import cohort_of, shares
from flexspot.policies.values.field import UNKNOWN, Field

_JOIN = "set spec.cohortName (spec.cohort in v1beta1) to the cohort that it shares with, or remove the field"


def judge(queue: ClusterQueue, _: Parameters, inventory: Inventory) -> Outcome:
    """Alone in a cohort, only what speaks of borrowing outright is held against it: what it may lend waits for others to come."""
    cohort, limits, preemption = cohort_of(queue), list(_limits(queue)), queue.spec.at("preemption")
    reclaims = preemption.at("reclaimWithinCohort").equals("LowerPriority", "Any")
    borrows = preemption.at("borrowWithinCohort", "policy").equals("LowerPriority")
    if cohort.absent:
        if at := next((path for path, limit in limits if limit.known), ""):
            return fails(f"{at} is set but the queue has no cohort: the API server refuses it", _JOIN, at)
        if borrows is True or reclaims is True:
            at = f"spec.preemption.{'borrow' if borrows is True else 'reclaim'}WithinCohort"
            return fails(f"{at} is set but the queue has no cohort: there are no other queues to preempt", _JOIN, at)
    borrowing = (each for each in limits if each[0].endswith("borrowingLimit"))
    at = next((path for path, limit in borrowing if isinstance(amount := limit.number(), Decimal) and amount > 0), "")
    at = at or ("spec.preemption.borrowWithinCohort" if borrows is True else "")
    if at and isinstance(name := cohort.text(), str):
        others = shares(queue, inventory)
        if others is False and (inventory.closed or len(inventory.of(ClusterQueue)) > 1):
            return fails(
                f"{at} is set but the queue is alone in cohort {name}: there is no quota to borrow",
                "add the other teams' queues to the cohort, give a Cohort of that name quota to share, or remove the field",
                at,
            )
        return PASSES if others is True else undecided(f"the other members of cohort {name} are not known")
    if not (cohort.known and all(limit.known for _, limit in limits)) or reclaims is UNKNOWN or borrows is UNKNOWN:
        return undecided("its cohort, its limits or its preemption are not known yet")
    return PASSES if limits or reclaims or borrows else not_applicable("it neither borrows nor lends")


def _limits(queue: ClusterQueue) -> Iterator[tuple[str, Field]]:
    """The limits on borrowing and lending that are written, each with its path; one of unknown value for quota not known yet."""
    groups = queue.spec.at("resourceGroups")
    if not groups.known:
        yield "spec.resourceGroups", groups
    for group, fields in groups.parts().named:
        for flavor, of_flavor in fields.at("flavors").parts().named:
            for resource, of_resource in of_flavor.at("resources").parts().named:
                for name in ("borrowingLimit", "lendingLimit"):
                    if not (limit := of_resource.at(name)).absent:
                        yield f"spec.resourceGroups[{group}].flavors[{flavor}].resources[{resource}].{name}", limit


RULE = Rule(
    code="FLX034",
    severity=Severity.MEDIUM,
    judge_among=judge,
    why="Queues lend only within a cohort: without one, or alone in one, other queues' idle GPUs stay idle while this queue's jobs wait.",
    remediation="Give every team its own ClusterQueue, and put all of them in one cohort; limits then set how much each may borrow.",
    link="https://kueue.sigs.k8s.io/docs/concepts/cluster_queue/#cohort",
    sources=("kubernetes-sigs/kueue v0.19, pkg/webhooks/clusterqueue_webhook.go: both limits must be nil when the cohort is empty.",),
)
