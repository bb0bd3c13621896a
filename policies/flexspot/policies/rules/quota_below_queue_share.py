"""A ResourceQuota that allows a team less than its queues give it."""

from decimal import Decimal

from flexspot.capacity.catalog.accelerators import Accelerator
from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, Verdict, fails, not_applicable, undecided
from flexspot.policies.inventory.objects import ResourceQuota
from flexspot.policies.inventory.views import Inventory
from flexspot.policies.judging import Parameters, Rule
from flexspot.policies.queues import Share, is_of_some_pods, local_queues_of, read_quota, share_of
from flexspot.policies.values.field import Unknown


def judge(quota: ResourceQuota, _: Parameters, inventory: Inventory) -> Outcome:
    """What can be borrowed counts, up to what the other members of the cohort have and lend."""
    bounded, space = {kind: gpus for kind, gpus in read_quota(quota).gpus.items() if gpus is not None}, quota.namespace
    if not bounded or is_of_some_pods(quota):
        return not_applicable("it limits no whole GPUs, or only those of some pods")
    if isinstance(space, Unknown):
        return undecided("its namespace is not known yet")
    if not local_queues_of(space, inventory):
        return not_applicable("no queue in the input serves its namespace")
    outcomes = [_of_kind(kind, gpus, space, share_of(space, inventory, kind)) for kind, gpus in bounded.items()]
    return max(outcomes, key=lambda each: _GRAVITY.index(each.verdict))


_GRAVITY = (Verdict.PASS, Verdict.UNKNOWN, Verdict.FAIL)


def _of_kind(kind: Accelerator, gpus: Decimal | Unknown, space: str, share: Share) -> Outcome:
    at = f'spec.hard["{kind.quota_key}"]'
    if isinstance(gpus, Unknown):
        return undecided(f"{at} is not known yet")
    if gpus < share.least:
        return fails(
            f"{at} is {gpus}, but the queues of namespace {space} can give it {share.least} {kind.noun}s, borrowed ones included",
            f"raise it to {share.least} plus what runs there without a queue, or lower nominalQuota and borrowingLimit of the queues",
            at,
        )
    if not share.complete:
        return undecided(
            f"how much the queues of namespace {space} can give is not known: a quota is not known, or a queue is not in the input"
        )
    return PASSES


RULE = Rule(
    code="FLX055",
    severity=Severity.MEDIUM,
    judge_among=judge,
    why=(
        "Kueue does not know about ResourceQuotas: it admits the job and reserves quota for it, and the API server "
        "refuses its pods every time."
    ),
    remediation="Set the namespace's quota to at least what its queues guarantee and can borrow.",
    link="https://kueue.sigs.k8s.io/docs/concepts/cohort/",
)
