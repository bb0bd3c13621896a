"""A LocalQueue whose ClusterQueue does not exist."""

from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, not_applicable, undecided
from flexspot.policies.inventory.objects import ClusterQueue, LocalQueue, named
from flexspot.policies.inventory.views import Inventory
from flexspot.policies.judging import Parameters, Rule
from flexspot.policies.values.field import UNKNOWN, any_of


def judge(queue: LocalQueue, _: Parameters, inventory: Inventory) -> Outcome:
    """Kueue takes the queue, and keeps its jobs until a ClusterQueue of that name comes."""
    target = queue.spec.at("clusterQueue")
    name = target.text()
    if name is None:
        return not_applicable("it names no ClusterQueue, which the API server refuses")
    if name is UNKNOWN:
        return undecided("spec.clusterQueue is not known yet")
    found = any_of(each.name.equals(name) for each in named(ClusterQueue, name, inventory))
    if found is True:
        return PASSES
    if found is UNKNOWN or not inventory.tells(ClusterQueue):
        return undecided(f"ClusterQueue {name} is not in the input, which may be incomplete")
    there = ", ".join(sorted(each.identity.name for each in inventory.of(ClusterQueue))) or "none"
    return fails(
        f"spec.clusterQueue is {name}, which does not exist; found: {there}",
        f"declare ClusterQueue {name}; or recreate the LocalQueue with the right name, as spec.clusterQueue is immutable",
        "spec.clusterQueue",
    )


RULE = Rule(
    code="FLX038",
    severity=Severity.HIGH,
    judge_among=judge,
    why="Every job in the namespace stays suspended forever, and only a condition on the LocalQueue says why.",
    remediation="Set spec.clusterQueue to a declared ClusterQueue.",
    link="https://kueue.sigs.k8s.io/docs/concepts/local_queue/",
    sources=("Kueue 0.19, apis/kueue/v1beta2/localqueue_types.go: spec.clusterQueue is immutable.",),
)
