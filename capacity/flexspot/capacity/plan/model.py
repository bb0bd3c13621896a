"""The plan: what a stack will consist of and be billed for, as plain frozen data, known before any resource exists."""

from __future__ import annotations

from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass, replace
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Any

from flexspot.capacity.catalog.data_files import Record
from flexspot.capacity.catalog.node_labels import GPU_RESOURCE

if TYPE_CHECKING:
    from flexspot.capacity.catalog.capacity_type import CapacityType
    from flexspot.capacity.catalog.machines import Machine
    from flexspot.capacity.catalog.platform import Platform
    from flexspot.capacity.catalog.workload_classes import Removal
    from flexspot.capacity.plan.billed import SpendingPlan
    from flexspot.capacity.plan.kueue_configuration import PodsReady
    from flexspot.capacity.plan.versions import VersionPlan
    from flexspot.capacity.settings.teams import AdmissionMode, Stop


@dataclass(frozen=True)
class CpuAmount:
    """vCPU and memory (MiB) of machines without GPUs."""

    vcpu: int
    memory_mib: int

    @property
    def amount(self) -> Amount:
        """The same as an amount of a flavor."""
        return Amount(0, self.vcpu, self.memory_mib)


@dataclass(frozen=True)
class CpuQueuePlan:
    """The ClusterQueue of one team's work without GPUs, and its LocalQueue.

    `nominal` is the team's own, which it lends while it does not use it. `launchers` are in the queue of the team's GPUs, for pods without
    GPUs of work that has some, and lent to nobody. `stop` keeps work out.
    """

    cluster_queue: str
    namespace: str
    local_queue: str
    weight: int
    nominal: CpuAmount
    launchers: CpuAmount
    stop: Stop


@dataclass(frozen=True)
class CpuWorkPlan:
    """Work without GPUs: a flavor without any GPU node, and a queue for each team in a cohort of its own.

    `node_labels` are those of its nodes, where they have one that others have not; it tolerates no taint of GPU nodes. `unowned` is the
    cohort's: any team may borrow it. No pod can ask for more than `largest`.
    """

    flavor: str
    node_labels: dict[str, str]
    cohort: str
    unowned: CpuAmount
    largest: CpuAmount
    queues: tuple[CpuQueuePlan, ...]

    def quota(self, nominal: CpuAmount) -> FlavorQuota:
        """An owner's part of the flavor, without limits."""
        return FlavorQuota(self.flavor, nominal.amount)

    @property
    def reach(self) -> CpuAmount:
        """The most that one team can have at once."""
        owned = [self.unowned, *(queue.nominal for queue in self.queues)]
        return CpuAmount(sum(each.vcpu for each in owned), sum(each.memory_mib for each in owned))


_LEFT_OUT = {"left_out_by_default": True}
"""Of a field that a plan's data has only where it says something else than its default."""


class TaintEffect(StrEnum):
    """What a taint does to pods that do not tolerate it, as Kubernetes spells it. NO_SCHEDULE keeps new ones away."""

    NO_SCHEDULE = "NoSchedule"


@dataclass(frozen=True)
class Taint:
    """A taint of a pool's nodes."""

    key: str
    value: str
    effect: TaintEffect = TaintEffect.NO_SCHEDULE


@dataclass(frozen=True)
class Amount:
    """GPUs, or devices of another kind, with the vCPU and memory (MiB) that belong to them."""

    gpus: int
    vcpu: int
    memory_mib: int


@dataclass(frozen=True)
class PoolPlan:
    """One pool: machines with the same GPUs at one capacity type.

    `machines` begins with the one asked for. `resource` is what pods ask for one of its GPUs by. `max_nodes` and `ceiling` are enforced.
    `labels` are on its nodes before they boot, whoever sets them; `pool_label` (key, value) names the pool itself. On GKE Autopilot, which
    has no pools of ours, it is None, pods ask for a node by `labels`, and quotas alone enforce `ceiling`. `owner_labels` tell reports whose
    its nodes are; nothing selects by them. `taints` are all that its nodes have. `serves` are classes, by name. `weight` orders the pools
    of a class that moves on at a stock-out, the highest first (1 to 100); None where nothing orders them. Nodes are removed as `removal`
    and `idle_seconds` say. Pods get `notice_seconds` before an interruption (None: the cloud does not interrupt), nodes end after
    `max_run_seconds` (None: never). `gpu_memory_gb` is what a pod has of one GPU, in GB as its vendor names it: a part of it where GPUs are
    shared or partitioned. `efa_interfaces` are those that pods may ask a node for; 0: the pool has none. `rdma_networks` are the further
    networks of GKE's nodes by which their GPUs reach each other, all for one pod; 0: none. `whole_hosts` says that a pod asks for all that
    a node has, and `slice_nodes` how many nodes come and go together, of which a job takes all (TPUs on GKE; 0: each by itself).
    """

    name: str
    machines: tuple[str, ...]
    capacity_type: CapacityType
    accelerator: str
    gpu_model: str
    gpu_memory_gb: int
    gpus_per_node: int
    efa_interfaces: int
    min_nodes: int
    max_nodes: int
    ceiling: Amount
    zones: tuple[str, ...]
    labels: dict[str, str]
    owner_labels: dict[str, str]
    pool_label: tuple[str, str] | None
    taints: tuple[Taint, ...]
    serves: tuple[str, ...]
    weight: int | None
    removal: Removal
    idle_seconds: int
    notice_seconds: int | None
    max_run_seconds: int | None
    resource: str = field(default=GPU_RESOURCE, metadata=_LEFT_OUT)
    rdma_networks: int = field(default=0, metadata=_LEFT_OUT)
    whole_hosts: bool = field(default=False, metadata=_LEFT_OUT)
    slice_nodes: int = field(default=0, metadata=_LEFT_OUT)

    @property
    def max_gpus(self) -> int:
        """The pool's ceiling in GPUs."""
        return self.ceiling.gpus

    @property
    def selector(self) -> dict[str, str]:
        """Labels that only this pool's nodes have together."""
        return self.labels if self.pool_label is None else {**self.labels, self.pool_label[0]: self.pool_label[1]}


@dataclass(frozen=True)
class FlavorPlan:
    """A ResourceFlavor: how Kueue names the capacity of `pools`, and what it adds to the pods that it admits there.

    `ceiling` is what the queues may give away of it: all that its pools can ever have, less what unqueued classes may use.
    A flavor without pools is of nodes without GPUs.
    `node_taints` keep out pods that do not tolerate them themselves; `tolerated` is added to those that are admitted.
    With `provisioned` its nodes are asked for, all of a job at once, before the job is admitted (DWS). `topology` names the Topology by
    which Kueue places its pods, where they ask for it, and no others get the flavor; None: the scheduler places them. `resource` is what
    pods ask for its GPUs by.
    """

    name: str
    pools: tuple[str, ...]
    node_labels: dict[str, str]
    node_taints: tuple[Taint, ...]
    tolerated: tuple[Taint, ...]
    ceiling: Amount
    provisioned: bool = False
    topology: str | None = None
    resource: str = field(default=GPU_RESOURCE, metadata=_LEFT_OUT)


@dataclass(frozen=True)
class TopologyPlan:
    """A Topology: `levels` are node labels, the widest first."""

    name: str
    levels: tuple[str, ...]


@dataclass(frozen=True)
class FlavorQuota:
    """What is somebody's own of one flavor, the most that it may borrow, and the most that it lends; None: no limit."""

    flavor: str
    nominal: Amount
    borrowing_limit: Amount | None = None
    lending_limit: Amount | None = None


@dataclass(frozen=True)
class CohortPlan:
    """A cohort, its parent (None: the root) and what belongs to it and to no queue in it."""

    name: str
    parent: str | None
    weight: int
    quotas: tuple[FlavorQuota, ...]


@dataclass(frozen=True)
class QueuePlan:
    """The ClusterQueue of one team, the cohort in which it lends and borrows, and the LocalQueue of its namespace.

    `quotas` are in the order in which Kueue tries the flavors. With `moves_on` a job that could have a flavor only by preempting looks for
    room in the next one first. `stop` keeps work out.
    """

    cluster_queue: str
    cohort: str
    weight: int
    namespace: str
    local_queue: str
    quotas: tuple[FlavorQuota, ...]
    moves_on: bool
    stop: Stop


@dataclass(frozen=True)
class TeamPlan:
    """A team's namespace. `hard` is its ResourceQuota: what it may hold at once, `max_gpus` among it, borrowed GPUs included.

    `unqueued_gpus` is the part that pods of `unqueued_priority_classes` may ask for. Both are sums over all kinds of accelerators; `hard`
    has each by itself, and so does `unqueued_of` of the second, where it is not of NVIDIA's alone. No container may have more than
    `container_limits`, cpu and memory of the largest node. Members of the groups `submitters` and `viewers` may start work there, or look;
    `cluster_queues` are those that the team's work waits in, `projects` those that it may be billed to, none for any.
    """

    name: str
    namespace: str
    max_gpus: int
    hard: dict[str, str]
    unqueued_gpus: int
    unqueued_priority_classes: tuple[str, ...]
    container_limits: dict[str, str]
    submitters: tuple[str, ...]
    viewers: tuple[str, ...]
    cluster_queues: tuple[str, ...]
    projects: tuple[str, ...]
    monthly_budget_usd: int | None
    unqueued_of: dict[str, int] = field(default_factory=dict[str, int], metadata=_LEFT_OUT)

    def most_unqueued(self, resource: str) -> int:
        """How many devices of one kind its work without queue may ask for."""
        return self.unqueued_of.get(resource, 0) if self.unqueued_of else self.unqueued_gpus if resource == GPU_RESOURCE else 0

    def most(self, resource: str) -> int:
        """How many devices of one kind it may hold at once."""
        return int(self.hard.get(f"requests.{resource}", "0"))


@dataclass(frozen=True)
class PriorityPlan:
    """The PriorityClass of a workload class."""

    name: str
    value: int
    preempts: bool
    description: str


@dataclass(frozen=True)
class RoutePool:
    """One pool that a class may use, with the flavor under which its queue gives it (None for unqueued classes)."""

    pool: str
    capacity_type: CapacityType
    flavor: str | None


@dataclass(frozen=True)
class RoutePlan:
    """How the pods of a class get to their capacity.

    `pools` are in the order in which they are tried. Pods carry `node_selector` and, where it is not None, must run on a node whose label
    `node_affinity[0]` is one of `node_affinity[1]`; they tolerate `tolerations`. `grace_seconds` fits into the shortest notice of the
    pools; `max_run_seconds` is the shortest of the class's limit and the pools' own (None: a service). `job_annotations` are the job's own,
    `pod_annotations` its pods'. `resource` is what its pods ask for GPUs by: all its pools have the same.
    """

    workload_class: str
    priority_class: str
    queued: bool
    pools: tuple[RoutePool, ...]
    node_selector: dict[str, str]
    node_affinity: tuple[str, tuple[str, ...]] | None
    tolerations: tuple[Taint, ...]
    grace_seconds: int
    max_run_seconds: int | None
    checkpoint: bool
    disruption_budget: bool
    job_annotations: dict[str, str]
    pod_annotations: dict[str, str]
    resource: str = field(default=GPU_RESOURCE, metadata=_LEFT_OUT)


@dataclass(frozen=True)
class ComputeClassPlan:
    """The compute class of a workload class that moves on at a stock-out, on GKE: its pools in the order in which they are tried.

    On Autopilot a priority is not a node pool but what GKE is to make: the machine, GPUs and capacity type of that pool of the plan.

    Nodes that are not needed go after `consolidation_delay_minutes`.
    """

    name: str
    pools: tuple[str, ...]
    consolidation_delay_minutes: int


@dataclass(frozen=True)
class ClusterLimits:
    """What the whole cluster may grow to, on GKE, where node auto-provisioning is told so: pools, system nodes and other work together."""

    vcpu: int
    memory_gib: int


@dataclass(frozen=True)
class AdmissionPlan:
    """The rules that the API server holds, and whether it gives work the owner labels of its namespace."""

    mode: AdmissionMode
    owner_labels: bool


@dataclass(frozen=True)
class PlanWarning:
    """Something that works and is probably not meant: which check says so, where, what, and what to do."""

    rule: str
    path: str
    text: str


@dataclass(frozen=True)
class Plan:
    """Everything of one stack. `labels` are on every object. `accelerators` are the platform's ceilings in GPUs, by accelerator.

    `limits`, `compute_classes` and `topologies` are GKE's: None and none elsewhere, and on Autopilot no `limits`. `pods_ready` are
    the times of the cluster's Kueue, `cpu_work` the queues of work without GPUs (None: there is no room for it), `versions` what is
    installed. `spending` is what else will be billed, and the budget. `own_machines` are those that the settings describe, by name: what
    they say goes before the catalog.
    """

    cloud: Platform
    environment: str
    region: str
    labels: dict[str, str]
    pools: tuple[PoolPlan, ...]
    accelerators: dict[str, int]
    limits: ClusterLimits | None
    compute_classes: tuple[ComputeClassPlan, ...]
    topologies: tuple[TopologyPlan, ...]
    flavors: tuple[FlavorPlan, ...]
    pods_ready: PodsReady
    priorities: tuple[PriorityPlan, ...]
    cohorts: tuple[CohortPlan, ...]
    queues: tuple[QueuePlan, ...]
    cpu_work: CpuWorkPlan | None
    teams: tuple[TeamPlan, ...]
    routes: tuple[RoutePlan, ...]
    admission: AdmissionPlan
    versions: VersionPlan
    spending: SpendingPlan
    own_machines: dict[str, Machine]
    warnings: tuple[PlanWarning, ...]

    @property
    def every_flavor(self) -> tuple[FlavorPlan, ...]:
        """The flavors of GPUs, and that of nodes without any."""
        work = self.cpu_work
        return self.flavors if work is None else (*self.flavors, FlavorPlan(work.flavor, (), work.node_labels, (), (), work.unowned.amount))

    @property
    def every_cohort(self) -> tuple[CohortPlan, ...]:
        """The cohorts of GPUs, and that of work without any."""
        work = self.cpu_work
        if work is None:
            return self.cohorts
        unowned = (work.quota(work.unowned),) if work.unowned.vcpu or work.unowned.memory_mib else ()
        return (*self.cohorts, CohortPlan(work.cohort, None, 1, unowned))

    @property
    def every_queue(self) -> tuple[QueuePlan, ...]:
        """The queues of GPUs, each with its part for launchers, and those of work without GPUs.

        Launchers come before the flavors with GPUs, so that pods without any have nodes without any. Nobody preempts GPUs for their vCPU.
        """
        work = self.cpu_work
        if work is None:
            return self.queues
        parts = {each.namespace: each.launchers for each in work.queues if each.launchers.vcpu and each.launchers.memory_mib}
        alone = Amount(0, 0, 0)
        first = {namespace: (FlavorQuota(work.flavor, part.amount, alone, alone),) for namespace, part in parts.items()}
        with_launchers = (replace(each, quotas=first.get(each.namespace, ()) + each.quotas) for each in self.queues)
        of_work = (
            QueuePlan(
                each.cluster_queue,
                work.cohort,
                each.weight,
                each.namespace,
                each.local_queue,
                (work.quota(each.nominal),),
                moves_on=True,
                stop=each.stop,
            )
            for each in work.queues
        )
        return (*with_launchers, *of_work)

    def route_of(self, workload_class: object) -> RoutePlan | None:
        """Where a class goes; None for one that no pool serves."""
        return next((each for each in self.routes if each.workload_class == workload_class), None)


def plan_data(plan: Plan) -> dict[str, Any]:
    """The plan in dicts, lists, texts and numbers, its fields in their own order; the same plan gives the same data."""
    return _plain(plan)


def _left_out(value: Any, each: Field[Any]) -> bool:
    if not each.metadata.get("left_out_by_default"):
        return False
    default = each.default if each.default_factory is MISSING else each.default_factory()
    return bool(getattr(value, each.name) == default)


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value) if not _left_out(value, each)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Record):
        return value.model_dump(mode="json")
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return value
