"""Objects of audited clusters, and reports of `flexspot audit` on them. Not a test."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from served_cluster import Served, serving
from typer.testing import CliRunner

from flexspot.capacity.catalog.machines import Vendor
from flexspot.capacity.catalog.price_book import prices_of
from flexspot.infra.cli.app import app

if TYPE_CHECKING:
    from pathlib import Path

    from flexspot.capacity.catalog.capacity_type import CapacityType

OLD = "2026-01-01T00:00:00Z"


def node(name: str, machine: str, pool: dict[str, str], *, gpus: int = 1, taints: list[dict[str, str]] | None = None) -> dict[str, Any]:
    labels = {"node.kubernetes.io/instance-type": machine, "topology.kubernetes.io/region": "us-east-1", **pool}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "creationTimestamp": OLD},
        "spec": {"taints": taints or []},
        "status": {"allocatable": {"cpu": "4", **({"nvidia.com/gpu": str(gpus)} if gpus else {})}},
    }


GPU_TAINT = [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]


def pod(name: str, on: str, *, gpus: int = 0, tolerations: list[dict[str, str]] | None = None, owner: str = "ReplicaSet") -> dict[str, Any]:
    container = {"name": "main", "image": "a:1", "resources": {"limits": {"nvidia.com/gpu": str(gpus)} if gpus else {}}}
    owners = [{"kind": owner, "name": "a", "controller": True}] if owner else []
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "team-a", "ownerReferences": owners, "creationTimestamp": OLD},
        "spec": {"nodeName": on, "containers": [container], "tolerations": tolerations or []},
        "status": {"phase": "Running"},
    }


def namespace(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"team": "a"}}}


KARPENTER = {"karpenter.sh/nodepool": "l4", "karpenter.sh/capacity-type": "on-demand"}


GROUP = {"eks.amazonaws.com/nodegroup": "t4", "eks.amazonaws.com/capacityType": "ON_DEMAND"}


SPOT = [{"key": "flexspot.dev/capacity-type", "operator": "Equal", "value": "spot", "effect": "NoSchedule"}]


def audited(served: Served, folder: Path, *options: str) -> tuple[int, dict[str, Any]]:
    with serving(served, folder) as kubeconfig:
        ended = CliRunner().invoke(app, ["audit", "--kubeconfig", str(kubeconfig), "--format", "json", *options])
    assert ended.exception is None or isinstance(ended.exception, SystemExit), ended.exception
    return ended.exit_code, json.loads(ended.output)


def of_rule(report: dict[str, Any], rule: str) -> list[dict[str, Any]]:
    return [each for each in report["findings"] if each["rule"] == rule]


def month(machine: str, capacity_type: CapacityType) -> float:
    price = prices_of(Vendor.AWS).find(machine, "us-east-1", capacity_type)
    assert price is not None
    return float(price.usd_per_hour) * 730


def queued_job(name: str, *, suspend: bool) -> dict[str, Any]:
    """Return a Job in the queue `gpus` of its namespace, pending if `suspend`, otherwise admitted."""
    container = {"name": "a", "image": "a:1", "resources": {"limits": {"nvidia.com/gpu": 1}}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "team-a", "labels": {"kueue.x-k8s.io/queue-name": "gpus"}},
        "spec": {"suspend": suspend, "template": {"spec": {"containers": [container]}}},
    }


def queueing(kind: str, name: str, spec: dict[str, Any], **metadata: str) -> dict[str, Any]:
    """Return an object of Kueue."""
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": name, **metadata}, "spec": spec}


def deployment(name: str, space: str = "team-a") -> dict[str, Any]:
    container = {"name": "main", "image": "a:1", "resources": {"requests": {"nvidia.com/gpu": "2"}, "limits": {"nvidia.com/gpu": "1"}}}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container], "terminationGracePeriodSeconds": 30}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": space, "creationTimestamp": OLD, "managedFields": [{}], "uid": "1"},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": template},
        "status": {"replicas": 1},
    }
