"""The arguments of Team, and what is wrong with some."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types.
from typing import NotRequired, TypedDict

import pulumi

from capacity.catalog.node_labels import GPU_QUOTA


class EndpointArgs(TypedDict):
    """An address of the cloud that the team's pods must reach, and how."""

    cidr: str
    """The address as a range, such as 169.254.169.254/32."""

    protocols: list[str]
    """TCP, UDP or both."""

    ports: list[int]
    """The ports."""


class ContainerLimits(TypedDict):
    """The most that one container may have, as Kubernetes quantities. There is no such limit on GPUs: none is safe in a LimitRange."""

    cpu: str
    memory: str


class UnqueuedArgs(TypedDict):
    """What work that waits in no queue may have."""

    gpus: int
    """GPUs at once, at least zero."""

    priority_classes: list[str]
    """The PriorityClasses whose pods are counted; at least one."""


class TeamArgs(TypedDict):
    """Arguments of Team."""

    namespace: str
    """The namespace's name."""

    labels: dict[str, str]
    """Labels of every object of the team, those of its owner and of the team among them."""

    hard: dict[str, str]
    """The most that the namespace may hold at once, by ResourceQuota key, as Kubernetes quantities; `requests.nvidia.com/gpu` is one of
    them, borrowed GPUs included."""

    unqueued: NotRequired[UnqueuedArgs | None]
    """The part of the GPUs that work without queue may have. Default: no limit but that of `hard`."""

    container_limits: NotRequired[ContainerLimits | None]
    """The most that one container may have, and gets where it names no limit. Default: no LimitRange maximum; 1 CPU and 2 GiB where it
    names none."""

    submitters: NotRequired[list[str]]
    """Groups whose members may start and end work and reach it by port-forward, as the cluster knows them: on GKE a Google group's
    address, on EKS a group of an access entry. Default: none."""

    viewers: NotRequired[list[str]]
    """Groups whose members may look. Default: none."""

    endpoints: NotRequired[list[EndpointArgs]]
    """The cloud's own addresses, beside name servers in pods and HTTPS. Default: none."""

    service_account_annotations: NotRequired[dict[str, pulumi.Input[str]]]
    """Annotations of the service account `workloads`; on GKE iam.gke.io/gcp-service-account. Default: none, which is right for EKS."""


def check_team(name: str, args: TeamArgs) -> None:
    """Raises ValueError for arguments that the cluster would refuse, or take and not mean."""
    hard, unqueued = args["hard"], args.get("unqueued")
    if GPU_QUOTA not in hard:
        allowed = f"give {GPU_QUOTA}, 0 for a team without GPUs"
        raise ValueError(f"Team {name}: hard names {', '.join(sorted(hard)) or 'nothing'} and no ceiling in GPUs; {allowed}")
    for key, value in hard.items():
        if key.startswith("limits.") and "/" in key:
            counted = f"requests.{key.removeprefix('limits.')}"
            raise ValueError(f"Team {name}: hard names {key}, which Kubernetes takes and never counts; write {counted}")
        if value.startswith("-") or not value:
            raise ValueError(f"Team {name}: hard[{key}] is {value!r}; use a quantity of at least 0, such as '0' or '8'")
    if unqueued is not None and unqueued["gpus"] < 0:
        raise ValueError(f"Team {name}: unqueued.gpus is {unqueued['gpus']}; use 0 for a team without services, or a ceiling")
    if unqueued is not None and not unqueued["priority_classes"]:
        remedy = "name the classes without queue, or leave `unqueued` out"
        raise ValueError(f"Team {name}: unqueued.priority_classes is empty, so its {unqueued['gpus']} GPUs are of nobody; {remedy}")
    for argument, groups in {"submitters": args.get("submitters", []), "viewers": args.get("viewers", [])}.items():
        for group in groups:
            if not group or group.startswith("system:"):
                remedy = "name a group of people: every user is in some of the cluster's own"
                raise ValueError(f"Team {name}: {argument} names {group!r}; {remedy}")
