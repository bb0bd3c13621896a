"""A pool for work that must not be moved, but whose nodes are removed at a certain age."""

import re

from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, not_applicable, undecided
from flexspot.policies.inventory.objects import KarpenterNodePool
from flexspot.policies.inventory.views import GpuPool, Inventory
from flexspot.policies.judging import Cloud, Parameter, Parameters, Rule
from flexspot.policies.pools import gpu_pool_of
from flexspot.policies.values.field import UNKNOWN, Tri, any_of

AUTO_MODE_HOURS = 504
"""EKS Auto Mode ends every node after 21 days at most: flexspot/capacity/catalog/auto_mode.yaml, whose models lint does not load."""

_A_DAY = 24
_OF_AN_HOUR = {"h": 1, "s": 3600}


def judge(pool: KarpenterNodePool, parameters: Parameters, inventory: Inventory) -> Outcome:
    """A pool is meant for such work if it keeps nodes until they are empty, or if a word in its name, labels or taints says so."""
    gpu = gpu_pool_of(pool.identity, inventory)
    if gpu is None:
        return not_applicable("it creates no GPU nodes")
    meant = any_of([pool.spec.at("disruption", "consolidationPolicy").equals("WhenEmpty"), _named(pool, gpu, parameters.texts("words"))])
    if meant is False:
        return not_applicable("its work may be moved")
    expiry = pool.spec.at("template", "spec", "expireAfter")
    if expiry.equals("Never") is True or _as_late_as_auto_mode_lets(pool):
        return PASSES
    if UNKNOWN in (meant, expiry.text(), gpu.concerned):
        return undecided("spec.template.spec.expireAfter, or what the pool is for, is not known yet")
    written = expiry.text() or "absent, which means 720h"
    return fails(
        f"spec.template.spec.expireAfter is {written}: nodes of that age are drained, whatever runs on them and whatever budgets say",
        "set spec.template.spec.expireAfter to Never",
        "spec.template.spec.expireAfter",
    )


def _as_late_as_auto_mode_lets(pool: KarpenterNodePool) -> bool:
    """Whether AWS would end the node a day later at most, whatever the pool says."""
    spec = pool.spec.at("template", "spec")
    hours = re.fullmatch(r"(\d+)(h|s)", str(spec.at("expireAfter").text()))
    if hours is None or spec.at("nodeClassRef", "group").equals("eks.amazonaws.com") is not True:
        return False
    return int(hours[1]) / _OF_AN_HOUR[hours[2]] >= AUTO_MODE_HOURS - _A_DAY


def _named(pool: KarpenterNodePool, gpu: GpuPool, words: tuple[str, ...]) -> Tri:
    labels = pool.spec.at("template", "metadata", "labels").parts()
    texts = [
        pool.name.text(),
        *(value.text() for value in labels.fields),
        *(text for taint in gpu.taints for text in (taint.key.text(), taint.value.text())),
    ]
    found = any(word in text for text in texts if isinstance(text, str) for word in words)
    return found or (UNKNOWN if UNKNOWN in texts else False)


RULE = Rule(
    code="FLX019",
    severity=Severity.MEDIUM,
    clouds=(Cloud.EKS,),
    judge_among=judge,
    why="WhenEmpty does not stop expiry: after 30 days by default Karpenter drains a node in the middle of a run.",
    remediation="Set expireAfter to Never for pools whose work must not be moved, and replace their nodes when they are empty. In EKS Auto "
    "Mode, where AWS ends every node after 21 days, set it to 480h.",
    link="https://karpenter.sh/docs/concepts/disruption/#automated-forceful-methods",
    parameters=(
        Parameter("words", ("train",), "Words in a pool's name, node labels or taints which show that its work must not be moved."),
    ),
)
