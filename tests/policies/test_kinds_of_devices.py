"""Rules that speak of accelerators name the kind that is meant, and do not take one kind for another."""

from __future__ import annotations

from typing import Any

import pytest

from capacity.values.verdict import Verdict
from policies.core import judge_all
from policies.inventory.reading.source import from_manifest
from policies.judging import DEFAULTS
from policies.rules import all_rules

NVIDIA, NEURON = "nvidia.com/gpu", "aws.amazon.com/neuron"


def told(rule: str, *objects: dict[str, Any]) -> list[str]:
    """What a rule says is wrong, and its remedies, when these are all objects that there are."""
    [of_rule] = [each for each in all_rules() if each.name == rule]
    judged = judge_all([from_manifest(each) for each in objects], [of_rule], DEFAULTS, closed=True)
    return [f"{each.message}; {each.remediation}" for listed in judged for each in listed if each.verdict is Verdict.FAIL]


def job(*resources: str, count: int = 1) -> dict[str, Any]:
    containers = [{"name": f"c{place}", "image": "a:1", "resources": {"limits": {each: count}}} for place, each in enumerate(resources)]
    metadata = {"name": "train", "namespace": "team-a", "labels": {"kueue.x-k8s.io/queue-name": "gpus"}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": {"spec": {"containers": containers}}}}


def queue(*covered: str) -> list[dict[str, Any]]:
    version = "kueue.x-k8s.io/v1beta2"
    quotas = [{"name": each, "nominalQuota": 8} for each in covered]
    groups = [{"coveredResources": list(covered), "flavors": [{"name": "a", "resources": quotas}]}]
    local = {
        "apiVersion": version,
        "kind": "LocalQueue",
        "metadata": {"name": "gpus", "namespace": "team-a"},
        "spec": {"clusterQueue": "a"},
    }
    return [local, {"apiVersion": version, "kind": "ClusterQueue", "metadata": {"name": "a"}, "spec": {"resourceGroups": groups}}]


@pytest.mark.parametrize(
    "asked,covered,missing",
    [
        ([NEURON], ["cpu", NVIDIA], NEURON),
        ([NVIDIA], ["cpu", NEURON], NVIDIA),
        ([NVIDIA, NEURON], ["cpu", NVIDIA], NEURON),
        ([NVIDIA, NEURON], ["cpu"], f"{NEURON} and {NVIDIA}"),
        (["nvidia.com/gpu.shared"], ["cpu", NVIDIA], "nvidia.com/gpu.shared"),
        ([NEURON], ["cpu", NEURON], ""),
    ],
)
def test_work_is_told_which_devices_its_queue_does_not_give(asked: list[str], covered: list[str], missing: str) -> None:
    found = told("work-in-the-wrong-queue", job(*asked), *queue(*covered))

    assert bool(found) is bool(missing)
    assert all(f"it requests {missing}, but" in each and f"has no quota of {missing}: it waits" in each for each in found)
    assert all(f"has quota of {missing}, or" in each for each in found)


@pytest.mark.parametrize("by", ["its queue", "its pods"])
@pytest.mark.parametrize(
    "kinds,keys",
    [
        ([NEURON], "requests.aws.amazon.com/neuron"),
        ([NVIDIA], "requests.nvidia.com/gpu"),
        ([NVIDIA, NEURON], "requests.nvidia.com/gpu and requests.aws.amazon.com/neuron"),
    ],
)
def test_a_namespace_is_told_the_quota_keys_of_the_devices_that_it_uses(by: str, kinds: list[str], keys: str) -> None:
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"}}

    [found] = told("namespace-without-gpu-quota", space, *(queue(*kinds) if by == "its queue" else [job(*kinds)]))

    assert f"with spec.hard {keys}:" in found
