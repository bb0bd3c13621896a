"""Rules about Kueue's flavors and the pools that serve them."""

from decimal import Decimal

from flexspot.capacity.catalog.accelerators import RESOURCES
from flexspot.capacity.catalog.node_labels import COMPUTE_CLASS_LABEL, GKE_POOL_LABEL
from flexspot.capacity.values.verdict import NOT_APPLICABLE, PASSES, Outcome, Severity, fails, undecided
from flexspot.policies.inventory.node_offer import is_after_boot
from flexspot.policies.inventory.objects import ClusterQueue, Cohort, ComputeClassView, ResourceFlavor
from flexspot.policies.inventory.views import Autopilot, GpuPool, Inventory, NodeAutoProvisioning, Pool
from flexspot.policies.judging import Parameters, Rule
from flexspot.policies.pods.placement import described, may_be_provisioned, repelling
from flexspot.policies.pods.scheduling_options import SchedulingOption
from flexspot.policies.pools import pools_for
from flexspot.policies.values.field import UNKNOWN, Tri, Unknown, all_of, any_of, negated


@Rule(
    code="FLX023",
    severity=Severity.HIGH,
    why="Kueue turns the label into a selector; the autoscaler sees that no machine has it and starts none, while the job holds its quota.",
    remediation="Use labels that the cloud or the pool sets before a node boots; nvidia.com/gpu.product is written later.",
    link="https://kueue.sigs.k8s.io/docs/concepts/resource_flavor/#resourceflavor-labels",
    sources=("https://github.com/NVIDIA/k8s-device-plugin/blob/main/docs/gpu-feature-discovery/README.md",),
)
def flavor_label_known_only_after_boot(flavor: ResourceFlavor, _: Parameters, inventory: Inventory) -> Outcome:
    """A ResourceFlavor that selects nodes by a label that they get only after they boot.

    Passes if a pool declares the label and value for its nodes, because then the autoscaler knows it.
    """
    labels = flavor.spec.at("nodeLabels").parts()
    late = {key: value for key, value in labels.named if is_after_boot(key)}
    if not labels.complete:
        return undecided("spec.nodeLabels is not known yet")
    if not late:
        return NOT_APPLICABLE
    declared = any_of(pool.offer.carries(late) for pool in pools_for(Pool, late, inventory))
    if declared is True:
        return PASSES
    if declared is UNKNOWN or not inventory.can_judge_missing(Pool):
        return undecided("the input does not show whether a pool declares its labels")
    key = next(iter(late))
    return fails(
        f"software on the node sets {key} after boot, and no pool declares it: a pool with zero nodes never scales up for it",
        "select by a label that the autoscaler knows, such as karpenter.k8s.aws/instance-gpu-name or cloud.google.com/gke-accelerator",
        f'spec.nodeLabels["{key}"]',
    )


@Rule(
    code="FLX022",
    severity=Severity.HIGH,
    why="Kueue admits jobs to the flavor and reserves their quota, and their pods wait for nodes that no autoscaler will ever start.",
    remediation="Set the flavor's nodeLabels to those of a declared pool, using labels that its nodes have when they start.",
    link="https://kueue.sigs.k8s.io/docs/concepts/resource_flavor/#resourceflavor-labels",
    sources=("https://github.com/kubernetes-sigs/kueue/issues/931",),
)
def flavor_matches_no_pool(flavor: ResourceFlavor, _: Parameters, inventory: Inventory) -> Outcome:
    """A ResourceFlavor for nodes that no pool creates.

    A pool matches if its nodes may have all the labels before they boot. flavor-label-known-only-after-boot judges labels that come later.
    """
    labels = flavor.spec.at("nodeLabels").parts()
    wanted = {key: value for key, value in labels.named if not is_after_boot(key)}
    if labels.complete and (not wanted or (inventory.of(Autopilot) and GKE_POOL_LABEL not in wanted)):
        return NOT_APPLICABLE
    answers: list[Tri] = [pool.offer.carries(wanted) for pool in pools_for(Pool, wanted, inventory)]
    chosen = wanted.get(COMPUTE_CLASS_LABEL)
    if chosen is not None:
        answers += [
            UNKNOWN if UNKNOWN in (each.name.text(), chosen.text()) else each.name.text() == chosen.text()
            for each in inventory.of(ComputeClassView)
        ]
    matches = any_of(answers)
    if matches is True and labels.complete:
        return PASSES
    if not inventory.can_judge_missing(Pool):
        return undecided("no pool is in the input")
    if matches is not False or not labels.complete:
        return undecided("its nodeLabels, or those of a pool, are not known yet")
    if inventory.of(NodeAutoProvisioning) and GKE_POOL_LABEL not in wanted:
        return NOT_APPLICABLE
    texts = ", ".join(f"{key}={value.text()}" for key, value in sorted(wanted.items()))
    pools = ", ".join(sorted({pool.identity.name for pool in inventory.of(Pool)})) or "none"
    return fails(
        f"no pool has nodes with its nodeLabels {texts}; found: {pools}",
        "use labels that a pool's nodes have, or declare the pool",
        "spec.nodeLabels",
    )


@Rule(
    code="FLX033",
    severity=Severity.HIGH,
    why="Kueue admits jobs only by quota and adds only the flavor's tolerations: the pods hold GPU quota, but no node accepts them.",
    remediation="Make the flavor tolerate every taint of its pools except nvidia.com/gpu, or gate it with nodeTaints.",
    link="https://kueue.sigs.k8s.io/docs/concepts/resource_flavor/#resourceflavor-tolerations-for-automatic-scheduling",
    sources=("https://kueue.sigs.k8s.io/docs/concepts/resource_flavor/#resourceflavor-taints",),
)
def flavor_without_needed_toleration(flavor: ResourceFlavor, _: Parameters, inventory: Inventory) -> Outcome:
    """A ResourceFlavor all of whose pools have taints that keep away the work it admits.

    A taint listed in nodeTaints passes, because Kueue skips the flavor for pods that do not tolerate it.
    """
    labels, added, gated = (flavor.spec.at(field).parts() for field in ("nodeLabels", "tolerations", "nodeTaints"))
    if labels.complete and not labels.named:
        return NOT_APPLICABLE
    option = SchedulingOption(dict(labels.named), (*added.fields, *gated.fields), labels.complete and added.complete and gated.complete)
    candidates = pools_for(GpuPool, option.selector, inventory)
    pools = [(pool, all_of([pool.concerned, pool.offer.carries(option.selector)])) for pool in candidates]
    possible = [(pool, suits, *repelling(option, pool)) for pool, suits in pools if suits is not False]
    if not possible or may_be_provisioned(option, inventory):
        return NOT_APPLICABLE
    lands = any_of(all_of([suits, negated(away)]) for _, suits, away, _ in possible)
    if lands is True:
        return PASSES
    kept = next(((pool, taint) for pool, suits, away, taint in possible if suits is True and away is True and taint), None)
    if lands is UNKNOWN or kept is None or not labels.complete:
        return undecided("its tolerations, its nodeLabels, or the taints of its pools are not known yet")
    pool, taint = kept
    return fails(
        f"its nodes are in {pool.identity.described}, whose taint {described(taint)} it neither tolerates nor lists in spec.nodeTaints",
        f"add {{key: {taint.at('key').text()}, operator: Exists}} to spec.tolerations; or add the taint to spec.nodeTaints, if only pods "
        "that tolerate it themselves may use the flavor",
        "spec.tolerations",
    )


@Rule(
    code="FLX021",
    severity=Severity.HIGH,
    why="Kueue admits only by quota: jobs beyond the pools' ceilings are admitted, hold their quota, and wait until they time out.",
    remediation="Keep the sum of a flavor's nominal quotas at or below the GPUs that its pools can have.",
    link="https://kueue.sigs.k8s.io/docs/concepts/cluster_queue/#flavors-and-resources",
    sources=("https://github.com/kubernetes-sigs/kueue/issues/9048",),
)
def queue_quota_above_capacity(flavor: ResourceFlavor, _: Parameters, inventory: Inventory) -> Outcome:  # noqa: PLR0911 -- a list of decisions, one a line
    """Queues that promise more GPUs of a flavor than its pools can have.

    Compares the sum of nominal quotas with the sum of the pools' ceilings. Quota that may be borrowed is not promised.
    """
    name, labels = flavor.name.text(), flavor.spec.at("nodeLabels").parts()
    if name is UNKNOWN or not labels.complete:
        return undecided("its name, or its nodeLabels, are not known yet")
    quotas = inventory.once("GPU quotas by flavor", None, lambda: _quotas(inventory)).get(str(name), {})
    known = {queue: amount for queue, amount in quotas.items() if isinstance(amount, Decimal) and amount}
    if not quotas or not labels.named:
        return NOT_APPLICABLE
    wanted = dict(labels.named)
    elsewhere = (inventory.of(NodeAutoProvisioning) or inventory.of(Autopilot)) and GKE_POOL_LABEL not in wanted
    if elsewhere or (COMPUTE_CLASS_LABEL in wanted and inventory.of(ComputeClassView)):
        return NOT_APPLICABLE
    serving = [(pool, pool.offer.carries(wanted)) for pool in pools_for(Pool, wanted, inventory)]
    amounts = [pool.gpus for pool, answer in serving if answer is not False]
    if not amounts:
        return undecided("no pool with its nodeLabels is in the input")
    if None in amounts:
        return NOT_APPLICABLE
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
    """Return the nominal GPU quota of each queue, by flavor and queue."""
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
    """Return the sum. A flavor's nodes have a single kind of GPU, so the amounts of other kinds are 0."""
    known = [each for each in amounts if isinstance(each, Decimal)]
    return UNKNOWN if UNKNOWN in amounts else (sum(known, Decimal(0)) if known else None)
