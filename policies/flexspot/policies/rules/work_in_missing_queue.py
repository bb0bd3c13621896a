"""Work that names a queue that does not exist."""

from flexspot.capacity.catalog.node_labels import QUEUE_LABEL
from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, not_applicable, undecided
from flexspot.policies.inventory.objects import LocalQueue
from flexspot.policies.inventory.views import Inventory, PodSet
from flexspot.policies.judging import Parameters, Rule
from flexspot.policies.values.field import UNKNOWN
from flexspot.policies.values.finding import listed


def judge(pods: PodSet, _: Parameters, inventory: Inventory) -> Outcome:
    """That it is missing shows beside other queues of its namespace, or where the input is all there is.

    Where the work or a queue names no namespace, whoever applies it does, so that the name alone counts.
    """
    named = pods.queue_labels.at(QUEUE_LABEL)
    name, space = named.text(), pods.namespace.text()
    if named.absent or name == "":
        return not_applicable("it names no queue")
    if UNKNOWN in (name, space):
        return undecided("its queue, or its namespace, is not known yet")
    queues = inventory.by("written namespace", LocalQueue, lambda each: each.fields.at("metadata", "namespace").text())
    of_it = (*queues.get(space, ()), *queues.get(None, ())) if space else inventory.of(LocalQueue)
    near = {each.name.text() for each in of_it}
    if name in near:
        return PASSES
    if UNKNOWN in near or UNKNOWN in queues or not (inventory.closed or (near and not inventory.excerpt)):
        return not_applicable("no queue of its namespace is in the input")
    there = listed(map(str, near)) or "none"
    where = f"namespace {space}" if space else "the input"
    return fails(
        f"its label {QUEUE_LABEL} is {name}, but {where} has no such LocalQueue; found: {there}",
        f"name a LocalQueue that exists, or declare {name}",
        "metadata.labels",
    )


RULE = Rule(
    code="FLX068",
    severity=Severity.HIGH,
    judge_among=judge,
    why="Kueue keeps the work suspended until a LocalQueue with that name exists, and only a condition on its Workload says why.",
    remediation="Set the label kueue.x-k8s.io/queue-name to a LocalQueue in the work's own namespace.",
    link="https://kueue.sigs.k8s.io/docs/tasks/run/jobs/",
    sources=("kubernetes-sigs/kueue v0.19, pkg/cache/queue/manager.go: a workload of a LocalQueue that does not exist is not queued.",),
)
