"""What Karpenter, or a policy, would refuse of a GPU pool, told before anything is registered."""

import re
from collections.abc import Callable

from capacity.catalog.capacity_type import facts_of
from capacity.catalog.machines import Cloud, Machine, machines_of
from capacity.catalog.node_labels import GPU_RESOURCE
from capacity.catalog.unreachable_limits import NodeCeilings, out_of_reach
from components.karpenter.gpu_pool_args import GpuNodePoolArgs

TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")

# The standard parser of github.com/robfig/cron/v3, which Karpenter asks when the API server's looser pattern has let a schedule pass.
_CRON = re.compile(r"@(annually|yearly|monthly|weekly|daily|midnight|hourly)|([0-9A-Za-z*?/,-]+ ){4}[0-9A-Za-z*?/,-]+")

Complain = Callable[[str, object, str, str], None]


def check_gpu_pool(name: str, args: GpuNodePoolArgs) -> None:
    """Raises ValueError for a pool that cannot be safe or cannot be.

    The message begins with the rule's name where a policy has one, else it names the input, its value, what is allowed and the next step.
    """
    where = f"GpuNodePool {name}"

    def complain(argument: str, value: object, allowed: str, remedy: str) -> None:
        raise ValueError(f"{where}: {argument} is {value}; {allowed}; {remedy}")

    _check_limits(where, args)
    _check_machines(where, args, complain)
    _check_offers(args, complain)
    _check_taints(where, args, complain)
    _check_times(args, complain)


def _check_limits(where: str, args: GpuNodePoolArgs) -> None:
    ceilings = {key: args[key] for key in ("max_gpus", "max_nodes", "max_vcpu", "max_memory_mib")}
    if min(ceilings.values()) < 1:
        found = ", ".join(f"{key}={value}" for key, value in ceilings.items())
        raise ValueError(f"gpu-pool-without-limit: {where} has {found}; a GPU pool has a ceiling of at least one of each")
    allowed = NodeCeilings(args["max_nodes"], args["max_vcpu"], args["max_memory_mib"])
    if ended := out_of_reach([(machine, _gpus(machine)) for machine in _known(args)], args["max_gpus"], allowed):
        raise ValueError(
            f"gpu-limit-unreachable: {where} has max_gpus={args['max_gpus']}, but with {ended.machine.name} max_nodes={args['max_nodes']}, "
            f"max_vcpu={args['max_vcpu']} and max_memory_mib={args['max_memory_mib']} end it at {ended.gpus}; allow {ended.needed}, "
            "or lower max_gpus"
        )


def _check_machines(where: str, args: GpuNodePoolArgs, complain: Complain) -> None:
    if not args["machines"]:
        raise ValueError(f"{where}: machines is empty; name at least one instance type, such as g6.xlarge")
    if families := args.get("instance_families", []):
        for machine in args["machines"]:
            if machine.partition(".")[0] not in families:
                allowed = f"instance_families allow {', '.join(sorted(families))}"
                complain("machines", f"with {machine}", allowed, "add its family, or leave it out")
    count = args.get("gpus_per_node")
    for machine in _known(args):
        if count not in {None, _gpus(machine)}:
            complain("gpus_per_node", count, f"{machine.name} has {_gpus(machine)}", "give that, and machines with the same number alone")


def _check_offers(args: GpuNodePoolArgs, complain: Complain) -> None:
    known = list(facts_of("eks"))
    for each in args["capacity_types"] or ["none"]:
        if each not in known:
            complain("capacity_types", f"with {each}", f"Karpenter has {', '.join(known)}", "use one of these")
    weight = args["weight"]
    if weight is not None and not 1 <= weight <= 100:  # noqa: PLR2004 -- Karpenter's own bounds
        complain("weight", weight, "Karpenter takes 1 to 100", "use one of these")


def _check_taints(where: str, args: GpuNodePoolArgs, complain: Complain) -> None:
    if not any(taint["key"] == GPU_RESOURCE for taint in args["taints"]):
        keys = ", ".join(taint["key"] for taint in args["taints"]) or "none"
        raise ValueError(
            f"gpu-pool-without-taint: {where} has taints on {keys}; add one on {GPU_RESOURCE}, or other pods will fill its nodes"
        )
    for argument, taints in {"taints": args["taints"], "startup_taints": args.get("startup_taints", [])}.items():
        for taint in taints:
            if taint["effect"] not in TAINT_EFFECTS:
                complain(argument, f"{taint['key']}:{taint['effect']}", f"effects are {', '.join(TAINT_EFFECTS)}", "use one of these")
    kept = {taint["key"] for taint in args["taints"]}
    for taint in args.get("startup_taints", []):
        if taint["key"] in kept:
            complain("startup_taints", f"with {taint['key']}", "a startup taint is taken off, those in taints stay", "keep one of the two")


def _check_times(args: GpuNodePoolArgs, complain: Complain) -> None:
    if args["idle_seconds"] < 0:
        complain("idle_seconds", args["idle_seconds"], "it is 0 or more", "give seconds")
    if (expiry := args.get("expire_after_seconds")) is not None and expiry < 1:
        complain("expire_after_seconds", expiry, "it is 1 or more", "leave it out for nodes that never expire")
    if (grace := args.get("termination_grace_seconds")) is not None and grace < 1:
        complain("termination_grace_seconds", grace, "it is 1 or more", "leave it out for drains that wait")
    for quiet in args.get("quiet_hours", []):
        if not _CRON.fullmatch(quiet["schedule"]):
            complain(
                "quiet_hours.schedule", repr(quiet["schedule"]), "it is five fields of cron, by UTC", "write one such as '0 8 * * mon-fri'"
            )
        if quiet["hours"] < 1:
            complain("quiet_hours.hours", quiet["hours"], "it is 1 or more", "give whole hours, or leave the entry out")


def _known(args: GpuNodePoolArgs) -> list[Machine]:
    """The pool's machines that the catalog has; what it does not have cannot be counted."""
    catalog = machines_of(Cloud.AWS)
    return [machine for name in args["machines"] if (machine := catalog.get(name)) and machine.gpu]


def _gpus(machine: Machine) -> int:
    return machine.gpu.count if machine.gpu else 0
