"""A ClusterQueue to which no namespace may submit."""

from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, undecided
from flexspot.policies.inventory.objects import ClusterQueue
from flexspot.policies.judging import Parameters, Rule


def judge(queue: ClusterQueue, _: Parameters) -> Outcome:
    """An absent selector selects nothing; an empty one, `{}`, selects every namespace."""
    selector = queue.spec.at("namespaceSelector")
    if not selector.known:
        return undecided("spec.namespaceSelector is not known yet")
    if selector.absent:
        return fails("it has no namespaceSelector, so Kueue admits no workload to it", at="spec")
    return PASSES


RULE = Rule(
    code="FLX007",
    severity=Severity.HIGH,
    judge=judge,
    why="The API server accepts the queue, jobs are suspended in it, and none is ever admitted: it looks like a GPU shortage.",
    remediation="Set spec.namespaceSelector to the namespaces that may submit, or to {} for all of them.",
    link="https://kueue.sigs.k8s.io/docs/concepts/cluster_queue/#namespace-selector",
)
