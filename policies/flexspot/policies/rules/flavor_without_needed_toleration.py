"""A ResourceFlavor all of whose pools have taints that keep away the work it admits."""

from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, not_applicable, undecided
from flexspot.policies.inventory.objects import ResourceFlavor
from flexspot.policies.inventory.views import GpuPool, Inventory
from flexspot.policies.judging import Parameters, Rule
from flexspot.policies.pods.placement import may_be_provisioned, repelling
from flexspot.policies.pods.scheduling_options import SchedulingOption
from flexspot.policies.pools import pools_for
from flexspot.policies.values.field import UNKNOWN, all_of, any_of, negated


def judge(flavor: ResourceFlavor, _: Parameters, inventory: Inventory) -> Outcome:
    """A taint that the flavor lists in nodeTaints is seen to: Kueue passes over the flavor for pods that do not tolerate it."""
    labels, added, gated = (flavor.spec.at(field).parts() for field in ("nodeLabels", "tolerations", "nodeTaints"))
    if labels.complete and not labels.named:
        return not_applicable("it selects no nodes")
    option = SchedulingOption(dict(labels.named), (*added.fields, *gated.fields), labels.complete and added.complete and gated.complete)
    candidates = pools_for(GpuPool, option.selector, inventory)
    pools = [(pool, all_of([pool.concerned, pool.offer.carries(option.selector)])) for pool in candidates]
    possible = [(pool, suits, *repelling(option, pool)) for pool, suits in pools if suits is not False]
    if not possible or may_be_provisioned(option, inventory):
        return not_applicable("no GPU pool in the input has its nodeLabels, or GKE may create other nodes for it")
    lands = any_of(all_of([suits, negated(away)]) for _, suits, away, _ in possible)
    if lands is True:
        return PASSES
    kept = next(((pool, taint) for pool, suits, away, taint in possible if suits is True and away is True and taint), None)
    if lands is UNKNOWN or kept is None or not labels.complete:
        return undecided("its tolerations, its nodeLabels, or the taints of its pools are not known yet")
    pool, taint = kept
    return fails(
        f"its nodes are in {pool.identity.described}, whose taint {taint.described} it neither tolerates nor lists in spec.nodeTaints",
        f"add {{key: {taint.key.text()}, operator: Exists}} to spec.tolerations; or add the taint to spec.nodeTaints, if only pods that "
        "tolerate it themselves may use the flavor",
        "spec.tolerations",
    )


RULE = Rule(
    code="FLX033",
    severity=Severity.HIGH,
    judge_among=judge,
    why="Kueue admits jobs only by quota and adds only the flavor's tolerations: the pods hold GPU quota, but no node accepts them.",
    remediation="Make the flavor tolerate every taint of its pools except nvidia.com/gpu, or gate it with nodeTaints.",
    link="https://kueue.sigs.k8s.io/docs/concepts/resource_flavor/#resourceflavor-tolerations-for-automatic-scheduling",
    sources=("https://kueue.sigs.k8s.io/docs/concepts/resource_flavor/#resourceflavor-taints",),
)
