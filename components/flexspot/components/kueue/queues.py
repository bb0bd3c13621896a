"""ResourceFlavors, and a ClusterQueue with its LocalQueue for each team, in a tree of cohorts."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
from collections.abc import Mapping
from types import MappingProxyType
from typing import NotRequired, TypedDict

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from flexspot.capacity.catalog.accelerators import ACCELERATORS, BY_RESOURCE, NVIDIA
from flexspot.capacity.catalog.node_labels import HOSTNAME_LABEL
from flexspot.capacity.values.errors import SettingsProblem
from flexspot.capacity.values.quantities import count_quantity
from flexspot.components.shared_args import NodeTaint, publish, refuse

API_VERSION = "kueue.x-k8s.io/v1beta2"
"""API version of all Kueue objects that are declared here."""

_MOST_LEVELS = 16


class TopologyArgs(TypedDict):
    """Arguments of Topology."""

    name: str
    """Name of the object, as flavors refer to it. Different levels need a new name, because Kueue does not allow changes to them."""

    levels: list[str]
    """Node labels, the widest first, 1 to 16. kubernetes.io/hostname can only be the last. A node without one of them is ignored.

    On GKE: cloud.google.com/gce-topology-block, -subblock and -host, then kubernetes.io/hostname. On EKS: topology.kubernetes.io/zone (and
    topology.k8s.aws/network-node-layer-1 to -3 on machines that have them), then kubernetes.io/hostname."""

    labels: dict[str, str]
    """Labels of the object."""


class Topology(pulumi.ComponentResource):
    """A Topology, by which Kueue places jobs on existing nodes. Use it for nodes that always run or come by ProvisioningRequest.

    Raises ValueError for levels that Kueue would reject.
    """

    topology: pulumi.Output[str]
    """Name of the object, known once it exists."""

    def __init__(self, name: str, args: TopologyArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        _check_topology(name, args["levels"])
        super().__init__("flexspot:index:Topology", name, {**args}, opts)
        made = CustomResource(
            f"{name}-topology",
            api_version=API_VERSION,
            kind="Topology",
            metadata=ObjectMetaArgs(name=args["name"], labels=args["labels"]),
            spec={"levels": [{"nodeLabel": level} for level in args["levels"]]},
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.topology = made.id.apply(lambda _: args["name"])
        publish(self)


def _check_topology(name: str, levels: list[str]) -> None:
    written = ", ".join(levels) or "empty"
    if not 1 <= len(levels) <= _MOST_LEVELS:
        refuse(f"Topology {name}", SettingsProblem("levels", written, f"Kueue accepts 1 to {_MOST_LEVELS}", "add or remove some"))
    if len(set(levels)) < len(levels):
        refuse(f"Topology {name}", SettingsProblem("levels", written, "a label is listed twice", "list each once"))
    if HOSTNAME_LABEL in levels[:-1]:
        refuse(f"Topology {name}", SettingsProblem("levels", written, f"{HOSTNAME_LABEL} must be the last", "move it to the end"))


class FlavorArgs(TypedDict):
    """A flavor. `tolerations` are added to the pods that Kueue admits with it, and `node_labels` become their node selector.

    Pods that do not tolerate `node_taints` by themselves are not admitted with it.
    """

    name: str
    """The flavor's name. Changed labels or tolerations of a flavor with a topology need a new name, because Kueue does not allow changes
    to them."""

    node_labels: dict[str, str]
    """Labels of the flavor's nodes, at most 8, and at least one with a topology."""

    node_taints: list[NodeTaint]
    """Taints of the flavor's nodes, at most 8."""

    tolerations: list[dict[str, str]]
    """Tolerations that its pods get, at most 8."""

    topology: NotRequired[str | None]
    """The Topology by which Kueue places pods. It must exist before the flavor. Default: None, the scheduler places them."""

    resource: NotRequired[str | None]
    """The resource by which pods request its GPUs: nvidia.com/gpu or aws.amazon.com/neuron. None for nodes without GPUs.

    Default: nvidia.com/gpu."""


class AmountArgs(TypedDict):
    """GPUs, with the `cpu` and `memory` that belong to them as Kubernetes quantities."""

    gpus: int
    """GPUs, at least zero."""
    cpu: str
    """vCPUs, such as 48."""
    memory: str
    """Memory, such as 192Gi."""


class QuotaArgs(TypedDict):
    """A quota on one flavor: the nominal amount, and the borrowing and lending limits."""

    flavor: str
    """The ResourceFlavor's name."""

    nominal: AmountArgs
    """The guaranteed amount."""

    borrowing_limit: NotRequired[AmountArgs | None]
    """Maximum amount to borrow from others. Default: no limit."""

    lending_limit: NotRequired[AmountArgs | None]
    """Maximum amount to lend to others. Default: no limit."""


class CohortArgs(TypedDict):
    """A group of queues, or of groups."""

    name: str
    """The cohort's name."""

    parent: NotRequired[str | None]
    """The parent cohort. Default: none, it is a root."""

    quotas: list[QuotaArgs]
    """Quotas that belong to the group but to none of its queues."""

    weight: NotRequired[int]
    """Weight, relative to the other groups and queues of its parent, when idle GPUs are shared. Default: 1."""

    of_cpu_work: NotRequired[bool]
    """If true, it counts only cpu and memory, and no GPUs. Default: false."""


class AdmissionCheckArgs(TypedDict):
    """An AdmissionCheck for `flavors` of a queue, and for no others. It must exist before the queue."""

    name: str
    """The AdmissionCheck's name."""
    flavors: list[str]
    """The queue's flavors that it applies to."""


class QueueArgs(TypedDict):
    """The queues of one team, with `labels` in addition to those of every object.

    `namespace` must exist before the LocalQueue: pass its resource in `depends_on`.
    """

    name: str
    """Name of the ClusterQueue."""

    cohort: str
    """The cohort in which it lends and borrows."""

    namespace: str
    """The only namespace that may submit."""

    local_queue: str
    """Name of the LocalQueue in it. `default` receives the namespace's unlabelled jobs."""

    labels: dict[str, str]
    """Labels of both queues."""

    quotas: list[QuotaArgs]
    """Quotas in the order in which flavors are tried, at least one."""

    weight: NotRequired[int]
    """The team's weight when idle GPUs are shared in its cohort. Default: 1."""

    of_cpu_work: NotRequired[bool]
    """If true, it counts only cpu and memory, so that GPU work is never admitted. Default: false."""

    moves_on: NotRequired[bool]
    """If true, work that would have to preempt others in one flavor first tries the next flavor. Default: true."""

    stop: NotRequired[str]
    """`none`. `hold`: running work continues, nothing new starts. `drain`: running work is also stopped. Default: none."""

    admission_checks: NotRequired[list[AdmissionCheckArgs]]
    """Checks, besides quota, that must pass before work starts on some flavors. Default: none."""


class QueuesArgs(TypedDict):
    """Arguments of Queues."""

    cohorts: list[CohortArgs]
    """The tree of cohorts in which teams lend and borrow unused quota."""

    flavors: list[FlavorArgs]
    """All flavors that quotas refer to."""

    queues: list[QueueArgs]
    """One per team, with at least one quota each."""

    labels: dict[str, str]
    """Labels of every object."""


STOP_POLICIES = {"none": "None", "hold": "Hold", "drain": "HoldAndDrain"}

# One order for both lists: Kueue rejects a flavor whose resources are in another order than coveredResources. Pods are counted by the
# namespace's quota, and ephemeral storage belongs to the node: teams lend each other neither.
_ALWAYS_COVERED = ("cpu", "memory")


Resources = Mapping[str, str | None]
"""The resource that each flavor of the platform has in addition to cpu and memory, by name. A missing one has nvidia.com/gpu."""

_ONLY_GPUS: Resources = MappingProxyType({})


def resources_of(flavors: list[FlavorArgs]) -> Resources:
    """Return the resources of flavors that name theirs."""
    return {flavor["name"]: flavor["resource"] for flavor in flavors if "resource" in flavor}


def _devices(resources: Resources) -> list[str]:
    """Return the devices that every queue of a platform counts, even with a quota of zero.

    Kueue admits resources that a queue does not cover: quotaCheckStrategy is IgnoreUndeclared, which storage and EFA interfaces need
    (flexspot/capacity/plan/kueue_configuration.py). GPUs are always counted. Of another flavor's devices, all resource names are counted.
    """
    kinds = [each for each in ACCELERATORS if each is NVIDIA or each.resource in resources.values()]
    return [name for kind in kinds for name in (kind.resource, *kind.parts)]


def flavor_spec(flavor: FlavorArgs) -> dict[str, object]:
    """Return the spec of a ResourceFlavor. Empty fields are omitted, as the server does."""
    labels = {"nodeLabels": flavor["node_labels"]} if flavor["node_labels"] else {}
    taints = {"nodeTaints": [dict(taint) for taint in flavor["node_taints"]]} if flavor["node_taints"] else {}
    tolerations = {"tolerations": flavor["tolerations"]} if flavor["tolerations"] else {}
    topology = {"topologyName": name} if (name := flavor.get("topology")) else {}
    return {**labels, **taints, **tolerations, **topology}


def cohort_spec(cohort: CohortArgs, resources: Resources = _ONLY_GPUS) -> dict[str, object]:
    """Return the spec of a Cohort. A root has no siblings to share with, and so no weight."""
    name = cohort.get("parent")
    parent = {} if name is None else {"parentName": name, "fairSharing": {"weight": count_quantity(cohort.get("weight", 1))}}
    groups = _resource_groups(cohort["quotas"], resources, of_cpu_work=cohort.get("of_cpu_work", False))
    return {**parent, **({"resourceGroups": groups} if cohort["quotas"] else {})}


def cluster_queue_spec(queue: QueueArgs, resources: Resources = _ONLY_GPUS) -> dict[str, object]:
    """Return the spec of a ClusterQueue."""
    checks = [{"name": each["name"], "onFlavors": each["flavors"]} for each in queue.get("admission_checks", [])]
    return {
        "cohortName": queue["cohort"],
        # Null would admit no namespace at all, {} every one.
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": queue["namespace"]}},
        # A large job that does not fit yet does not keep smaller ones behind it from idle GPUs.
        "queueingStrategy": "BestEffortFIFO",
        "flavorFungibility": {
            # Flavors are in the order of their cost. Idle GPUs of others in an earlier flavor come before own ones in a later flavor, which
            # would have to be started and paid for.
            "whenCanBorrow": "MayStopSearch",
            # Without a fallback at stock-outs, work does not preempt others in a flavor while the next one has room. With it, the
            # autoscaler has already chosen, and the queue stays with the flavor that it can have.
            "whenCanPreempt": "TryNextFlavor" if queue.get("moves_on", True) else "MayStopSearch",
        },
        # The owner gets borrowed quota back whatever the borrower's priority, and within a queue the higher priority comes first. Without
        # borrowWithinCohort, which fair sharing ignores.
        "preemption": {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"},
        "fairSharing": {"weight": count_quantity(queue.get("weight", 1))},
        "stopPolicy": STOP_POLICIES[queue.get("stop", "none")],
        **({"admissionChecksStrategy": {"admissionChecks": checks}} if checks else {}),
        "resourceGroups": _resource_groups(queue["quotas"], resources, of_cpu_work=queue.get("of_cpu_work", False)),
    }


def local_queue_spec(queue: QueueArgs) -> dict[str, object]:
    """Return the spec of a LocalQueue."""
    return {"clusterQueue": queue["name"]}


def _resource_groups(quotas: list[QuotaArgs], resources: Resources, *, of_cpu_work: bool) -> list[dict[str, object]]:
    """Return one group, because cpu and memory may only be in one: every flavor has every resource, with 0 of what its nodes lack."""
    covered = [*_ALWAYS_COVERED, *([] if of_cpu_work else _devices(resources))]
    own = {quota["flavor"]: resources.get(quota["flavor"], NVIDIA.resource) for quota in quotas}
    flavors = [{"name": quota["flavor"], "resources": _resources(quota, own[quota["flavor"]], covered)} for quota in quotas]
    return [{"coveredResources": covered, "flavors": flavors}]


def _resources(quota: QuotaArgs, own: str | None, covered: list[str]) -> list[dict[str, str]]:
    limits = {"borrowingLimit": quota.get("borrowing_limit"), "lendingLimit": quota.get("lending_limit")}
    given = {"nominalQuota": quota["nominal"]} | {field: amount for field, amount in limits.items() if amount is not None}
    written = {field: _quantities(amount, own) for field, amount in given.items()}
    return [{"name": resource} | {field: quantities.get(resource, "0") for field, quantities in written.items()} for resource in covered]


def _quantities(amount: AmountArgs, own: str | None) -> dict[str, str]:
    devices = {} if own is None else {own: count_quantity(amount["gpus"])}
    return {"cpu": amount["cpu"], "memory": amount["memory"], **devices}


_MAX_PER_FLAVOR = 8
"""Maximum of labels, taints and tolerations each: the bounds of ResourceFlavor in kueue.x-k8s.io/v1beta2."""


def check_queues(name: str, args: QueuesArgs) -> None:
    """Raise ValueError for the first problem."""
    where = f"Queues {name}"
    flavors = {flavor["name"] for flavor in args["flavors"]}
    cohorts = {cohort["name"] for cohort in args["cohorts"]}
    owners = [("queue", queue["name"], queue["quotas"]) for queue in args["queues"]]
    owners += [("cohort", cohort["name"], cohort["quotas"]) for cohort in args["cohorts"]]
    _check_flavors(where, args)
    other_flavors, other_cohorts = (f"use one of {', '.join(sorted(names))}" for names in (flavors, cohorts))
    for kind, owner, quotas in owners:
        for quota in quotas:
            if quota["flavor"] not in flavors:
                refuse(
                    f"{where}: {kind} {owner}", SettingsProblem("flavor of a quota", quota["flavor"], "is not in flavors", other_flavors)
                )
    for cohort in args["cohorts"]:
        if (parent := cohort.get("parent")) is not None and parent not in cohorts:
            refuse(f"{where}: cohort {cohort['name']}", SettingsProblem("parent", parent, "is not in cohorts", other_cohorts))
        _check_weight(f"{where}: cohort {cohort['name']}", cohort.get("weight", 1))
    for queue in args["queues"]:
        if queue["cohort"] not in cohorts:
            refuse(f"{where}: queue {queue['name']}", SettingsProblem("cohort", queue["cohort"], "is not in cohorts", other_cohorts))
        _check_queue(f"{where}: queue {queue['name']}", queue)


def _check_flavors(where: str, args: QueuesArgs) -> None:
    for flavor in args["flavors"]:
        owner = f"{where}: flavor {flavor['name']}"
        counts = {field: len(flavor[field]) for field in ("node_labels", "node_taints", "tolerations")}
        for field, count in counts.items():
            if count > _MAX_PER_FLAVOR:
                refuse(owner, SettingsProblem(field, "", f"{count} exceed Kueue's limit of {_MAX_PER_FLAVOR}", "remove some"))
        if (resource := flavor.get("resource")) is not None and resource not in BY_RESOURCE:
            refuse(owner, SettingsProblem("resource", resource, f"must be one of {', '.join(BY_RESOURCE)}", ""))
        topology = flavor.get("topology")
        if topology and not flavor["node_labels"]:
            refuse(owner, SettingsProblem("topology", topology, "a flavor with a topology needs node_labels", "add at least one"))


def _check_queue(where: str, queue: QueueArgs) -> None:
    _check_weight(where, queue.get("weight", 1))
    stop = queue.get("stop", "none")
    if stop not in STOP_POLICIES:
        refuse(where, SettingsProblem("stop", repr(stop), f"must be one of {', '.join(STOP_POLICIES)}", ""))
    if not queue["quotas"]:
        refuse(where, SettingsProblem("quotas", "empty", "a queue needs at least one", "add a quota, of 0 GPUs if it may only borrow"))
    own = [quota["flavor"] for quota in queue["quotas"]]
    for check in queue.get("admission_checks", []):
        for flavor in check["flavors"]:
            if flavor not in own:
                problem = f"the queue has no quota of flavor {flavor}"
                refuse(where, SettingsProblem("admission_checks", check["name"], problem, f"use one of its flavors {', '.join(own)}"))


def _check_weight(where: str, weight: int) -> None:
    # Kueue accepts weight 0, with which a queue never gets anything.
    if weight < 1:
        refuse(where, SettingsProblem("weight", str(weight), "must be at least 1", "raise it, or remove the quota"))


class Queues(pulumi.ComponentResource):
    """Guaranteed shares with borrowing: a team that reclaims its share preempts the borrowers.

    Idle quota is shared by weight (Kueue's fair sharing). Within a queue, higher priority preempts lower. Only the team's own namespace may
    submit. Raises ValueError for unresolved names and for values that Kueue would reject.
    """

    cluster_queues: pulumi.Output[list[str]]
    """Names of the ClusterQueues."""

    def __init__(self, name: str, args: QueuesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        check_queues(name, args)
        super().__init__("flexspot:index:Queues", name, {**args}, opts)
        child = pulumi.ResourceOptions(parent=self)
        resources = resources_of(args["flavors"])
        flavors = [
            CustomResource(
                f"{name}-{flavor['name']}",
                api_version=API_VERSION,
                kind="ResourceFlavor",
                metadata=ObjectMetaArgs(name=flavor["name"], labels=args["labels"]),
                spec=flavor_spec(flavor),
                opts=child,
            )
            for flavor in args["flavors"]
        ]
        for cohort in args["cohorts"]:
            # A root that owns nothing needs no object: its name alone forms the cohort.
            if cohort.get("parent") is not None or cohort["quotas"]:
                CustomResource(
                    f"{name}-{cohort['name']}-cohort",
                    api_version=API_VERSION,
                    kind="Cohort",
                    metadata=ObjectMetaArgs(name=cohort["name"], labels=args["labels"]),
                    spec=cohort_spec(cohort, resources),
                    opts=pulumi.ResourceOptions(parent=self, depends_on=flavors),
                )
        queues = [
            CustomResource(
                f"{name}-{queue['name']}",
                api_version=API_VERSION,
                kind="ClusterQueue",
                metadata=ObjectMetaArgs(name=queue["name"], labels={**args["labels"], **queue["labels"]}),
                spec=cluster_queue_spec(queue, resources),
                # Kueue keeps a ClusterQueue inactive until its flavors exist, and a flavor in use cannot be deleted.
                opts=pulumi.ResourceOptions(parent=self, depends_on=flavors),
            )
            for queue in args["queues"]
        ]
        for queue, cluster_queue in zip(args["queues"], queues, strict=True):
            CustomResource(
                f"{name}-{queue['name']}-local",
                api_version=API_VERSION,
                kind="LocalQueue",
                metadata=ObjectMetaArgs(
                    name=queue["local_queue"], namespace=queue["namespace"], labels={**args["labels"], **queue["labels"]}
                ),
                spec=local_queue_spec(queue),
                opts=pulumi.ResourceOptions(parent=self, depends_on=[cluster_queue]),
            )
        self.cluster_queues = pulumi.Output.from_input([queue["name"] for queue in args["queues"]])
        publish(self)
