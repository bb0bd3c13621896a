"""A GPU job that bypasses the queues."""

from flexspot.capacity.catalog.node_labels import QUEUE_LABEL
from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, not_applicable, undecided
from flexspot.policies.inventory.objects import ClusterQueue, LocalQueue
from flexspot.policies.inventory.views import Inventory, PodSet
from flexspot.policies.judging import Parameter, Parameters, Rule
from flexspot.policies.pods.scheduling_options import queue_of
from flexspot.policies.values.field import UNKNOWN

UNQUEUED = f"it asks for GPUs and has no label {QUEUE_LABEL}, so that no quota counts it"
UNQUEUED_REMEDY = f"add the label {QUEUE_LABEL} with the name of a LocalQueue of its namespace"


def judge(pods: PodSet, parameters: Parameters, inventory: Inventory) -> Outcome:  # noqa: PLR0911 -- a list of decisions, one a line
    """Only kinds that run to an end: what serves for ever would never give its quota back."""
    if pods.kind not in parameters.texts("kinds"):
        return not_applicable("not a kind that Kueue queues")
    asks = pods.asks_for_gpus
    if exempt := pods.not_gpu_work:
        return not_applicable(exempt)
    if pods.object_spec.at("managedBy").known and not pods.object_spec.at("managedBy").absent:
        return not_applicable("another controller runs it")
    queue = queue_of(pods, inventory)
    if not pods.queue_labels.known or asks is UNKNOWN:
        return undecided("its labels, or its GPU requests, are not known yet")
    if not queue.known or queue.text() not in {None, ""}:
        return PASSES
    if not inventory.tells(ClusterQueue, LocalQueue):
        return undecided("no queue is in the input")
    if pods.namespace.text() is UNKNOWN and inventory.of(LocalQueue):
        return undecided("its namespace, whose queue may take it, is not known yet")
    return fails(UNQUEUED, UNQUEUED_REMEDY, "metadata.labels")


RULE = Rule(
    code="FLX005",
    severity=Severity.HIGH,
    judge_among=judge,
    why="A job outside the queues takes GPUs that quotas have promised to others.",
    remediation="Give the job the label kueue.x-k8s.io/queue-name, or its namespace a LocalQueue called default.",
    link="https://kueue.sigs.k8s.io/docs/tasks/run/jobs/",
    parameters=(
        Parameter("kinds", ("CronJob", "Job", "JobSet", "PyTorchJob", "RayJob"), "Kinds of work that the platform's queues accept."),
    ),
)
