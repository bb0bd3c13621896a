"""Rules about work outside the queues, in a missing queue, or in the wrong one."""

from flexspot.capacity.catalog.node_labels import QUEUE_LABEL
from flexspot.capacity.values.verdict import NOT_APPLICABLE, PASSES, Outcome, Severity, fails, undecided
from flexspot.policies.inventory.gpu_machines import gpu_selection
from flexspot.policies.inventory.objects import ClusterQueue, KueueConfiguration, LocalQueue, ResourceFlavor, named
from flexspot.policies.inventory.pod_gpus import POD_MAKERS, gpu_resources
from flexspot.policies.inventory.views import Autopilot, GpuPool, Inventory, NodeAutoProvisioning, PodSet, Pool
from flexspot.policies.judging import Parameter, Parameters, Rule
from flexspot.policies.pods.scheduling_options import cluster_queues_of, queue_of
from flexspot.policies.pools import pools_for
from flexspot.policies.values.field import UNKNOWN, Field, Tri, all_of, any_of, negated
from flexspot.policies.values.finding import listed

UNQUEUED = f"it requests GPUs without the label {QUEUE_LABEL}, so no quota counts it"


UNQUEUED_REMEDY = f"add the label {QUEUE_LABEL} with the name of a LocalQueue of its namespace"


@Rule(
    code="FLX005",
    severity=Severity.HIGH,
    why="A job outside the queues takes GPUs that quotas have promised to others.",
    remediation="Give the job the label kueue.x-k8s.io/queue-name, or its namespace a LocalQueue called default.",
    link="https://kueue.sigs.k8s.io/docs/tasks/run/jobs/",
    parameters=(
        Parameter("kinds", ("CronJob", "Job", "JobSet", "PyTorchJob", "RayJob"), "Kinds of work that the platform's queues accept."),
    ),
)
def job_without_queue(pods: PodSet, parameters: Parameters, inventory: Inventory) -> Outcome:  # noqa: PLR0911 -- a list of decisions, one a line
    """A GPU job that bypasses the queues.

    Only for kinds that run to completion: a service would never return its quota.
    """
    if pods.kind not in parameters.texts("kinds"):
        return NOT_APPLICABLE
    if pods.not_gpu_work or (pods.object_spec.at("managedBy").known and not pods.object_spec.at("managedBy").absent):
        return NOT_APPLICABLE
    queue = queue_of(pods, inventory)
    if not pods.queue_labels.known or pods.requests_gpus is UNKNOWN:
        return undecided("its labels, or its GPU requests, are not known yet")
    if not queue.known or queue.text() not in {None, ""}:
        return PASSES
    if not inventory.can_judge_missing(ClusterQueue, LocalQueue):
        return undecided("no queue is in the input")
    if pods.namespace.text() is UNKNOWN and inventory.of(LocalQueue):
        return undecided("its namespace is not known yet, and a LocalQueue there may accept it")
    return fails(UNQUEUED, UNQUEUED_REMEDY, "metadata.labels")


@Rule(
    code="FLX068",
    severity=Severity.HIGH,
    why="Kueue keeps the work suspended until a LocalQueue with that name exists, and only a condition on its Workload says why.",
    remediation="Set the label kueue.x-k8s.io/queue-name to a LocalQueue in the work's own namespace.",
    link="https://kueue.sigs.k8s.io/docs/tasks/run/jobs/",
    sources=("kubernetes-sigs/kueue v0.19, pkg/cache/queue/manager.go: a workload of a LocalQueue that does not exist is not queued.",),
)
def work_in_missing_queue(pods: PodSet, _: Parameters, inventory: Inventory) -> Outcome:
    """Work that names a queue that does not exist.

    It is only known to be missing if its namespace has other queues in the input, or if the input is complete.

    If the work or a queue has no namespace, which is set when it is applied, only the queue's name is compared.
    """
    named = pods.queue_labels.at(QUEUE_LABEL)
    name, space = named.text(), pods.namespace.text()
    if named.absent or name == "":
        return NOT_APPLICABLE
    if UNKNOWN in (name, space):
        return undecided("its queue, or its namespace, is not known yet")
    queues = inventory.by("written namespace", LocalQueue, lambda each: each.fields.at("metadata", "namespace").text())
    of_it = (*queues.get(space, ()), *queues.get(None, ())) if space else inventory.of(LocalQueue)
    near = {each.name.text() for each in of_it}
    if name in near:
        return PASSES
    if UNKNOWN in near or UNKNOWN in queues or not (inventory.closed or (near and not inventory.excerpt)):
        return NOT_APPLICABLE
    there = listed(map(str, near)) or "none"
    where = f"namespace {space}" if space else "the input"
    return fails(
        f"its label {QUEUE_LABEL} is {name}, but {where} has no such LocalQueue; found: {there}",
        f"name a LocalQueue that exists, or declare {name}",
        "metadata.labels",
    )


@Rule(
    code="FLX070",
    severity=Severity.MEDIUM,
    why="Kueue gives work without GPUs the labels and tolerations of its queue's flavor, so that it sits on GPU nodes, keeps them alive "
    "and is counted by no quota of GPUs. Work with GPUs in a queue that gives none is never admitted.",
    remediation="Give work without GPUs a queue with a flavor for nodes without GPUs, and name it in the label kueue.x-k8s.io/queue-name.",
    link="https://kueue.sigs.k8s.io/docs/concepts/resource_flavor/",
    sources=(
        "kubernetes-sigs/kueue v0.19, pkg/scheduler/flavorassigner/flavorassigner.go: a resource that no group covers is not assigned.",
        "https://kueue.sigs.k8s.io/docs/concepts/cluster_queue/#resource-groups",
    ),
)
def work_in_the_wrong_queue(pods: PodSet, _: Parameters, inventory: Inventory) -> Outcome:
    """Work without GPUs in a queue whose machines all have GPUs, and work with GPUs in a queue that gives none.

    Work in which only some pods request GPUs counts as work with GPUs. Its other pods get machines by the same flavor or by that of another
    group.
    """
    queue = queue_of(pods, inventory)
    if queue.absent or pods.serve_nodes:
        return NOT_APPLICABLE
    asks = any_of(each.requests_gpus for each in _of_object(pods, inventory))
    leads_to = cluster_queues_of(pods, queue, inventory)
    if len(leads_to) != 1:
        return NOT_APPLICABLE
    if asks is True:
        return _with_gpus(pods, leads_to[0], queue, inventory)
    all_gpus = _machines_have_gpus(leads_to[0], inventory) if asks is False else UNKNOWN
    if all_gpus is UNKNOWN:
        return undecided("whether it requests GPUs, or what its queue gives, is not known yet")
    if all_gpus is False:
        return PASSES
    return fails(
        f"none of its containers has a limit on GPUs, but its queue {queue.value} points to ClusterQueue "
        f"{leads_to[0].identity.name}, whose flavors all select GPU nodes: it keeps them alive, and no GPU quota counts it",
        "name a LocalQueue for nodes without GPUs, or set a limit on GPUs in the container that computes",
        "metadata.labels",
    )


def _with_gpus(pods: PodSet, leads_to: ClusterQueue, queue: Field, inventory: Inventory) -> Outcome:
    """Judge work with GPUs. Kueue never admits work that requests a resource which no group of its queue covers by exactly that name."""
    if _is_released(pods):
        return NOT_APPLICABLE
    requested = sorted({resource for each in _of_object(pods, inventory) for resource in gpu_resources(each.pod)})
    if not requested:
        return undecided("the resource name by which Kueue counts its device claims is set elsewhere")
    kueues = inventory.of(KueueConfiguration)
    lacking = {
        each: all_of([negated(_covers(leads_to, each)), negated(any_of(kueue.counts_otherwise(each) for kueue in kueues))])
        for each in requested
    }
    missing = [resource for resource, answer in lacking.items() if answer is True]
    if not missing:
        unknown = any(answer is UNKNOWN for answer in lacking.values())
        return undecided("what its queue gives, or what Kueue counts, is not known yet") if unknown else PASSES
    named = " and ".join(missing)
    return fails(
        f"it requests {named}, but its queue {queue.value} points to ClusterQueue {leads_to.identity.name}, which has no quota of {named}: "
        "it waits forever",
        f"name a LocalQueue whose ClusterQueue has quota of {named}, or remove the limits on it",
        "metadata.labels",
    )


_SUSPENDED = frozenset(each.kind for each in POD_MAKERS.values() if each.suspended)


def _is_released(pods: PodSet) -> bool:
    """Return whether Kueue has released the pods or never suspended them. A CronJob's `suspend` does not count: it is for its next run."""
    marks = (pods.object_spec.at("suspend"), pods.object_spec.at("runPolicy", "suspend")) if pods.kind in _SUSPENDED else ()
    return any(each.equals("false") is True for each in marks) or isinstance(pods.pod.at("nodeName").text(), str)


def _covers(queue: ClusterQueue, resource: str) -> Tri:
    return queue.spec.at("resourceGroups").parts().any(lambda each: each.at("coveredResources").parts().any(lambda x: x.equals(resource)))


def _of_object(pods: PodSet, inventory: Inventory) -> list[PodSet]:
    """Return all pod sets of the object."""
    return inventory.by("object", PodSet, lambda each: each.identity).get(pods.identity, [pods])


def _machines_have_gpus(queue: ClusterQueue, inventory: Inventory) -> Tri:
    """Return whether all flavors that give machines to pods without GPUs lead to GPU nodes.

    These are the flavors of groups with cpu or memory.
    """
    groups = queue.spec.at("resourceGroups").parts()
    flavors = [
        flavor.at("name").text()
        for group in groups.fields
        if group.at("coveredResources").parts().any(lambda each: each.equals("cpu", "memory")) is True
        for flavor in group.at("flavors").parts().fields
    ]
    if not groups.complete:
        return UNKNOWN
    return all_of([bool(flavors), *(_leads_to_gpus(flavor, inventory) for flavor in flavors)])


def _leads_to_gpus(name: object, inventory: Inventory) -> Tri:
    found = named(ResourceFlavor, name, inventory)
    if len(found) != 1 or found[0].name.text() != name:
        return False if name is not UNKNOWN else UNKNOWN
    return inventory.once("flavor of GPU nodes", found[0], lambda: _selects_gpus(found[0], inventory))


def _selects_gpus(flavor: ResourceFlavor, inventory: Inventory) -> Tri:
    """Return whether the flavor selects only GPU nodes: by a label that only they have, or because only GPU pools in the input match."""
    labels = flavor.spec.at("nodeLabels").parts()
    if any(gpu_selection(Field({"key": key, "operator": "In", "values": [value.value]})).demands is True for key, value in labels.named):
        return True
    wanted = dict(labels.named)
    made = inventory.of(NodeAutoProvisioning) or inventory.of(Autopilot)
    if not wanted or made or not labels.complete:
        return False
    fitting = [pool for pool in pools_for(Pool, wanted, inventory) if pool.offer.carries(wanted) is not False]
    return bool(fitting) and all(isinstance(pool, GpuPool) and pool.concerned is True for pool in fitting)
