"""Rules about Karpenter's controller and NodePools: handling of interruptions, and removal of nodes."""

import re

from flexspot.capacity.values.verdict import NOT_APPLICABLE, PASSES, Outcome, Severity, fails, undecided
from flexspot.policies.inventory.objects import KarpenterControllerView, KarpenterNodePool, TerminationHandler
from flexspot.policies.inventory.views import GpuPool, Inventory, Pool
from flexspot.policies.judging import Cloud, Parameter, Parameters, Rule
from flexspot.policies.pools import gpu_pool_of, pools_for
from flexspot.policies.values.field import UNKNOWN, Tri, any_of


@Rule(
    code="FLX020",
    severity=Severity.HIGH,
    clouds=(Cloud.EKS,),
    why="EC2 gives two minutes' notice before it reclaims a Spot instance; without the queue, Karpenter does not "
    "receive it and pods are cut off.",
    remediation="Give Karpenter an SQS queue with the five EventBridge rules from its documentation, and name it in "
    "settings.interruptionQueue.",
    link="https://karpenter.sh/docs/concepts/disruption/#interruption",
)
def no_interruption_queue(controller: KarpenterControllerView, _: Parameters, inventory: Inventory) -> Outcome:
    """Karpenter on Spot capacity without a queue for interruption notices.

    Not applicable without Spot capacity, which needs no queue.
    """
    if controller.has_queue is True:
        return PASSES
    if controller.has_queue is UNKNOWN:
        return undecided(f"{controller.queue_field} is not known yet")
    of_karpenter = {each.identity for each in inventory.of(KarpenterNodePool)}
    spot = [pool for pool in inventory.of(Pool) if pool.identity in of_karpenter and pool.spot is not False]
    if any_of(pool.spot for pool in spot) is True:
        pool = next(pool for pool in spot if pool.spot is True)
        return fails(
            f"{controller.queue_field} is not set, but NodePool {pool.identity.name} has Spot capacity: nothing drains its nodes",
            f"set {controller.queue_field} to the SQS queue that receives EC2's interruption events",
            controller.queue_field,
        )
    if spot or not inventory.can_judge_missing(KarpenterNodePool):
        return undecided(f"{controller.queue_field} is not set; whether a NodePool has Spot capacity is not known")
    return NOT_APPLICABLE


_OF_NODE_GROUPS = frozenset({"eks.amazonaws.com/nodegroup", "eks.amazonaws.com/capacityType"})


"""Labels of nodes in EKS node groups. Karpenter's nodes do not have them."""


@Rule(
    code="FLX029",
    severity=Severity.MEDIUM,
    clouds=(Cloud.EKS,),
    why="The two act on the same events without coordination: drains conflict, and nodes are replaced unnecessarily.",
    remediation="Remove the handler and let Karpenter handle interruptions through its queue, or keep the handler off Karpenter's nodes.",
    link="https://karpenter.sh/docs/faq/#interruption-handling",
    sources=("Values and templates of config/helm/aws-node-termination-handler of aws/aws-node-termination-handler.",),
)
def termination_handler_beside_karpenter(handler: TerminationHandler, _: Parameters, inventory: Inventory) -> Outcome:
    """Two programs that drain the same nodes.

    Fails if the handler drains the node it runs on and may run on a node of Karpenter's.
    """
    if not inventory.of(KarpenterControllerView) and not inventory.of(KarpenterNodePool):
        return NOT_APPLICABLE
    if handler.drains is False:
        return PASSES
    runs_there, where = _runs_on_karpenter_nodes(handler, inventory)
    if runs_there is False:
        return PASSES
    if UNKNOWN in (handler.drains, runs_there):
        return undecided("whether it drains Karpenter's nodes is not known: its settings, or the nodes that it selects, are not known")
    return fails(
        f"it drains nodes that AWS reclaims, and so does Karpenter: {where}",
        "remove the handler, and give Karpenter its interruption queue; or confine it to node groups with a nodeSelector on "
        "eks.amazonaws.com/nodegroup",
    )


def _runs_on_karpenter_nodes(handler: TerminationHandler, inventory: Inventory) -> tuple[Tri, str]:
    """Return whether Karpenter's nodes may have the labels that the handler selects, and the reason. UNKNOWN without a NodePool in the
    input.
    """
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


AUTO_MODE_HOURS = 504


"""EKS Auto Mode ends every node after at most 21 days. Same as flexspot/capacity/catalog/auto_mode.yaml, whose models lint does not load.
"""


_HOURS_PER_DAY = 24


_PER_HOUR = {"h": 1, "s": 3600}


@Rule(
    code="FLX019",
    severity=Severity.MEDIUM,
    clouds=(Cloud.EKS,),
    why="WhenEmpty does not stop expiry: after 30 days by default Karpenter drains a node in the middle of a run.",
    remediation="Set expireAfter to Never for pools whose work must not be moved, and replace their nodes when they are empty. In EKS Auto "
    "Mode, where AWS ends every node after 21 days, set it to 480h.",
    link="https://karpenter.sh/docs/concepts/disruption/#automated-forceful-methods",
    parameters=(
        Parameter("words", ("train",), "Words in a pool's name, node labels or taints which show that its work must not be moved."),
    ),
)
def training_nodes_expire(pool: KarpenterNodePool, parameters: Parameters, inventory: Inventory) -> Outcome:
    """A pool for work that must not be moved, but whose nodes are removed at a certain age.

    A pool is for such work if it removes only empty nodes, or if its name, labels or taints contain one of the words.
    """
    gpu = gpu_pool_of(pool.identity, inventory)
    if gpu is None:
        return NOT_APPLICABLE
    protected = any_of(
        [pool.spec.at("disruption", "consolidationPolicy").equals("WhenEmpty"), _named(pool, gpu, parameters.texts("words"))]
    )
    if protected is False:
        return NOT_APPLICABLE
    expiry = pool.spec.at("template", "spec", "expireAfter")
    if expiry.equals("Never") is True or _within_a_day_of_auto_mode(pool):
        return PASSES
    if UNKNOWN in (protected, expiry.text(), gpu.concerned):
        return undecided("spec.template.spec.expireAfter, or what the pool is for, is not known yet")
    written = expiry.text() or "absent, which means 720h"
    return fails(
        f"spec.template.spec.expireAfter is {written}: nodes of that age are drained, whatever runs on them and whatever budgets say",
        "set spec.template.spec.expireAfter to Never",
        "spec.template.spec.expireAfter",
    )


def _within_a_day_of_auto_mode(pool: KarpenterNodePool) -> bool:
    """Return whether the pool's limit is at most a day below that of EKS Auto Mode, which applies anyway."""
    spec = pool.spec.at("template", "spec")
    hours = re.fullmatch(r"(\d+)(h|s)", str(spec.at("expireAfter").text()))
    if hours is None or spec.at("nodeClassRef", "group").equals("eks.amazonaws.com") is not True:
        return False
    return int(hours[1]) / _PER_HOUR[hours[2]] >= AUTO_MODE_HOURS - _HOURS_PER_DAY


def _named(pool: KarpenterNodePool, gpu: GpuPool, words: tuple[str, ...]) -> Tri:
    labels = pool.spec.at("template", "metadata", "labels").parts()
    texts = [
        pool.name.text(),
        *(value.text() for value in labels.fields),
        *(text for taint in gpu.taints.fields for text in (taint.at("key").text(), taint.at("value").text())),
    ]
    found = any(word in text for text in texts if isinstance(text, str) for word in words)
    return found or (UNKNOWN if UNKNOWN in texts else False)
