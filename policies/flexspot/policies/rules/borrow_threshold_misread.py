"""A threshold intended to limit who may borrow, but which sets whom borrowers may preempt."""

from decimal import Decimal

from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, not_applicable, undecided
from flexspot.policies.inventory.objects import ClusterQueue, PriorityClass
from flexspot.policies.inventory.views import Inventory
from flexspot.policies.judging import Level, Parameter, Parameters, Rule
from flexspot.policies.queues import fair_sharing
from flexspot.policies.values.field import UNKNOWN

_AT = "spec.preemption.borrowWithinCohort.maxPriorityThreshold"


def judge(queue: ClusterQueue, parameters: Parameters, inventory: Inventory) -> Outcome:
    """Nobody can see what was meant; that the classes which are to be protected are among the victims is what shows the misreading."""
    borrow = queue.spec.at("preemption", "borrowWithinCohort")
    if borrow.at("policy").equals("LowerPriority") is False or borrow.at("maxPriorityThreshold").absent:
        return not_applicable("it sets no priority threshold for preemption while borrowing")
    if fair_sharing(inventory)[0] is True:
        return not_applicable("Kueue ignores it under fair sharing")
    threshold = borrow.at("maxPriorityThreshold").number() if borrow.at("policy").known else UNKNOWN
    words = parameters.texts("protected-words")
    named = [(each.identity.name, each.fields.at("value").number()) for each in inventory.of(PriorityClass)]
    guarded = [(value, name) for name, value in named if any(word in name for word in words)]
    if isinstance(threshold, Decimal):
        victims = sorted((value, name) for value, name in guarded if isinstance(value, Decimal) and value <= threshold)
        if victims:
            names = ", ".join(sorted({name for _, name in victims}))
            return fails(
                f"{_AT} is {threshold}: workloads that borrow may preempt any priority up to it, which includes {names}",
                f"set it below {victims[0][0]}, to the highest priority that borrowing workloads may preempt",
                _AT,
            )
    if threshold is UNKNOWN or any(value is UNKNOWN for value, _ in guarded) or not inventory.tells(PriorityClass):
        return undecided("its threshold, or the set of PriorityClasses, is not known")
    return PASSES


RULE = Rule(
    code="FLX036",
    severity=Severity.MEDIUM,
    level=Level.ADVISORY,
    judge_among=judge,
    why="maxPriorityThreshold limits the priority of victims, not borrowers: if set to that of training, borrowers can preempt training.",
    remediation="Set it to the highest priority that may be preempted for a borrower, below every class that must keep running.",
    link="https://kueue.sigs.k8s.io/docs/concepts/cluster_queue/#preemption",
    sources=('Kueue 0.19, apis/kueue/v1beta2: "only workloads with priority less than or equal to the specified threshold".',),
    parameters=(
        Parameter("protected-words", ("train", "production"), "Words in the name of a priority class whose work must not be preempted."),
    ),
)
