"""A ResourceFlavor for nodes that no pool creates."""

from flexspot.capacity.catalog.node_labels import COMPUTE_CLASS_LABEL, GKE_POOL_LABEL
from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, not_applicable, undecided
from flexspot.policies.inventory.node_offer import is_after_boot
from flexspot.policies.inventory.objects import ComputeClassView, ResourceFlavor
from flexspot.policies.inventory.views import Autopilot, Inventory, NodeAutoProvisioning, Pool
from flexspot.policies.judging import Parameters, Rule
from flexspot.policies.pools import pools_for
from flexspot.policies.values.field import UNKNOWN, Field, Tri, any_of


def judge(flavor: ResourceFlavor, _: Parameters, inventory: Inventory) -> Outcome:
    """A pool matches if its nodes may have all the labels before they boot; labels that come later are another rule's."""
    labels = flavor.spec.at("nodeLabels").parts()
    wanted = {key: value for key, value in labels.named if not is_after_boot(key)}
    if labels.complete and (none_to_match := _matches_none(wanted, inventory)):
        return not_applicable(none_to_match)
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
    if not inventory.tells(Pool):
        return undecided("no pool is in the input")
    if matches is not False or not labels.complete:
        return undecided("its nodeLabels, or those of a pool, are not known yet")
    if inventory.of(NodeAutoProvisioning) and GKE_POOL_LABEL not in wanted:
        return not_applicable("node auto-provisioning may create its nodes")
    texts = ", ".join(f"{key}={value.text()}" for key, value in sorted(wanted.items()))
    pools = ", ".join(sorted({pool.identity.name for pool in inventory.of(Pool)})) or "none"
    return fails(
        f"no pool has nodes with its nodeLabels {texts}; found: {pools}",
        "use labels that a pool's nodes have, or declare the pool",
        "spec.nodeLabels",
    )


def _matches_none(wanted: dict[str, Field], inventory: Inventory) -> str | None:
    """Why the flavor needs no pool that is declared; None where it does."""
    if not wanted:
        return "it selects no nodes by labels known before boot"
    by_autopilot = inventory.of(Autopilot) and GKE_POOL_LABEL not in wanted
    return "Autopilot creates the nodes that its labels request" if by_autopilot else None


RULE = Rule(
    code="FLX022",
    severity=Severity.HIGH,
    judge_among=judge,
    why="Kueue admits jobs to the flavor and reserves their quota, and their pods wait for nodes that no autoscaler will ever start.",
    remediation="Set the flavor's nodeLabels to those of a declared pool, using labels that its nodes have when they start.",
    link="https://kueue.sigs.k8s.io/docs/concepts/resource_flavor/#resourceflavor-labels",
    sources=("https://github.com/kubernetes-sigs/kueue/issues/931",),
)
