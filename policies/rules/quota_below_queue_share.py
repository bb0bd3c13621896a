"""A ResourceQuota that lets a team start less than its queues give it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.values.verdict import PASSES, Severity, fails, not_applicable, undecided
from policies.inventory.objects import ResourceQuota
from policies.judging import BOTH_CLOUDS, Level, Rule, WithoutCel
from policies.queues.cohorts import GPU_QUOTA_KEY, is_of_some_pods, local_queues_of, read_quota, share_of
from policies.values.field import Unknown

if TYPE_CHECKING:
    from capacity.values.verdict import Outcome
    from policies.inventory.views import Inventory
    from policies.values.parameters import Parameters


def judge(quota: ResourceQuota, _: Parameters, inventory: Inventory) -> Outcome:  # noqa: PLR0911 -- a list of decisions, one a line
    """What can be borrowed counts, up to what the other members of the cohort have and lend."""
    gpus, space = read_quota(quota).gpus, quota.namespace
    if gpus is None or is_of_some_pods(quota):
        return not_applicable("it bounds no whole GPUs, or only those of some pods")
    if isinstance(space, Unknown):
        return undecided("its namespace is not known yet")
    if not local_queues_of(space, inventory):
        return not_applicable("no queue that was given serves its namespace")
    share, at = share_of(space, inventory), f'spec.hard["{GPU_QUOTA_KEY}"]'
    if isinstance(gpus, Unknown):
        return undecided(f"{at} is not known yet")
    if gpus < share.least:
        return fails(
            f"{at} is {gpus}, and the queues of namespace {space} give it up to {share.least} GPUs, borrowed ones included",
            f"raise it to {share.least}, and by what runs there without a queue, or lower nominalQuota and borrowingLimit of the queues",
            at,
        )
    if not share.complete:
        return undecided(
            f"how much the queues of namespace {space} give is not known: a quota is not, or a queue is not among what was given"
        )
    return PASSES


RULE = Rule(
    code="FLX055",
    name="quota-below-queue-share",
    severity=Severity.MEDIUM,
    level=Level.MANDATORY,
    clouds=BOTH_CLOUDS,
    looks_at=(ResourceQuota,),
    judge_among=judge,
    without_cel=WithoutCel.OWN_PROGRAM,
    why="Kueue knows nothing of ResourceQuotas: it admits the job and holds quota for it, and the API server refuses its pods, each time.",
    remediation="Let the namespace's quota be at least what its queues promise and can borrow.",
    link="https://kueue.sigs.k8s.io/docs/concepts/cohort/",
)
