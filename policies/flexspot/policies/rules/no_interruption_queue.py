"""Karpenter on Spot capacity without a queue for interruption notices."""

from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, not_applicable, undecided
from flexspot.policies.inventory.objects import KarpenterControllerView, KarpenterNodePool
from flexspot.policies.inventory.views import Inventory, Pool
from flexspot.policies.judging import Cloud, Parameters, Rule
from flexspot.policies.values.field import UNKNOWN, any_of


def judge(controller: KarpenterControllerView, _: Parameters, inventory: Inventory) -> Outcome:
    """Spot capacity without a queue fails; without Spot capacity no queue is needed."""
    if controller.told is True:
        return PASSES
    if controller.told is UNKNOWN:
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
    if spot or not inventory.tells(KarpenterNodePool):
        return undecided(f"{controller.queue_field} is not set; whether a NodePool has Spot capacity is not known")
    return not_applicable("no NodePool has Spot capacity")


RULE = Rule(
    code="FLX020",
    severity=Severity.HIGH,
    clouds=(Cloud.EKS,),
    judge_among=judge,
    why=(
        "EC2 gives two minutes' notice before it reclaims a Spot instance; without the queue, Karpenter does not "
        "receive it and pods are cut off."
    ),
    remediation=(
        "Give Karpenter an SQS queue with the five EventBridge rules from its documentation, and name it in settings.interruptionQueue."
    ),
    link="https://karpenter.sh/docs/concepts/disruption/#interruption",
)
