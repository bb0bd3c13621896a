"""Two programs that drain the same nodes."""

from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, not_applicable, undecided
from flexspot.policies.inventory.objects import KarpenterControllerView, KarpenterNodePool, TerminationHandler
from flexspot.policies.inventory.views import Inventory, Pool
from flexspot.policies.judging import Cloud, Parameters, Rule
from flexspot.policies.pools import pools_for
from flexspot.policies.values.field import UNKNOWN, Tri, any_of

_OF_NODE_GROUPS = frozenset({"eks.amazonaws.com/nodegroup", "eks.amazonaws.com/capacityType"})
"""Labels that EKS gives the nodes of its node groups, and Karpenter's nodes do not have."""


def judge(handler: TerminationHandler, _: Parameters, inventory: Inventory) -> Outcome:
    """Fails where the handler drains whatever node it runs on, and one of Karpenter's nodes may be such a one."""
    if not inventory.of(KarpenterControllerView) and not inventory.of(KarpenterNodePool):
        return not_applicable("Karpenter is not in the input")
    if handler.drains is False:
        return PASSES
    watched, where = _watches_karpenters(handler, inventory)
    if watched is False:
        return PASSES
    if UNKNOWN in (handler.drains, watched):
        return undecided("whether it drains Karpenter's nodes is not known: its settings, or the nodes that it selects, are not known")
    return fails(
        f"it drains nodes that AWS reclaims, and so does Karpenter: {where}",
        "remove the handler, and give Karpenter its interruption queue; or confine it to node groups with a nodeSelector on "
        "eks.amazonaws.com/nodegroup",
    )


def _watches_karpenters(handler: TerminationHandler, inventory: Inventory) -> tuple[Tri, str]:
    """Whether a node of Karpenter has the labels that the handler selects; where no NodePool was given, it may have any."""
    labels = handler.selector.parts()
    wanted = {key: value for key, value in labels.named if key != "kubernetes.io/os"}
    if wanted.keys() & _OF_NODE_GROUPS:
        return False, ""
    if labels.complete and not wanted:
        return True, "it runs on every node"
    of_karpenter = {each.identity for each in inventory.of(KarpenterNodePool)}
    pools = [(pool.offer.carries(wanted), pool) for pool in pools_for(Pool, wanted, inventory) if pool.identity in of_karpenter]
    found = any_of([*(answer for answer, _ in pools), *([] if of_karpenter and labels.complete else [UNKNOWN])])
    named = (f"nodes of {pool.identity.described} have the labels that it selects" for answer, pool in pools if answer is found)
    return found, next(named, "")


RULE = Rule(
    code="FLX029",
    severity=Severity.MEDIUM,
    clouds=(Cloud.EKS,),
    judge_among=judge,
    why="The two act on the same events without coordination: drains conflict, and nodes are replaced unnecessarily.",
    remediation="Remove the handler and let Karpenter handle interruptions through its queue, or keep the handler off Karpenter's nodes.",
    link="https://karpenter.sh/docs/faq/#interruption-handling",
    sources=("Values and templates of config/helm/aws-node-termination-handler of aws/aws-node-termination-handler.",),
)
