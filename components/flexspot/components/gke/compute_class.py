"""A GKE ComputeClass: the priorities by which pods that select it get capacity, in GKE's format."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
import re
from typing import Any, NotRequired, TypedDict, cast

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from flexspot.capacity.catalog.capacity_type import CapacityType, facts_of
from flexspot.capacity.settings.gke_rules import CRITICAL_PODS_SECONDS
from flexspot.capacity.settings.pools import GkePool
from flexspot.capacity.values.errors import SettingsProblem
from flexspot.components.gke.gpu_pool_args import GkeMachineArgs, RequestedGpus, gpu_machine
from flexspot.components.shared_args import publish, refuse

GPU_DRIVERS = {"default": "default", "latest": "latest", "disabled": "autoinstall-disabled"}

_GRACES = (30, 120)
# GKE's bounds of a node that is not flex-start: 30 seconds to 120 days (GoogleCloudPlatform/cluster-autoscaler).
_SPOT_RUN_SECONDS = (30, 10_368_000)
_ON_AUTOPILOT = tuple(str(name) for name, facts in facts_of("gke").items() if facts.autopilot is not None)
_TIME_LIMITS = ("max_run_seconds", "shutdown_grace_seconds")
_CREATION_FIELDS = frozenset({"machine", "accelerator", "gpus", "capacity_type"})


class ComputeClassReservationArgs(TypedDict):
    """The reservation that a priority uses."""

    name: str
    """The reservation's name."""

    project: NotRequired[str | None]
    """Project that owns the reservation, if it is shared. Default: the cluster's."""


class ComputeClassPriorityArgs(TypedDict):
    """One priority: either `pools`, or a machine for which GKE creates pools itself (`machine`, `accelerator`, `gpus`, `capacity_type`)."""

    pools: NotRequired[list[str] | None]
    """Names of existing node pools. Excludes all other fields of the priority. Default: none."""

    machine: NotRequired[str | None]
    """Machine type of the pools that GKE creates, such as g2-standard-8. Default: none, GKE creates no pool."""

    accelerator: NotRequired[str | None]
    """GKE's name for the machine's GPUs, such as nvidia-l4. Default: none."""

    gpus: NotRequired[int | None]
    """GPUs per node. Default: none."""

    machine_description: NotRequired[GkeMachineArgs | None]
    """Description of a machine that is not in the catalog. Default: it is in the catalog."""

    capacity_type: NotRequired[str | None]
    """`spot` or `flex-start`. On Autopilot also `reserved` and `on-demand`. Default: none."""

    reservation: NotRequired[ComputeClassReservationArgs | None]
    """The reservation of a `reserved` priority, which requires one. Default: none."""

    zones: NotRequired[list[str] | None]
    """Zones in which nodes may start, such as us-central1-a. Default: those of the cluster."""

    driver: NotRequired[str | None]
    """`default` or `latest`: the driver that GKE installs. `disabled`: something else installs one. Default: default."""

    max_run_seconds: NotRequired[int | None]
    """Seconds after which each node ends: 600 to 604800 for flex-start, 30 to 10368000 for Spot. Default: 604800 for flex-start."""

    shutdown_grace_seconds: NotRequired[int | None]
    """Seconds between the termination signal and the end of a Spot node, 30 or 120. The last 15 are for system pods.

    Default: GKE's own, 30."""

    boot_disk_gib: NotRequired[int | None]
    """Size of a node's boot disk, in GiB, at least 10. Default: 200."""


def creates_pools(priority: ComputeClassPriorityArgs) -> bool:
    """Return whether GKE creates node pools for this priority."""
    return priority.get("pools") is None


def priority_spec(where: str, priority: ComputeClassPriorityArgs, *, autopilot: bool = False) -> dict[str, Any]:
    """Return a priority of a ComputeClass, with every value that GKE would add.

    Raises ValueError, beginning with `where`, for values that GKE's CRD would reject, and for capacity types without a ceiling. Autopilot
    has no ceilings, so all capacity types are allowed there, but no existing pools.
    """
    given = {key for key, value in priority.items() if value is not None}
    pools = priority.get("pools")
    if pools is not None:
        if autopilot:
            refuse(where, SettingsProblem("pools", ", ".join(pools), "Autopilot has no declared pools", "set machine and GPUs instead"))
        if beside := sorted(given - {"pools"}):
            refuse(where, SettingsProblem("pools", ", ".join(pools), f"cannot be combined with {', '.join(beside)}", "use two priorities"))
        if not pools or len(set(pools)) != len(pools):
            refuse(where, SettingsProblem("pools", ", ".join(pools) or "empty", "must be at least one pool, each once", ""))
        return {"nodepools": list(pools)}
    if missing := sorted(_CREATION_FIELDS - given):
        raise ValueError(f"{where}: {', '.join(missing)}: missing; set only pools, or all of {', '.join(sorted(_CREATION_FIELDS))}")
    return _created(where, priority, autopilot=autopilot)


def _created(where: str, priority: ComputeClassPriorityArgs, *, autopilot: bool) -> dict[str, Any]:
    capacity_type = priority.get("capacity_type")
    if autopilot and capacity_type not in _ON_AUTOPILOT:
        raise ValueError(f"{where}: capacity_type (is {capacity_type}): must be one of {', '.join(_ON_AUTOPILOT)} on Autopilot")
    if not autopilot and capacity_type not in {CapacityType.SPOT, CapacityType.FLEX_START}:
        problem = "must be spot or flex-start, because pools that GKE creates have no ceiling"
        refuse(where, SettingsProblem("capacity_type", str(capacity_type), problem, "for other types, list a pool with a ceiling in pools"))
    gpus, described = cast("int", priority.get("gpus")), priority.get("machine_description")
    machine = gpu_machine(where, RequestedGpus(str(priority.get("machine")), str(priority.get("accelerator")), gpus, described))
    if capacity_type == CapacityType.FLEX_START and not machine.flex_start:
        refuse(where, SettingsProblem("machine", machine.name, "DWS does not offer it", "use another machine, or spot"))
    if capacity_type == CapacityType.ON_DEMAND and not machine.on_demand:
        refuse(where, SettingsProblem("machine", machine.name, "Google does not sell it on demand", "use another machine, or spot"))
    driver = priority.get("driver") or "default"
    if driver not in GPU_DRIVERS:
        refuse(where, SettingsProblem("driver", driver, f"must be one of {', '.join(GPU_DRIVERS)}", ""))
    disk_gib = _given_or(GkePool.default("boot_disk_gib"), priority.get("boot_disk_gib"))
    least, most = GkePool.bounds("boot_disk_gib")
    if not least <= disk_gib <= most:
        refuse(where, SettingsProblem("boot_disk_gib", str(disk_gib), f"must be {least} to {most}", "use 100 or more for GPU images"))
    zones = priority.get("zones")
    scarce = capacity_type in {CapacityType.SPOT, CapacityType.FLEX_START}
    return {
        "machineType": machine.name,
        "gpu": {"type": priority.get("accelerator"), "count": priority.get("gpus"), "driverVersion": GPU_DRIVERS[driver]},
        **_capacity_fields(where, str(capacity_type), priority),
        "storage": {"bootDiskSize": disk_gib},
        # Scarce capacity is only in some zones. Balanced zones would wait for the one with the least.
        "location": {**({"zones": list(zones)} if zones else {}), "locationPolicy": "ANY" if scarce else "BALANCED"},
    }


def _capacity_fields(where: str, capacity_type: str, priority: ComputeClassPriorityArgs) -> dict[str, Any]:
    reservation = priority.get("reservation")
    if (capacity_type == CapacityType.RESERVED) != (reservation is not None):
        what = ": is required" if reservation is None else f" (is {reservation['name']}): is not allowed"
        raise ValueError(f"{where}: reservation{what} with capacity_type {capacity_type}; set it for reserved, and for no other")
    if capacity_type == CapacityType.SPOT:
        return _spot(where, priority)
    if capacity_type == CapacityType.FLEX_START:
        return _flex_start(where, priority)
    if beside := sorted(key for key in _TIME_LIMITS if priority.get(key) is not None):
        raise ValueError(f"{where}: {', '.join(beside)}: {capacity_type} nodes have no time limit; leave it out, or use spot or flex-start")
    if reservation is None:
        # Autopilot only uses reservations that are named, so open ones need no exclusion.
        return {"spot": False}
    project = reservation.get("project")
    named = {"name": reservation["name"], **({} if project is None else {"project": project})}
    return {"spot": False, "reservations": {"affinity": "Specific", "specific": [named]}}


def _spot(where: str, priority: ComputeClassPriorityArgs) -> dict[str, Any]:
    seconds, grace = priority.get("max_run_seconds"), priority.get("shutdown_grace_seconds")
    shortest, longest = _SPOT_RUN_SECONDS
    if seconds is not None and not shortest <= seconds <= longest:
        raise ValueError(
            f"{where}: max_run_seconds (is {seconds}): Spot allows {shortest} to {longest} (120 days); leave it out for no limit"
        )
    if grace is not None and grace not in _GRACES:
        refuse(where, SettingsProblem("shutdown_grace_seconds", str(grace), "a ComputeClass allows 30 or 120", "pods get 15 seconds less"))
    kubelet = {"shutdownGracePeriodSeconds": grace, "shutdownGracePeriodCriticalPodsSeconds": CRITICAL_PODS_SECONDS}
    return {
        "spot": True,
        **({} if seconds is None else {"maxRunDurationSeconds": seconds}),
        **({} if grace is None else {"nodeSystemConfig": {"kubeletConfig": kubelet}}),
    }


def _flex_start(where: str, priority: ComputeClassPriorityArgs) -> dict[str, Any]:
    if (grace := priority.get("shutdown_grace_seconds")) is not None:
        refuse(where, SettingsProblem("shutdown_grace_seconds", str(grace), "is only for spot", "leave it out"))
    facts = facts_of("gke")[CapacityType.FLEX_START]
    shortest, longest = facts.min_run_seconds or 0, facts.max_run_seconds or 0
    seconds = _given_or(longest, priority.get("max_run_seconds"))
    if not shortest <= seconds <= longest:
        problem = f"must be {shortest} (10 minutes) to {longest} (7 days) for flex-start"
        refuse(where, SettingsProblem("max_run_seconds", str(seconds), problem, "use checkpoints for longer work"))
    return {
        "flexStart": {"enabled": True},
        "maxRunDurationSeconds": seconds,
    }


def _given_or(default: int, given: int | None) -> int:
    return default if given is None else given


API_VERSION = "cloud.google.com/v1"

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_LONGEST_DELAY_MINUTES = 1440


class ComputeClassArgs(TypedDict):
    """Arguments of ComputeClass."""

    name: str
    """The class's name, which pods select as `cloud.google.com/compute-class`: up to 63 lower-case letters, digits and hyphens."""

    labels: NotRequired[dict[str, str]]
    """Labels of the object. Default: none."""

    priorities: list[ComputeClassPriorityArgs]
    """Priorities in the order to try them, at least one."""

    consolidation_delay_minutes: NotRequired[int]
    """Minutes without work after which a node is removed: 1 to 1440. Default: 10."""

    service_account: NotRequired[pulumi.Input[str] | None]
    """Email address of the service account of the nodes that GKE creates. Required if, and only if, a priority creates pools.

    Default: none."""

    owner_labels: NotRequired[dict[str, str]]
    """Labels that identify the owner of the nodes that GKE creates in reports. Default: none."""

    autopilot: NotRequired[bool]
    """True if the cluster is an Autopilot cluster. GKE then creates the nodes of every priority, and no priority names a pool.

    Default: False."""


class ComputeClass(pulumi.ComponentResource):
    """Capacity in priority order. A priority without stock falls through to the next, and only named machines are used.

    On-demand and reserved priorities are existing pools with a ceiling. GKE may also create pools for Spot and flex-start priorities,
    within the cluster's limits for node auto-provisioning. On Autopilot (GKE 1.30.3-gke.1451000) GKE creates all of them, and only quotas
    limit them: of queues, namespaces and the project. nodePoolAutoCreation is set there because Autopilot's example sets it, too:
    https://docs.cloud.google.com/kubernetes-engine/docs/how-to/autopilot-gpus. The field's reference only mentions Standard.

    Raises ValueError for values that GKE's CRD would reject, before anything is registered.
    """

    name: pulumi.Output[str]
    """The class's name."""

    def __init__(self, name: str, args: ComputeClassArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        _check(name, args)
        autopilot = args.get("autopilot", False)
        priorities = [
            priority_spec(f"ComputeClass {name}: priorities[{place}]", priority, autopilot=autopilot)
            for place, priority in enumerate(args["priorities"])
        ]
        super().__init__("flexspot:index:ComputeClass", name, {**args}, opts)
        creates = any(map(creates_pools, args["priorities"]))
        # Autopilot has one image and streams it. GKE documents both fields for Standard.
        image = {} if autopilot else {"imageType": "cos_containerd", "imageStreaming": {"enabled": True}}
        # GKE's autoscaler sets them on the pools that it creates (GoogleCloudPlatform/cluster-autoscaler). Not verified on Autopilot.
        owner_labels = args.get("owner_labels", {})
        owners = {"nodeLabels": dict(owner_labels)} if owner_labels else {}
        nodes = {"serviceAccount": args.get("service_account"), **owners, **image}
        CustomResource(
            f"{name}-compute-class",
            api_version=API_VERSION,
            kind="ComputeClass",
            metadata=ObjectMetaArgs(name=args["name"], labels=args.get("labels")),
            # Defaults are explicit: the server adds them, and they would show as changes in every later preview.
            spec={
                "priorities": priorities,
                "nodePoolAutoCreation": {"enabled": creates},
                **({"nodePoolConfig": nodes} if creates else {}),
                "whenUnsatisfiable": "DoNotScaleUp",
                "activeMigration": {"optimizeRulePriority": False},
                "autoscalingPolicy": {"consolidationDelayMinutes": args.get("consolidation_delay_minutes", 10)},
            },
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.name = pulumi.Output.from_input(args["name"])
        publish(self)


def _check(name: str, args: ComputeClassArgs) -> None:
    where = f"ComputeClass {name}"
    if not _NAME.fullmatch(args["name"]):
        refuse(where, SettingsProblem("name", args["name"], "must be 1 to 63 lower-case letters, digits and inner hyphens", "rename it"))
    if not args["priorities"]:
        refuse(where, SettingsProblem("priorities", "empty", "a class needs at least one", "add one, such as {pools: [POOL]}"))
    delay = args.get("consolidation_delay_minutes", 10)
    if not 1 <= delay <= _LONGEST_DELAY_MINUTES:
        refuse(where, SettingsProblem("consolidation_delay_minutes", str(delay), f"must be 1 to {_LONGEST_DELAY_MINUTES}", ""))
    creates, account = any(map(creates_pools, args["priorities"])), args.get("service_account")
    if creates and account is None:
        raise ValueError(f"{where}: service_account: is missing, so GKE's pools would use the project's default one; add one")
    if not creates and account is not None:
        refuse(where, SettingsProblem("service_account", "", "every priority names existing pools, which have their own", "leave it out"))
