"""Kubernetes objects, their views, and the findings of rules about them. Not a test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from flexspot.capacity.values.verdict import Verdict
from flexspot.policies.core import judge_all
from flexspot.policies.inventory.reading import views_of
from flexspot.policies.inventory.reading.source import ObjectSource, from_manifest, from_pulumi
from flexspot.policies.inventory.views import Inventory, View
from flexspot.policies.judging import DEFAULTS
from flexspot.policies.rules import all_rules

if TYPE_CHECKING:
    from flexspot.policies.judging import Rule, Settings
    from flexspot.policies.values.finding import Finding

Manifest = dict[str, Any]
ViewT = TypeVar("ViewT", bound=View)


def manifest(api_version: str, kind: str, spec: Any, **metadata: Any) -> Manifest:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a", **metadata}, "spec": spec}


def kueue(kind: str, name: str, *, namespace: str = "team-a", **spec: Any) -> Manifest:
    return manifest("kueue.x-k8s.io/v1beta2", kind, spec, name=name, namespace=namespace)


def queues(*covered: str, local: str = "gpus", **flavor: Any) -> list[Manifest]:
    """Return a LocalQueue, its ClusterQueue with quota of these resources, and its flavor."""
    quotas = [{"name": each, "nominalQuota": 8} for each in covered]
    groups = [{"coveredResources": list(covered), "flavors": [{"name": "ladder", "resources": quotas}]}]
    return [
        kueue("LocalQueue", local, clusterQueue="all"),
        kueue("ClusterQueue", "all", resourceGroups=groups),
        kueue("ResourceFlavor", "ladder", **flavor),
    ]


def job(*resources: str, labels: Any = None, count: int = 1, spec: Any = None, **pod: Any) -> Manifest:
    """Return a Job with a container for each of the resources, by default for NVIDIA's GPUs."""
    limits = [{"limits": {each: count}} for each in resources or ["nvidia.com/gpu"]]
    containers = [{"name": f"c{place}", "image": "a:1", "resources": each} for place, each in enumerate(limits)]
    template = {"spec": {"containers": containers, **pod}}
    return manifest("batch/v1", "Job", {**(spec or {}), "template": template}, name="train", namespace="team-a", labels=labels or {})


def idle_job(**metadata: Any) -> Manifest:
    """Return a Job that runs on a GPU node and requests no GPU."""
    pod = {"nodeSelector": {"nvidia.com/gpu.present": "true"}, "containers": [{"name": "idle", "image": "busybox:1"}]}
    return manifest("batch/v1", "Job", {"template": {"spec": pod}}, **{"name": "job", "namespace": "team-a", **metadata})


def node_pool(*requirements: Any, taints: Any = (), labels: Any = None, **spec: Any) -> Manifest:
    """Return a NodePool. Requirements are mappings, or tuples of key, operator and values."""
    written = [each if isinstance(each, dict) else dict(zip(("key", "operator", "values"), each, strict=True)) for each in requirements]
    template = {"metadata": {"labels": labels or {}}, "spec": {"requirements": written, "taints": list(taints)}}
    return manifest("karpenter.sh/v1", "NodePool", {"template": template, **spec}, name="gpu")


def source_of(written: Manifest | tuple[str, Any]) -> ObjectSource:
    """Return the source of a manifest, or of a resource given by its type and inputs."""
    return from_manifest(written) if isinstance(written, dict) else from_pulumi(written[0], written[1].get("name", "a"), written[1])


def views(kind: type[ViewT], *written: Manifest | tuple[str, Any]) -> list[ViewT]:
    return [view for each in written for view in views_of(source_of(each)) if isinstance(view, kind)]


def inventory(*written: Manifest | tuple[str, Any]) -> Inventory:
    return Inventory(tuple(views(View, *written)))


def found(*written: Manifest | tuple[str, Any], closed: bool = False, settings: Settings = DEFAULTS, rule: str = "") -> list[Finding]:
    """Return the findings of all rules, or of one, about the objects."""
    rules: list[Rule] = [each for each in all_rules() if rule in {"", each.name}]
    judged = judge_all([source_of(each) for each in written], rules, settings, closed=closed)
    return [finding for findings in judged for finding in findings]


def failing(*written: Manifest | tuple[str, Any], closed: bool = False) -> dict[str, str]:
    """Return the message of the violation of each rule."""
    return {each.rule: each.message for each in found(*written, closed=closed) if each.verdict is Verdict.FAIL}
