"""A PodDisruptionBudget that never allows an eviction."""

from decimal import Decimal
from math import ceil

from flexspot.capacity.values.quantities import quantity
from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, not_applicable, undecided
from flexspot.policies.inventory.objects import PodDisruptionBudget
from flexspot.policies.inventory.views import Inventory, PodSet
from flexspot.policies.judging import Parameter, Parameters, Rule
from flexspot.policies.pods.selection import copies_of, selected
from flexspot.policies.values.field import UNKNOWN, Field, Tri


def judge(budget: PodDisruptionBudget, parameters: Parameters, inventory: Inventory) -> Outcome:
    """Either the numbers say so, or the pods' owner has no scale, so that only a whole minAvailable can be counted."""
    most, least = budget.spec.at("maxUnavailable"), budget.spec.at("minAvailable")
    for field, at, none in ((most, "spec.maxUnavailable", ("0", "0%")), (least, "spec.minAvailable", ("100%",))):
        if field.equals(*none) is True:
            return fails(f"{at} is {field.text()}, which allows no eviction", at=at)
    if not most.known or not least.known:
        return undecided("spec.maxUnavailable, or spec.minAvailable, is not known yet")
    pods = selected(budget, inventory)
    sure = [each for each, answer in pods if answer is True]
    scaled = "spec.maxUnavailable" if not most.absent else "spec.minAvailable"
    if not most.absent or _percent(least):
        for each in sure:
            if each.kind in parameters.texts("kinds-without-scale"):
                return fails(
                    f"{scaled} needs the scale of the pods' owner, and {each.identity.described} has none: no eviction is allowed",
                    "remove the budget, or set minAvailable to a whole number below the number of pods",
                    scaled,
                )
    if least.absent:
        return PASSES if not most.absent else not_applicable("it sets neither maxUnavailable nor minAvailable")
    blocks = _keeps_all(least, pods)
    if blocks is True:
        return fails(
            f"spec.minAvailable is {least.text()}, and it selects no more pods than that: no eviction is allowed", at="spec.minAvailable"
        )
    return undecided("the number of pods that it selects cannot be told from the input") if blocks is UNKNOWN else PASSES


def _percent(amount: Field) -> bool:
    text = amount.text()
    return isinstance(text, str) and text.endswith("%")


def _keeps_all(least: Field, pods: list[tuple[PodSet, Tri]]) -> Tri:
    """Whether all must stay. Kubernetes rounds a share of the pods up."""
    copies = [copies_of(each) if answer is True else UNKNOWN for each, answer in pods]
    text = least.text()
    if not copies or UNKNOWN in copies or not isinstance(text, str):
        return UNKNOWN
    whole = sum((each for each in copies if isinstance(each, Decimal)), Decimal(0))
    share = quantity(text.removesuffix("%"))
    if share is None:
        return False
    kept = ceil(share * whole / 100) if text.endswith("%") else share
    return 0 < whole <= kept


RULE = Rule(
    code="FLX051",
    severity=Severity.HIGH,
    judge_among=judge,
    why=(
        "Nodes with such pods are never drained: autoscalers keep half-empty GPU nodes, and upgrades wait until they "
        "fail or force eviction."
    ),
    remediation="Allow at least one pod to be evicted: maxUnavailable: 1, or minAvailable below the number of pods.",
    link="https://kubernetes.io/docs/tasks/run-application/configure-pdb/#arbitrary-controllers-and-selectors",
    sources=("k8s.io/kubernetes 1.36.1, pkg/controller/disruption: without a scale no disruption is allowed.",),
    parameters=(
        Parameter(
            "kinds-without-scale",
            ("CronJob", "Job", "JobSet", "RayCluster", "RayJob", "RayService"),
            "Kinds whose pods have an owner without a scale.",
        ),
    ),
)
