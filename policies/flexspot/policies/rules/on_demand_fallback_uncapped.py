"""GPU capacity that falls back to on-demand when the cheaper type runs out, without a ceiling."""

from flexspot.capacity.catalog.node_labels import CAPACITY_TYPE_LABEL
from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, not_applicable, undecided
from flexspot.policies.inventory.node_offer import allows
from flexspot.policies.inventory.objects import ComputeClassView, KarpenterNodePool
from flexspot.policies.inventory.views import Autopilot, GkeNodePool, Inventory, NodeAutoProvisioning
from flexspot.policies.judging import Parameters, Rule
from flexspot.policies.pools import creates_pools, gpu_pool_of, made_on_demand
from flexspot.policies.values.field import UNKNOWN, Tri, all_of, any_of, negated


def judge(capacity: KarpenterNodePool | ComputeClassView, _: Parameters, inventory: Inventory) -> Outcome:
    """A NodePool that takes both; a compute class whose lower priority lets GKE make on-demand pools. Autopilot makes every pool so."""
    if isinstance(capacity, KarpenterNodePool):
        return _node_pool(capacity, inventory)
    if inventory.of(Autopilot):
        return not_applicable("on Autopilot no pool has a ceiling; Kueue's quota and the project's quota are the limits")
    # Autopilot has no node pools that a priority could name.
    names_pools = any(not priority.at("nodepools").absent for priority in capacity.spec.at("priorities").parts().fields)
    return _compute_class(capacity, standard=names_pools or inventory.tells(GkeNodePool, NodeAutoProvisioning))


def _node_pool(pool: KarpenterNodePool, inventory: Inventory) -> Outcome:
    gpus = gpu_pool_of(pool.identity, inventory)
    if gpus is None:
        return not_applicable("it creates no GPU nodes")
    requirements = pool.spec.at("template", "spec", "requirements").parts()
    # Without a requirement Karpenter takes what is cheapest of all: Spot first, then on-demand.
    of_capacity = [each for each in requirements.fields if each.at("key").equals(CAPACITY_TYPE_LABEL) is not False]
    known: list[Tri] = [gpus.concerned, True if requirements.complete else UNKNOWN]
    both = all_of([*known, *(allows(each, kind) for each in of_capacity for kind in ("spot", "on-demand"))])
    if both is UNKNOWN:
        return undecided("its requirements are not fully known yet")
    if both is False:
        return PASSES
    how = f"its requirement on {CAPACITY_TYPE_LABEL} allows both" if of_capacity else f"it has no requirement on {CAPACITY_TYPE_LABEL}"
    return fails(
        f"{how}: when Spot runs out, its nodes are on-demand, up to all that spec.limits allows",
        f"require {{key: {CAPACITY_TYPE_LABEL}, operator: In, values: [spot]}}, and give on-demand its own NodePool, with a lower weight "
        "and its own limit",
        "spec.template.spec.requirements",
    )


def _compute_class(compute_class: ComputeClassView, *, standard: bool) -> Outcome:
    priorities = compute_class.spec.at("priorities").parts()
    answers = [all_of([creates_pools(compute_class), made_on_demand(priority)]) for priority in priorities.fields]
    # A first priority falls back from nothing, and neither do those that only follow priorities like it.
    lower = [all_of([answer, any_of(negated(each) for each in answers[:place])]) for place, answer in enumerate(answers)]
    if True in lower and not standard:
        return undecided("whether its cluster is an Autopilot cluster, where no pool has a ceiling, is not known")
    if True in lower:
        at = f"spec.priorities[{lower.index(True)}]"
        return fails(
            f"{at} lets GKE create on-demand GPU pools when the priorities above it have no capacity, and such pools have no ceiling",
            f"have {at} name an on-demand node pool with a maximum: {{nodepools: [POOL]}}",
            at,
        )
    if UNKNOWN in lower or not priorities.complete:
        return undecided("spec.priorities, or spec.nodePoolAutoCreation, is not fully known yet")
    return PASSES if len(answers) > 1 else not_applicable("it has no priority to fall back to")


RULE = Rule(
    code="FLX032",
    severity=Severity.MEDIUM,
    judge_among=judge,
    why="A Spot shortage, which may last for days, buys the same GPUs at full price instead, and no one is asked.",
    remediation="Make on-demand an explicit choice: a separate pool, with its own maximum, after the cheaper ones.",
    link="https://karpenter.sh/docs/faq/#what-if-there-is-no-spot-capacity-will-karpenter-use-on-demand",
    sources=("Karpenter AWS provider 1.14.1, pkg/providers/instance: reserved, then Spot, then on-demand, of what is allowed.",),
)
