"""Work of a team, and the policies that guard the team's share. Not a test."""

from __future__ import annotations

from typing import Any

from flexspot.policies.admission.guarantee import Guarantee, guarantee_policies
from flexspot.policies.admission.scheduling_options import CONTAINER_LIMITS, QUEUES

TEAM = "team-a"
FACTS = Guarantee({"gpu-notebooks": 28800, "gpu-training": 576000}, ("gpu-production",), 120, ("cloud.google.com/gce-topology-block",))
COMES, GOES, CLAIMS, STOPS = guarantee_policies(FACTS)
ANNOTATIONS = {QUEUES: "big=l4.l4-spot cpu= default=l4.l4-spot", CONTAINER_LIMITS: "cpu=16 memory=64Gi"}
"""Annotations of the team's namespace."""

Object = dict[str, Any]


DEADLINE = {"activeDeadlineSeconds": 576000}


def pod(*, gpus: int | str = 1, **more: Any) -> Object:
    safe = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    container: Object = {"name": "main", "image": "work:1", "securityContext": safe}
    if gpus:
        container["resources"] = {"limits": {"nvidia.com/gpu": gpus}}
    context = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    return {"priorityClassName": "gpu-training", "securityContext": context, "containers": [container], **more}


def made(api: str, kind: str, spec: Object, **metadata: Any) -> Object:
    labels = {"kueue.x-k8s.io/queue-name": "default"}
    return {"apiVersion": api, "kind": kind, "metadata": {"name": "x", "namespace": TEAM, "labels": labels, **metadata}, "spec": spec}


def job(spec: Object, ends: Object = DEADLINE, **metadata: Any) -> Object:
    return made("batch/v1", "Job", {**ends, "template": {"spec": spec}}, **metadata)
