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
        """These vCPU and this memory as an amount of a flavor."""
        return Amount(0, self.vcpu, self.memory_mib)


@dataclass(frozen=True)
class CpuQueuePlan:
    """The ClusterQueue of one team's work without GPUs, and its LocalQueue."""

    cluster_queue: str
    namespace: str
    local_queue: str
    weight: int
    nominal: CpuAmount
    """The team's own quota. Other teams may borrow it while the team does not use it."""
    launchers: CpuAmount
    """Quota in the team's GPU queue for the pods without GPUs of GPU jobs. It is never lent."""
    stop: Stop
    """Stop policy of the ClusterQueue."""


@dataclass(frozen=True)
class CpuWorkPlan:
    """Work without GPUs: a flavor of nodes without GPUs, and a queue for each team in a separate cohort."""

    flavor: str
    node_labels: dict[str, str]
    """Labels that select nodes without GPUs. Empty where these nodes have no label of their own: such pods tolerate no taint of GPU nodes.
    """
    cohort: str
    unowned: CpuAmount
    """Quota of the cohort that belongs to no team. Any team may borrow it."""
    largest: CpuAmount
    """The largest request of a single pod."""
    queues: tuple[CpuQueuePlan, ...]

    def quota(self, nominal: CpuAmount) -> FlavorQuota:
        """Return an owner's quota of the flavor, without limits."""
        return FlavorQuota(self.flavor, nominal.amount)

    @property
    def reach(self) -> CpuAmount:
        """The most that one team can use at once."""
        owned = [self.unowned, *(queue.nominal for queue in self.queues)]
        return CpuAmount(sum(each.vcpu for each in owned), sum(each.memory_mib for each in owned))


_LEFT_OUT = {"left_out_by_default": True}
"""Metadata of a field that a plan's data contains only if its value differs from the default."""


class TaintEffect(StrEnum):
    """Effect of a taint on pods that do not tolerate it, as Kubernetes spells it. NO_SCHEDULE keeps new pods away."""

    NO_SCHEDULE = "NoSchedule"


@dataclass(frozen=True)
class Taint:
    """A taint of a pool's nodes."""

    key: str
    value: str
    effect: TaintEffect = TaintEffect.NO_SCHEDULE


@dataclass(frozen=True)
class Amount:
    """GPUs or other devices, with the vCPU and memory (MiB) that belong to them."""

    gpus: int
    vcpu: int
    memory_mib: int


@dataclass(frozen=True)
class PoolPlan:
    """One pool: machines with the same GPUs at one capacity type."""

    name: str
    machines: tuple[str, ...]
    """Machine types. The first one is the machine that the settings name; the others are its alternatives."""
    capacity_type: CapacityType
    accelerator: str
    gpu_model: str
    gpu_memory_gb: int
    """Memory of one GPU as a pod gets it, in GB as its vendor names it. A part of the whole where GPUs are shared or partitioned."""
    gpus_per_node: int
    efa_interfaces: int
    """EFA interfaces of a node that pods may request. 0: the pool has none."""
    min_nodes: int
    max_nodes: int
    """Enforced ceiling in nodes."""
    ceiling: Amount
    """Enforced ceiling in GPUs, vCPU and memory. On GKE Autopilot only quotas enforce it."""
    zones: tuple[str, ...]
    labels: dict[str, str]
    """Labels that nodes have before they boot, whoever sets them. On GKE Autopilot pods request a node by them."""
    owner_labels: dict[str, str]
    """Labels that name the owner of the nodes for reports. Nothing selects by them."""
    pool_label: tuple[str, str] | None
    """Label (key, value) that names the pool. None on GKE Autopilot, which has no node pools of the stack."""
    taints: tuple[Taint, ...]
    """All taints of the nodes."""
    serves: tuple[str, ...]
    """Names of workload classes."""
    weight: int | None
    """Order among the pools of a class that moves on at a stock-out, the highest first (1 to 100). None where nothing orders them."""
    removal: Removal
    """Condition under which the autoscaler removes a node."""
    idle_seconds: int
    """Seconds for which that condition holds before a node is removed."""
    notice_seconds: int | None
    """Seconds that pods get before an interruption. None: the cloud does not interrupt."""
    max_run_seconds: int | None
    """Seconds after which a node ends. None: never."""
    resource: str = field(default=GPU_RESOURCE, metadata=_LEFT_OUT)
    """Extended resource by which pods request a device, such as nvidia.com/gpu."""
    rdma_networks: int = field(default=0, metadata=_LEFT_OUT)
    """Additional networks of GKE nodes that connect their GPUs, all for one pod. 0: none."""
    whole_nodes: bool = field(default=False, metadata=_LEFT_OUT)
    """True if a pod requests all devices of a node."""
    slice_nodes: int = field(default=0, metadata=_LEFT_OUT)
    """Number of nodes that are created and removed together, all of which one job uses (TPUs on GKE). 0: each node is independent."""

    @property
    def max_gpus(self) -> int:
        """The pool's ceiling in GPUs."""
        return self.ceiling.gpus

    @property
    def selector(self) -> dict[str, str]:
        """Labels that only this pool's nodes have in combination."""
        return self.labels if self.pool_label is None else {**self.labels, self.pool_label[0]: self.pool_label[1]}


@dataclass(frozen=True)
class FlavorPlan:
    """A ResourceFlavor: Kueue's name for the capacity of `pools`, and what Kueue adds to the pods that it admits there."""

    name: str
    pools: tuple[str, ...]
    """Pools of the flavor. Empty for nodes without GPUs."""
    node_labels: dict[str, str]
    node_taints: tuple[Taint, ...]
    """Taints that reject pods which do not tolerate them themselves."""
    tolerated: tuple[Taint, ...]
    """Taints for which Kueue adds tolerations to admitted pods."""
    ceiling: Amount
    """The most that queues may give away: all that the pools can have, less what unqueued classes may use."""
    provisioned: bool = False
    """True if the nodes of a job are requested together before the job is admitted (DWS)."""
    topology: str | None = None
    """Topology by which Kueue places pods that request one. No other pods get the flavor. None: the scheduler places them."""
    resource: str = field(default=GPU_RESOURCE, metadata=_LEFT_OUT)
    """Extended resource by which pods request its devices."""


@dataclass(frozen=True)
class TopologyPlan:
    """A Topology of Kueue."""

    name: str
    levels: tuple[str, ...]
    """Node labels, the widest level first."""


@dataclass(frozen=True)
class FlavorQuota:
    """An owner's quota of one flavor."""

    flavor: str
    nominal: Amount
    """Quota that belongs to the owner."""
    borrowing_limit: Amount | None = None
    """The most that the owner may borrow. None: no limit."""
    lending_limit: Amount | None = None
    """The most that the owner lends. None: no limit."""


@dataclass(frozen=True)
class CohortPlan:
    """A cohort and the quotas that belong to it and to no queue inside it."""

    name: str
    parent: str | None
    """None: the cohort is the root."""
    weight: int
    quotas: tuple[FlavorQuota, ...]


@dataclass(frozen=True)
class QueuePlan:
    """The ClusterQueue of one team, and the LocalQueue of its namespace."""

    cluster_queue: str
    cohort: str
    """Cohort in which the queue lends and borrows."""
    weight: int
    namespace: str
    local_queue: str
    quotas: tuple[FlavorQuota, ...]
    """Quotas in the order in which Kueue tries their flavors."""
    moves_on: bool
    """True if a job that would have to preempt in one flavor first looks for free quota in the next one."""
    stop: Stop
    """Stop policy of the ClusterQueue."""


@dataclass(frozen=True)
class TeamPlan:
    """A team's namespace with its quotas and groups."""

    name: str
    namespace: str
    max_gpus: int
    """The most devices of all kinds that the team can use at once, borrowed ones included."""
    hard: dict[str, str]
    """ResourceQuota of the namespace, with one entry for each kind of device."""
    unqueued_gpus: int
    """Part of `max_gpus` that pods of `unqueued_priority_classes` may request. A sum over all kinds of devices."""
    unqueued_priority_classes: tuple[str, ...]
    container_limits: dict[str, str]
    """The most CPU and memory of a container: those of the largest node."""
    submitters: tuple[str, ...]
    """Groups whose members may start work in the namespace."""
    viewers: tuple[str, ...]
    """Groups whose members may only look at it."""
    cluster_queues: tuple[str, ...]
    """ClusterQueues that the team's work waits in."""
    projects: tuple[str, ...]
    """Projects that the team's work may be billed to. Empty: any project."""
    monthly_budget_usd: int | None
    unqueued_of: dict[str, int] = field(default_factory=dict[str, int], metadata=_LEFT_OUT)
    """`unqueued_gpus` by extended resource. Empty if all devices are NVIDIA GPUs."""
    unqueued_pools: tuple[str, ...] = field(default=(), metadata=_LEFT_OUT)
    """Pools that `unqueued_gpus` may be in."""

    def most_unqueued(self, resource: str) -> int:
        """Return the number of devices of one kind that the team's unqueued work may request."""
        return self.unqueued_of.get(resource, 0) if self.unqueued_of else self.unqueued_gpus if resource == GPU_RESOURCE else 0

    def most(self, resource: str) -> int:
        """Return the number of devices of one kind that the team may use at once."""
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
    """One pool that a class may use."""

    pool: str
    capacity_type: CapacityType
    flavor: str | None
    """Flavor under which a queue gives away the pool. None for unqueued classes."""


@dataclass(frozen=True)
class RoutePlan:
    """Access of the pods of a class to their capacity: pools, selectors, tolerations and time limits."""

    workload_class: str
    priority_class: str
    queued: bool
    pools: tuple[RoutePool, ...]
    """Pools in the order in which they are tried."""
    node_selector: dict[str, str]
    node_affinity: tuple[str, tuple[str, ...]] | None
    """Label and its allowed values: pods run only on nodes with one of them. None: no such condition."""
    tolerations: tuple[Taint, ...]
    grace_seconds: int
    """Grace period of the pods. It is no longer than the shortest notice of the pools."""
    max_run_seconds: int | None
    """The shortest of the class's limit and the pools' limits. None: a service."""
    checkpoint: bool
    disruption_budget: bool
    job_annotations: dict[str, str]
    """Annotations of jobs."""
    pod_annotations: dict[str, str]
    """Annotations of the pods of jobs."""
    resource: str = field(default=GPU_RESOURCE, metadata=_LEFT_OUT)
    """Extended resource by which pods request devices. All pools of a class have the same."""


@dataclass(frozen=True)
class ComputeClassPlan:
    """The GKE compute class of a workload class that moves on at a stock-out.

    On Autopilot a priority names no node pool. It describes the nodes that GKE creates: machine, GPUs and capacity type of a pool of the
    plan.
    """

    name: str
    pools: tuple[str, ...]
    """Pools in the order in which they are tried."""
    consolidation_delay_minutes: int
    """Minutes after which nodes that are not needed are removed."""


@dataclass(frozen=True)
class ClusterLimits:
    """The largest size of a GKE cluster that node auto-provisioning allows: pools, system nodes and other work together."""

    vcpu: int
    memory_gib: int


@dataclass(frozen=True)
class AdmissionPlan:
    """Admission policies of the API server."""

    mode: AdmissionMode
    owner_labels: bool
    """True if the policies copy the owner labels of a namespace to the work in it."""


@dataclass(frozen=True)
class PlanWarning:
    """A setting that works but is probably not intended."""

    rule: str
    """Name of the check that reports it."""
    path: str
    """Setting that it is about."""
    text: str
    """The problem and its remedy."""


@dataclass(frozen=True)
class Plan:
    """Everything that one stack consists of."""

    cloud: Platform
    environment: str
    region: str
    labels: dict[str, str]
    """Labels of every object."""
    pools: tuple[PoolPlan, ...]
    accelerators: dict[str, int]
    """Ceilings of the platform in GPUs, by accelerator."""
    limits: ClusterLimits | None
    """Limits of a GKE Standard cluster. None elsewhere."""
    compute_classes: tuple[ComputeClassPlan, ...]
    """Compute classes on GKE. Empty elsewhere."""
    topologies: tuple[TopologyPlan, ...]
    """Topologies on GKE. Empty elsewhere."""
    flavors: tuple[FlavorPlan, ...]
    pods_ready: PodsReady
    """Times for which the cluster's Kueue waits for pods."""
    priorities: tuple[PriorityPlan, ...]
    cohorts: tuple[CohortPlan, ...]
    queues: tuple[QueuePlan, ...]
    cpu_work: CpuWorkPlan | None
    """Queues of work without GPUs. None: the settings leave no room for it."""
    teams: tuple[TeamPlan, ...]
    routes: tuple[RoutePlan, ...]
    admission: AdmissionPlan
    versions: VersionPlan
    """Versions of everything that the stack installs."""
    spending: SpendingPlan
    """Costs in addition to the pools' machines, and the budget."""
    own_machines: dict[str, Machine]
    """Machines that the settings describe, by name. They take precedence over the catalog."""
    warnings: tuple[PlanWarning, ...]

    @property
    def every_flavor(self) -> tuple[FlavorPlan, ...]:
        """The flavors of GPUs, and the flavor of nodes without GPUs."""
        work = self.cpu_work
        return self.flavors if work is None else (*self.flavors, FlavorPlan(work.flavor, (), work.node_labels, (), (), work.unowned.amount))

    @property
    def every_cohort(self) -> tuple[CohortPlan, ...]:
        """The cohorts of GPUs, and the cohort of work without GPUs."""
        work = self.cpu_work
        if work is None:
            return self.cohorts
        unowned = (work.quota(work.unowned),) if work.unowned.vcpu or work.unowned.memory_mib else ()
        return (*self.cohorts, CohortPlan(work.cohort, None, 1, unowned))

    @property
    def every_queue(self) -> tuple[QueuePlan, ...]:
        """The queues of GPUs, each with its quota for launchers, and the queues of work without GPUs.

        The launchers' flavor comes before the flavors with GPUs, so that pods without GPUs get nodes without GPUs. No work preempts GPU
        jobs for their vCPU.
        """
        work = self.cpu_work
        if work is None:
            return self.queues
        parts = {each.namespace: each.launchers for each in work.queues if each.launchers.vcpu and each.launchers.memory_mib}
        nothing = Amount(0, 0, 0)
        first = {namespace: (FlavorQuota(work.flavor, part.amount, nothing, nothing),) for namespace, part in parts.items()}
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
        """Return the route of a class, or None if no pool serves it."""
        return next((each for each in self.routes if each.workload_class == workload_class), None)


def plan_data(plan: Plan) -> dict[str, Any]:
    """Return the plan as dicts, lists, strings and numbers, with fields in declared order. Equal plans give equal data."""
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
