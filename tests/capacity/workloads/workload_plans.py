"""Helpers: plans of the shipped stacks, and requests on them in which tests only write what they are about."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from flexspot.capacity.plan.build import plan_of_stack_file
from flexspot.capacity.workloads.kinds import objects_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexspot.capacity.plan.model import Plan
    from flexspot.capacity.workloads.pods import KubeObject

STACKS = ("local", "dev-gke", "prod-gke", "dev-eks", "prod-eks")

IMAGE = "registry.example.com/nlp/trainer:1.4"

_STACK_FILES = Path(__file__).resolve().parents[3] / "stacks"


@cache
def plan_of(stack: str) -> Plan:
    """Return the plan of a shipped stack."""
    return plan_of_stack_file(_STACK_FILES / f"Pulumi.{stack}.yaml").plan


def objects(stack: str, kind: str, **fields: Any) -> tuple[KubeObject, ...]:
    """Return the objects of a workload of class training, of a team with a share of everything."""
    team = {"local": "team-alpha", "dev-gke": "research", "dev-eks": "research"}.get(stack, "nlp")
    request = {"name": "bert", "team": team, "workload_class": "training", "image": IMAGE, **fields}
    # All nodes of these classes have eight GPUs, which a pod uses as a whole.
    whole = {"gpus": 8} if stack == "prod-eks" and request["workload_class"] in {"training", "spot-low"} else {}
    return objects_of(plan_of(stack), kind, {**whole, **request})


def job_of(stack: str, kind: str = "checkpointed-job", **fields: Any) -> KubeObject:
    """Return the Job among them."""
    return next(each for each in objects(stack, kind, **fields) if each["kind"] in {"Job", "JobSet"})


def pod_of(stack: str, kind: str = "checkpointed-job", **fields: Any) -> KubeObject:
    """Return the spec of its pods."""
    return job_of(stack, kind, **fields)["spec"]["template"]["spec"]


def variables(pod: KubeObject) -> dict[str, Any]:
    """Return the container's variables by name, in their order: a text, or its source."""
    return {each["name"]: each.get("value", each.get("valueFrom")) for each in pod["containers"][0]["env"]}


def pools_of(pod: KubeObject) -> list[str]:
    """Return the pools that the pod's affinity names."""
    [term] = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    return term["matchExpressions"][0]["values"]


def pod_specs(part: Any) -> Iterator[KubeObject]:
    """Yield the specs of all pods that an object would create, at any depth."""
    if isinstance(part, dict):
        fields = cast("dict[str, Any]", part)
        if "containers" in fields:
            yield fields
        part = list(fields.values())
    if isinstance(part, list):
        for each in cast("list[Any]", part):
            yield from pod_specs(each)
