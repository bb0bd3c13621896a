"""Queues that promise more GPUs of a flavor than its pools can have."""

from decimal import Decimal

from flexspot.capacity.catalog.accelerators import RESOURCES
from flexspot.capacity.catalog.node_labels import COMPUTE_CLASS_LABEL, GKE_POOL_LABEL
from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, not_applicable, undecided
from flexspot.policies.inventory.objects import ClusterQueue, Cohort, ComputeClassView, ResourceFlavor
from flexspot.policies.inventory.views import Autopilot, Inventory, NodeAutoProvisioning, Pool
from flexspot.policies.judging import Parameters, Rule
from flexspot.policies.pools import pools_for
from flexspot.policies.values.field import UNKNOWN, Unknown


def judge(flavor: ResourceFlavor, _: Parameters, inventory: Inventory) -> Outcome:  # noqa: PLR0911 -- a list of decisions, one a line
    """The sum of nominal quotas, which are promised all at once, against the sum of the pools' ceilings. Borrowing promises nothing."""
    name, labels = flavor.name.text(), flavor.spec.at("nodeLabels").parts()
    if name is UNKNOWN or not labels.complete:
        return undecided("its name, or its nodeLabels, are not known yet")
    quotas = inventory.once("GPU quotas by flavor", None, lambda: _quotas(inventory)).get(str(name), {})
    known = {queue: amount for queue, amount in quotas.items() if isinstance(amount, Decimal) and amount}
    if not quotas or not labels.named:
        return not_applicable("no queue in the input has quota of its GPUs, or it selects no nodes")
    wanted = dict(labels.named)
    elsewhere = (inventory.of(NodeAutoProvisioning) or inventory.of(Autopilot)) and GKE_POOL_LABEL not in wanted
    if elsewhere or (COMPUTE_CLASS_LABEL in wanted and inventory.of(ComputeClassView)):
        return not_applicable("GKE may create nodes for it outside the pools")
    serving = [(pool, pool.offer.carries(wanted)) for pool in pools_for(Pool, wanted, inventory)]
    amounts = [pool.gpus for pool, answer in serving if answer is not False]
    if not amounts:
        return undecided("no pool with its nodeLabels is in the input")
    if None in amounts:
        return not_applicable("one of its pools has no ceiling in GPUs")
    if UNKNOWN in amounts:
        return undecided("the ceiling of one of its pools is not known yet")
    promised, most = sum(known.values()), sum(amount for amount in amounts if isinstance(amount, Decimal))
    if promised > most:
        by = ", ".join(f"{queue} {amount}" for queue, amount in sorted(known.items()))
        resource = next(pool.resources[0] for pool, answer in serving if answer is not False)
        pools = ", ".join(sorted(pool.identity.name for pool, answer in serving if answer is not False))
        return fails(
            f"nominal quotas for it add up to {promised} {resource} ({by}), but its pools ({pools}) can have {most} at most",
            f"lower the nominal quotas to {most} in total, or raise the ceiling of the pools",
        )
    return undecided("a quota, or a pool that serves it, is not known yet") if UNKNOWN in quotas.values() else PASSES


def _quotas(inventory: Inventory) -> dict[str, dict[str, Decimal | Unknown | None]]:
    """The nominal GPU quota of each queue, by flavor and queue."""
    found: dict[str, dict[str, Decimal | Unknown | None]] = {}
    for queue in (*inventory.of(ClusterQueue), *inventory.of(Cohort)):
        amounts: dict[str, list[Decimal | Unknown | None]] = {}
        for group in queue.spec.at("resourceGroups").parts().fields:
            for flavor in group.at("flavors").parts().fields:
                of_gpus = [each for each in flavor.at("resources").parts().fields if each.at("name").text() in RESOURCES]
                amounts.setdefault(str(flavor.at("name").text()), []).extend(each.at("nominalQuota").number() for each in of_gpus)
        for name, listed in amounts.items():
            if listed:
                found.setdefault(name, {})[f"{queue.identity.kind} {queue.identity.name}"] = _total(listed)
    return found


def _total(amounts: list[Decimal | Unknown | None]) -> Decimal | Unknown | None:
    """A flavor's nodes have one kind of GPUs; of the others the queue has 0."""
    known = [each for each in amounts if isinstance(each, Decimal)]
    return UNKNOWN if UNKNOWN in amounts else (sum(known, Decimal(0)) if known else None)


RULE = Rule(
    code="FLX021",
    severity=Severity.HIGH,
    judge_among=judge,
    why="Kueue admits only by quota: jobs beyond the pools' ceilings are admitted, hold their quota, and wait until they time out.",
    remediation="Keep the sum of a flavor's nominal quotas at or below the GPUs that its pools can have.",
    link="https://kueue.sigs.k8s.io/docs/concepts/cluster_queue/#flavors-and-resources",
    sources=("https://github.com/kubernetes-sigs/kueue/issues/9048",),
)
