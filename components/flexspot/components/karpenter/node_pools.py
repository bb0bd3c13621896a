"""Karpenter NodePools: for machines with GPUs or other accelerators, and for work without GPUs."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
import re
from collections.abc import Iterable
from typing import Any, NotRequired, TypedDict

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from flexspot.capacity.catalog.accelerators import NVIDIA, ON_EC2, Accelerator
from flexspot.capacity.catalog.capacity_type import facts_of
from flexspot.capacity.catalog.machines import Machine, Vendor, machines_of
from flexspot.capacity.catalog.node_labels import (
    ARCHITECTURE_LABEL,
    CAPACITY_TYPE_LABEL,
    INSTANCE_TYPE_LABEL,
    KARPENTER_INSTANCE,
    zone_label,
)
from flexspot.capacity.catalog.price_book import prices_of
from flexspot.capacity.catalog.unreachable_limits import NodeCeilings, out_of_reach
from flexspot.capacity.plan.cpu_work import largest_vcpu
from flexspot.capacity.values.cron import cron_problem
from flexspot.capacity.values.errors import SettingsProblem
from flexspot.components.shared_args import NodeTaint, publish, refuse


def written_taint(taint: NodeTaint) -> dict[str, str]:
    """Return a taint without its value if that is empty. An empty value does not match the pattern in NodePool's definition."""
    named = {"key": taint["key"], "effect": taint["effect"]}
    return {"key": taint["key"], "value": taint["value"], "effect": taint["effect"]} if taint["value"] else named


def startup_taints(taints: Iterable[NodeTaint]) -> dict[str, list[dict[str, str]]]:
    """Return the field of a node template, or no field if there are no taints, because the server drops an empty list."""
    written = [written_taint(taint) for taint in taints]
    return {"startupTaints": written} if written else {}


def owner_metadata(owner_labels: dict[str, str]) -> dict[str, Any]:
    """Return the metadata of a NodePool's template, empty without labels. A change is drift of the existing nodes.

    Karpenter also lets pods select nodes by such labels. Nothing here does.
    """
    return {"metadata": {"labels": dict(sorted(owner_labels.items()))}} if owner_labels else {}


class NodeClassRef(TypedDict):
    """The node class that gives the pool's nodes their image, network and disks."""

    group: str
    """The API group, such as karpenter.k8s.aws."""

    kind: str
    """The kind, such as EC2NodeClass."""

    name: str
    """The object's name."""


class QuietHours(TypedDict):
    """A period, in UTC, in which Karpenter does not voluntarily remove nodes, not even empty ones."""

    schedule: str
    """Start of the period: a cron expression with five fields, such as `0 8 * * mon-fri`, or one word such as `@daily`."""

    hours: int
    """Length in hours, at least 1."""


class GpuNodePoolArgs(TypedDict):
    """Arguments of GpuNodePool. All are plain because they shape the pool."""

    pool: str
    """The NodePool's name."""

    machines: list[str]
    """Instance types, such as g6.xlarge. At least one."""

    instance_families: NotRequired[list[str]]
    """Instance families of the machines, such as g6, as a second restriction in addition to `machines`. Default: no restriction."""

    gpus_per_node: NotRequired[int | None]
    """GPUs per machine, as karpenter.k8s.aws/instance-gpu-count, or devices of `resource`, as ...-accelerator-count. Default: no
    restriction."""

    resource: NotRequired[str]
    """The resource by which pods request the accelerators: nvidia.com/gpu or aws.amazon.com/neuron. The limit and the taint also use it.

    Default: nvidia.com/gpu."""

    instance_labels: NotRequired[str]
    """Prefix of the label keys with which Karpenter describes a machine. In EKS Auto Mode: eks.amazonaws.com/instance-.

    Default: karpenter.k8s.aws/instance-."""

    capacity_types: list[str]
    """Values of karpenter.sh/capacity-type, in Karpenter's terms: spot, on-demand, reserved."""

    zones: NotRequired[list[str]]
    """Zones in which nodes may start, such as us-east-1a, or zone ids, such as use1-az1. Default, also if empty: the zones of the node
    class's subnets."""

    node_labels: dict[str, str]
    """Requirements with one value. Nodes have these labels before they boot, so that pods can select them."""

    owner_labels: NotRequired[dict[str, str]]
    """Labels of its nodes that identify their owner in reports. Default: none."""

    labels: dict[str, str]
    """Labels of the NodePool object."""

    taints: list[NodeTaint]
    """Taints of the nodes. One of them must be on `resource`."""

    startup_taints: NotRequired[list[NodeTaint]]
    """Taints that something on the node, such as a storage driver, removes once it is ready. An empty value means none.

    Pods need not tolerate them. If nothing removes a taint, no pod can ever run on the node. Default: none."""

    max_gpus: int
    """Maximum GPUs. Karpenter counts after launching, so a burst may briefly exceed it."""

    max_nodes: int
    """Maximum nodes."""

    max_vcpu: int
    """Maximum vCPU."""

    max_memory_mib: int
    """Maximum memory, in MiB."""

    idle_seconds: int
    """Seconds without work after which a node is removed."""

    consolidates: bool
    """If true, half-empty nodes are also removed, one in ten at a time, by moving their pods."""

    quiet_hours: NotRequired[list[QuietHours]]
    """Periods without voluntary removals; interruptions, expiry and manual deletions continue. Default: none."""

    expire_after_seconds: NotRequired[int | None]
    """Age in seconds at which a node is drained, regardless of running work and budgets. Default: never."""

    termination_grace_seconds: NotRequired[int | None]
    """Seconds after which a drain is forced to end, despite PodDisruptionBudgets and karpenter.sh/do-not-disrupt.

    Default: a drain waits for its pods."""

    weight: NotRequired[int | None]
    """Priority among the pools that a pod may run on, 1 to 100. The highest is used first. Default: after all pools with a weight."""

    node_class: NodeClassRef
    """The node class."""


TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")

_CRON_WORD = re.compile(r"@(annually|yearly|monthly|weekly|daily|midnight|hourly)")
"""A schedule of one word, as in NodePool's own pattern."""

_BY_RESOURCE = {each.resource: each for each in ON_EC2}


def check_gpu_pool(name: str, args: GpuNodePoolArgs) -> None:
    """Raise ValueError for a pool that is unsafe or impossible.

    The message begins with the rule's name if a policy has one. Otherwise it names the input, its value, what is allowed and the next step.
    """
    where = f"GpuNodePool {name}"
    if (resource := args.get("resource")) is not None and resource not in _BY_RESOURCE:
        refuse(where, SettingsProblem("resource", resource, "is not a resource of accelerators", f"use one of {', '.join(_BY_RESOURCE)}"))
    _check_limits(where, args)
    _check_machines(where, args)
    _check_offers(where, args)
    _check_taints(where, args)
    _check_times(where, args)


def _check_limits(where: str, args: GpuNodePoolArgs) -> None:
    ceilings = {key: args[key] for key in ("max_gpus", "max_nodes", "max_vcpu", "max_memory_mib")}
    if min(ceilings.values()) < 1:
        found = ", ".join(f"{key}={value}" for key, value in ceilings.items())
        raise ValueError(f"gpu-pool-without-limit: {where} has {found}; set each of these ceilings to at least 1")
    allowed = NodeCeilings(args["max_nodes"], args["max_vcpu"], args["max_memory_mib"])
    if ended := out_of_reach([(machine, _gpus(machine)) for machine in _known(args)], args["max_gpus"], allowed):
        raise ValueError(
            f"gpu-limit-unreachable: {where} has max_gpus={args['max_gpus']}, but with {ended.machine.name} max_nodes={args['max_nodes']}, "
            f"max_vcpu={args['max_vcpu']} and max_memory_mib={args['max_memory_mib']} allow only {ended.gpus}; allow "
            f"{ended.needed}, or lower max_gpus"
        )


def _check_machines(where: str, args: GpuNodePoolArgs) -> None:
    if not args["machines"]:
        refuse(where, SettingsProblem("machines", "", "is empty", "name at least one instance type, such as g6.xlarge"))
    if families := args.get("instance_families", []):
        for machine in args["machines"]:
            if (family := machine.partition(".")[0]) not in families:
                problem = f"is not in instance_families ({', '.join(sorted(families))})"
                refuse(where, SettingsProblem("machines", machine, problem, f"add {family}, or remove the machine"))
    count = args.get("gpus_per_node")
    accelerator, remedy = _accelerator(args), "use that value, and only machines with the same"
    for machine in _known(args):
        if machine.gpu is not None and machine.gpu.accelerator is not accelerator:
            found = f"{machine.name} has {machine.gpu.accelerator.resource}"
            refuse(where, SettingsProblem("resource", accelerator.resource, found, remedy))
        if count not in {None, _gpus(machine)}:
            refuse(where, SettingsProblem("gpus_per_node", str(count), f"{machine.name} has {_gpus(machine)}", remedy))


def _check_offers(where: str, args: GpuNodePoolArgs) -> None:
    known = list(facts_of("eks"))
    for each in args["capacity_types"] or ["empty"]:
        if each not in known:
            problem = f"Karpenter's capacity types are {', '.join(known)}"
            refuse(where, SettingsProblem("capacity_types", each, problem, "use at least one of these"))
    if (weight := args.get("weight")) is not None and not 1 <= weight <= 100:  # noqa: PLR2004 -- Karpenter's own bounds
        refuse(where, SettingsProblem("weight", str(weight), "Karpenter accepts 1 to 100", "use a number in that range"))


def _check_taints(where: str, args: GpuNodePoolArgs) -> None:
    wanted = _accelerator(args).taint_key
    if not any(taint["key"] == wanted for taint in args["taints"]):
        found = f"taints on {', '.join(taint['key'] for taint in args['taints'])}" if args["taints"] else "no taints"
        raise ValueError(f"gpu-pool-without-taint: {where} has {found}; add one on {wanted}, or other pods will fill its nodes")
    for argument, taints in {"taints": args["taints"], "startup_taints": args.get("startup_taints", [])}.items():
        for taint in taints:
            if taint["effect"] not in TAINT_EFFECTS:
                written, remedy = f"{taint['key']}:{taint['effect']}", f"use one of {', '.join(TAINT_EFFECTS)}"
                refuse(where, SettingsProblem(argument, written, f"{taint['effect']} is not an effect", remedy))
    kept = {taint["key"] for taint in args["taints"]}
    for taint in args.get("startup_taints", []):
        if taint["key"] in kept:
            problem = "is also in taints, which stay, but startup taints are removed"
            refuse(where, SettingsProblem("startup_taints", taint["key"], problem, "keep one of the two"))


def _check_times(where: str, args: GpuNodePoolArgs) -> None:
    if (idle := args["idle_seconds"]) < 0:
        refuse(where, SettingsProblem("idle_seconds", str(idle), "must be 0 or more", "give a number of seconds"))
    at_least_one = "must be 1 or more"
    if (expiry := args.get("expire_after_seconds")) is not None and expiry < 1:
        refuse(where, SettingsProblem("expire_after_seconds", str(expiry), at_least_one, "leave it out for nodes that never expire"))
    if (grace := args.get("termination_grace_seconds")) is not None and grace < 1:
        refuse(where, SettingsProblem("termination_grace_seconds", str(grace), at_least_one, "leave it out for drains without a limit"))
    for quiet in args.get("quiet_hours", []):
        schedule = quiet["schedule"]
        if not _CRON_WORD.fullmatch(schedule) and (problem := cron_problem(schedule)):
            allowed = f"must be a cron expression with five fields, in UTC ({problem})"
            refuse(where, SettingsProblem("quiet_hours.schedule", repr(schedule), allowed, "write one such as '0 8 * * mon-fri'"))
        if (hours := quiet["hours"]) < 1:
            refuse(where, SettingsProblem("quiet_hours.hours", str(hours), at_least_one, "give whole hours, or leave the entry out"))


def _known(args: GpuNodePoolArgs) -> list[Machine]:
    """Return the pool's machines that are in the catalog. The GPUs of others are unknown."""
    catalog = machines_of(Vendor.AWS)
    return [machine for name in args["machines"] if (machine := catalog.get(name)) and machine.gpu]


def _accelerator(args: GpuNodePoolArgs) -> Accelerator:
    return _BY_RESOURCE[args.get("resource", NVIDIA.resource)]


def _gpus(machine: Machine) -> int:
    return machine.gpu.count if machine.gpu else 0


_FAMILY = "family"


class GpuNodePool(pulumi.ComponentResource):
    """A NodePool whose nodes exist only while pods need them: from zero, up to a ceiling, and removed when empty.

    Empty nodes are all removed at once. With Karpenter's default budget of 10 % a handful would be removed one after the other. Drift never
    removes nodes from running work, nor do expiry or consolidation unless `expire_after_seconds` or `consolidates` say so.

    Raises ValueError, before anything is registered: under the name of its rule for a pool that a policy would reject (a ceiling below one,
    a GPU ceiling that the others make unreachable, or no taint on `resource`), and for values that Karpenter would reject.
    """

    name: pulumi.Output[str]
    """The NodePool's name."""

    def __init__(self, name: str, args: GpuNodePoolArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        check_gpu_pool(name, args)
        super().__init__("flexspot:index:GpuNodePool", name, {**args}, opts)
        CustomResource(
            f"{name}-node-pool",
            api_version="karpenter.sh/v1",
            kind="NodePool",
            metadata=ObjectMetaArgs(name=args["pool"], labels=args["labels"]),
            spec={
                "template": {**owner_metadata(args.get("owner_labels", {})), "spec": _node(args)},
                "disruption": _disruption(args),
                **({} if (weight := args.get("weight")) is None else {"weight": weight}),
                "limits": {
                    _accelerator(args).resource: str(args["max_gpus"]),
                    "nodes": str(args["max_nodes"]),
                    "cpu": str(args["max_vcpu"]),
                    "memory": f"{args['max_memory_mib']}Mi",
                },
            },
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.name = pulumi.Output.from_input(args["pool"])
        publish(self)


def _node(args: GpuNodePoolArgs) -> dict[str, Any]:
    expiry, grace = args.get("expire_after_seconds"), args.get("termination_grace_seconds")
    return {
        "requirements": [{"key": key, "operator": "In", "values": values} for key, values in _requirements(args).items()],
        "nodeClassRef": dict(args["node_class"]),
        "taints": [written_taint(taint) for taint in args["taints"]],
        **startup_taints(args.get("startup_taints", [])),
        "expireAfter": "Never" if expiry is None else f"{expiry}s",
        **({} if grace is None else {"terminationGracePeriod": f"{grace}s"}),
    }


def _requirements(args: GpuNodePoolArgs) -> dict[str, list[str]]:
    """Return the allowed values of each label. GPU count and family restrict machines here. They are not labels that pods select by."""
    taken = {CAPACITY_TYPE_LABEL: args["capacity_types"], INSTANCE_TYPE_LABEL: args["machines"]}
    if zones := args.get("zones"):
        taken[zone_label(zones)] = sorted(zones)
    begins = args.get("instance_labels", KARPENTER_INSTANCE)
    if families := args.get("instance_families"):
        taken[f"{begins}{_FAMILY}"] = sorted(families)
    if (count := args.get("gpus_per_node")) is not None:
        taken[f"{begins}{_accelerator(args).instance_label}-count"] = [str(count)]
    return taken | {key: [value] for key, value in args["node_labels"].items() if key not in taken}


def _disruption(args: GpuNodePoolArgs) -> dict[str, Any]:
    moves = args["consolidates"]
    return {
        "consolidationPolicy": "WhenEmptyOrUnderutilized" if moves else "WhenEmpty",
        "consolidateAfter": f"{args['idle_seconds']}s",
        # Karpenter uses the strictest of all budgets that apply at once.
        "budgets": [
            {"nodes": "100%", "reasons": ["Empty"]},
            {"nodes": "10%" if moves else "0", "reasons": ["Underutilized"]},
            {"nodes": "10%" if moves else "0", "reasons": ["Drifted"]},
            *({"nodes": "0", "schedule": quiet["schedule"], "duration": f"{quiet['hours']}h"} for quiet in args.get("quiet_hours", [])),
        ],
    }


_HYPERVISOR, _CPU = "hypervisor", "cpu"

_NITRO = "nitro"
"""The hypervisor that the images and Karpenter's network limits are for. Bare metal has none, and costs more."""


class CpuNodePoolArgs(TypedDict):
    """Arguments of CpuNodePool."""

    pool: str
    """The NodePool's name."""

    labels: dict[str, str]
    """Labels of the NodePool object."""

    owner_labels: NotRequired[dict[str, str]]
    """Labels of its nodes that identify their owner in reports. Default: none."""

    max_vcpu: int
    """Maximum vCPU, at least 1."""

    max_memory_gib: int
    """Maximum memory in GiB, at least 1."""

    node_class: NodeClassRef
    """The node class."""

    zones: NotRequired[list[str]]
    """Zones in which nodes may start. Default: the zones of the node class's subnets."""

    startup_taints: NotRequired[list[NodeTaint]]
    """Taints that something on the node, such as a storage driver, removes once it is ready. Default: none."""

    capacity_types: NotRequired[list[str]]
    """Values of karpenter.sh/capacity-type. Default: spot and on-demand. Karpenter tries spot first."""

    idle_seconds: NotRequired[int]
    """Seconds after which a node that is not needed is removed. Default: 60."""

    expire_after_hours: NotRequired[int]
    """Age in hours at which a node is drained. Default: 720, 30 days."""

    instance_labels: NotRequired[str]
    """Prefix of the label keys with which Karpenter describes a machine. In EKS Auto Mode: eks.amazonaws.com/instance-.

    Default: karpenter.k8s.aws/instance-."""


def consolidating_disruption(idle_seconds: int) -> dict[str, Any]:
    """Return the disruption settings of nodes whose work may move: empty ones are removed all at once, others one in ten at a time."""
    return {
        "consolidationPolicy": "WhenEmptyOrUnderutilized",
        "consolidateAfter": f"{idle_seconds}s",
        "budgets": [{"nodes": "100%", "reasons": ["Empty"]}, {"nodes": "10%", "reasons": ["Underutilized", "Drifted"]}],
    }


class CpuNodePool(pulumi.ComponentResource):
    """Nodes without GPUs for pods that tolerate no taint, such as data preparation, launchers and dashboards, from zero up to a ceiling.

    Machines belong to the general-purpose Intel and AMD families with known prices (`families` of
    flexspot/capacity/catalog/prices/aws.yaml), so that their maximum cost can be computed. They never have accelerators: GPU machines
    belong to GPU pools. Nodes are replaced by cheaper or fuller ones, one in ten at a time, and by age. Pods that must not be moved carry
    karpenter.sh/do-not-disrupt, or run as a Job of a class. Labels: Karpenter AWS provider v1.14, well-known labels.

    Raises ValueError for a ceiling below one.
    """

    name: pulumi.Output[str]
    """The NodePool's name."""

    def __init__(self, name: str, args: CpuNodePoolArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        for key, ceiling in {"max_vcpu": args["max_vcpu"], "max_memory_gib": args["max_memory_gib"]}.items():
            if ceiling < 1:
                refuse(f"CpuNodePool {name}", SettingsProblem(key, str(ceiling), "must be at least 1", "leave the pool out for no nodes"))
        super().__init__("flexspot:index:CpuNodePool", name, {**args}, opts)
        begins = args.get("instance_labels", KARPENTER_INSTANCE)
        wanted = {
            CAPACITY_TYPE_LABEL: args.get("capacity_types", ["spot", "on-demand"]),
            ARCHITECTURE_LABEL: ["amd64"],
            f"{begins}{_FAMILY}": prices_of(Vendor.AWS).family_names,
            f"{begins}{_HYPERVISOR}": [_NITRO],
            **({zone_label(zones): sorted(zones)} if (zones := args.get("zones")) else {}),
        }
        requirements = [{"key": key, "operator": "In", "values": values} for key, values in wanted.items()]
        bounds = [
            {"key": f"{begins}{_CPU}", "operator": "Lt", "values": [str(largest_vcpu(args["max_vcpu"]) + 1)]},
        ]
        CustomResource(
            f"{name}-node-pool",
            api_version="karpenter.sh/v1",
            kind="NodePool",
            metadata=ObjectMetaArgs(name=args["pool"], labels=args["labels"]),
            spec={
                "template": {
                    **owner_metadata(args.get("owner_labels", {})),
                    "spec": {
                        "requirements": [*requirements, *bounds],
                        "nodeClassRef": dict(args["node_class"]),
                        **startup_taints(args.get("startup_taints", [])),
                        "expireAfter": f"{args.get('expire_after_hours', 720)}h",
                        # A drain without a limit would keep an old node, with whatever is wrong with it, forever.
                        "terminationGracePeriod": "24h",
                    },
                },
                "disruption": consolidating_disruption(args.get("idle_seconds", 60)),
                "limits": {"cpu": str(args["max_vcpu"]), "memory": f"{args['max_memory_gib']}Gi"},
            },
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.name = pulumi.Output.from_input(args["pool"])
        publish(self)
