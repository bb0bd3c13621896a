"""A PriorityClass so low that any pod without a class preempts its pods."""

from decimal import Decimal

from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, not_applicable, undecided
from flexspot.policies.inventory.objects import PriorityClass
from flexspot.policies.inventory.views import Inventory
from flexspot.policies.judging import Level, Parameter, Parameters, Rule
from flexspot.policies.pods.placement import below_scale_up, defaults, is_of_pods, users_of, value_of
from flexspot.policies.values.field import UNKNOWN


def judge(priority: PriorityClass, parameters: Parameters, inventory: Inventory) -> Outcome:
    """Pods without a class have 0, or the value of the class that is the default. Pods that only hold a place are meant to go."""
    below = below_scale_up(priority, inventory)
    if not is_of_pods(priority) or below is True:
        return not_applicable("not a PriorityClass for pods, or one that priority-below-scale-up judges")
    name, value = priority.identity.name.lower(), value_of(priority)
    asked = [each.asks_for_gpus for each in users_of(priority, inventory)]
    if any(word in name for word in parameters.texts("words")) or (asked and not any(each is not False for each in asked)):
        return not_applicable("its pods are placeholders for others, or request no GPUs")
    values = [value_of(each) for each in defaults(inventory)]
    if UNKNOWN in (value, *values):
        return undecided("its value, or that of the default class, is not known yet")
    default = min((each for each in values if each is not UNKNOWN), default=Decimal(0))
    if value is not UNKNOWN and (value >= 0 or value >= default):
        return PASSES
    others = any(is_of_pods(each) and each.identity != priority.identity for each in inventory.of(PriorityClass))
    if below is UNKNOWN or not (others or any(each is True for each in asked) or inventory.closed):
        return undecided(f"value is {value}; the pods that use the class, and the default class, are not in the input")
    return fails(
        f"value is {value}, but pods without a class have {default}: each of them may preempt a pod of this class",
        f"set it to {max(default, Decimal(0))} or more, with preemptionPolicy: Never for work that must not preempt",
        "value",
    )


RULE = Rule(
    code="FLX049",
    severity=Severity.MEDIUM,
    level=Level.ADVISORY,
    judge_among=judge,
    why="A debug pod, a chart's Deployment, or anything else without a class ends a training job that has run for days, without notice.",
    remediation="Give work that may be preempted a small value above 0; between classes, the order matters, not the sign.",
    link="https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/",
    parameters=(
        Parameter(
            "words",
            ("balloon", "headroom", "overprovision", "pause", "placeholder", "preemptible", "spare"),
            "Words in the name of a class whose pods are only placeholders.",
        ),
    ),
)
