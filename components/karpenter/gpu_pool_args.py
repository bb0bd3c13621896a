"""The arguments of GpuNodePool."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
from typing import NotRequired, TypedDict

from components.node_taint import NodeTaint


class NodeClassRef(TypedDict):
    """Which node class gives the pool's nodes their image, network and disks: Karpenter's group, kind and name of it."""

    group: str
    kind: str
    name: str


class QuietHours(TypedDict):
    """A time, by the clock of UTC, in which Karpenter takes no node away by its own choice, empty ones included."""

    schedule: str
    """When it begins: five fields of cron, such as `0 8 * * mon-fri`, or one word such as `@daily`."""

    hours: int
    """How long it lasts; at least 1."""


class GpuNodePoolArgs(TypedDict):
    """Arguments of GpuNodePool; all are plain because they shape the pool."""

    pool: str
    """The NodePool's name."""

    machines: list[str]
    """Instance types, such as g6.xlarge; at least one."""

    instance_families: NotRequired[list[str]]
    """Families that the machines are of, such as g6: a second fence around `machines`. Default: none is asked for."""

    gpus_per_node: NotRequired[int | None]
    """GPUs that each of the machines has, as karpenter.k8s.aws/instance-gpu-count. Default: it is not asked for."""

    capacity_types: list[str]
    """Values of karpenter.sh/capacity-type, in Karpenter's own words: spot, on-demand, reserved."""

    zones: NotRequired[list[str]]
    """Zones in which nodes may start, such as us-east-1a. Default, and when empty: those of the node class's subnets."""

    node_labels: dict[str, str]
    """Single-valued requirements: labels that a node has before it boots, and that pods may therefore select."""

    owner_labels: NotRequired[dict[str, str]]
    """Labels of its nodes that say whose they are, to reports. Default: none."""

    labels: dict[str, str]
    """Labels of the NodePool object."""

    taints: list[NodeTaint]
    """Taints of the nodes; one of them on nvidia.com/gpu."""

    startup_taints: NotRequired[list[NodeTaint]]
    """Taints that something on the node takes off once it is ready, such as a storage driver its own; an empty value is none.

    Pods need not tolerate them. One that nothing takes off keeps every pod away for ever. Default: none.
    """

    max_gpus: int
    """Ceiling in GPUs. Karpenter counts after launching, so a burst may go past it for a moment."""

    max_nodes: int
    """Ceiling in nodes."""

    max_vcpu: int
    """Ceiling in vCPU."""

    max_memory_mib: int
    """Ceiling in memory, in MiB."""

    idle_seconds: int
    """After how many seconds without work a node is removed."""

    moves_work: bool
    """Whether half-empty nodes are removed too, one in ten at a time, by moving what runs on them."""

    quiet_hours: NotRequired[list[QuietHours]]
    """Times without any removal by choice; interruptions, expiry and deletions by hand go on. Default: none."""

    expire_after_seconds: NotRequired[int | None]
    """Age at which a node is drained, whatever runs on it and whatever the budgets say. Default: never."""

    termination_grace_seconds: NotRequired[int | None]
    """Seconds after which a drain ends by force, disruption budgets of pods and karpenter.sh/do-not-disrupt notwithstanding.

    Default: a drain waits for its pods.
    """

    weight: int | None
    """The pool's place among those that a pod may run on: the highest first, 1 to 100. None: after all that have one."""

    node_class: NodeClassRef
    """The node class."""
