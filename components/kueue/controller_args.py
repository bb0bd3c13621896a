"""What KueueController is told, and what of it Kueue or Kubernetes would refuse."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types.
from typing import NotRequired, TypedDict

from capacity.plan.kueue_configuration import ONE_BOOT, PodsReady


class PodsReadyArgs(TypedDict):
    """How long an admitted job may be without all its pods, and how often it is tried again. See capacity/plan/kueue_configuration.py."""

    timeout_seconds: int
    """From the admission on; 60 or more. It must fit the slowest capacity of all queues: Kueue has one for the cluster."""

    recovery_seconds: int
    """From the loss of a pod on; 60 or more."""

    requeues: int
    """How often; 0 or more. Then the Workload is deactivated and its Job stays suspended."""


class KueueControllerArgs(TypedDict):
    """Arguments of KueueController."""

    existing: NotRequired[bool]
    """Whether the cluster has its Kueue already, of v1beta2 and with fair sharing on; then nothing is installed. Default: false."""

    frameworks: NotRequired[list[str]]
    """Kinds of work that Kueue admits, in its own names. Default: batch/job and the kinds of JobSet."""

    pods_ready: NotRequired[PodsReadyArgs]
    """How long jobs wait for their nodes. Default: 45 minutes, 30 minutes once they have run, 10 requeues."""

    replicas: NotRequired[int]
    """Pods of the controller, of which one leads and all answer webhooks; 1 or more. Default: 2, of which one is always kept."""

    node_selector: NotRequired[dict[str, str]]
    """Labels of the nodes for the controller. Default: none, any node."""

    tolerations: NotRequired[list[dict[str, str]]]
    """Taints of these nodes that it tolerates. Default: none."""


def checked_pods_ready(name: str, args: KueueControllerArgs) -> PodsReady:
    """The times, and nothing else of the arguments out of bounds: raises ValueError."""
    if args.get("replicas", 2) < 1:
        raise ValueError(f"KueueController {name}: replicas is {args.get('replicas')}; use 1 or more")
    if "frameworks" in args and not args["frameworks"]:
        raise ValueError(f"KueueController {name}: frameworks is empty, which Kueue takes for batch/job; name the kinds, or leave it out")
    if "pods_ready" not in args:
        return ONE_BOOT
    times = args["pods_ready"]
    for field in ("timeout_seconds", "recovery_seconds"):
        if times[field] < 60:  # noqa: PLR2004 -- a minute
            raise ValueError(f"KueueController {name}: pods_ready.{field} is {times[field]}; no node boots in less than 60")
    if times["requeues"] < 0:
        raise ValueError(f"KueueController {name}: pods_ready.requeues is {times['requeues']}; use 0 for none, or more")
    return PodsReady(times["timeout_seconds"], times["recovery_seconds"], times["requeues"])
