"""`python tests/bench_policies.py`: cost of all rules for one resource in a state of a thousand, and its growth."""

from __future__ import annotations

import statistics
import time
from typing import Any

from rich.console import Console

from flexspot.policies.core import judge_all
from flexspot.policies.inventory.reading.source import from_pulumi
from flexspot.policies.judging import DEFAULTS
from flexspot.policies.rules import all_rules

_ROUNDS = 3
_RESOURCES, _TEAMS, _POOLS, _JOBS = 1000, 100, 10, 300

Resource = tuple[str, str, dict[str, Any]]
"""Type token, name and inputs."""


def resources(times: int = 1) -> list[Resource]:
    """Return a platform of ten Spot pools and a hundred teams with their queues, quotas and jobs, or `times` that.

    No rule concerns the rest.
    """
    total, teams, pools, jobs = (count * times for count in (_RESOURCES, _TEAMS, _POOLS, _JOBS))
    made = [each for number in range(pools) for each in _pool(f"pool-{number}")]
    made += [each for number in range(teams) for each in _team(f"team-{number}", _pools_of(number, pools))]
    made += [_job(f"job-{number}", f"team-{number % teams}", _pools_of(number % teams, pools)[number % 4 :]) for number in range(jobs)]
    return made + [_object("v1", "ConfigMap", f"other-{number}", {"data": {"a": "b"}}) for number in range(total - len(made))]


def _pools_of(team: int, pools: int) -> list[str]:
    """Return the pools of a team, at most ten."""
    return [f"pool-{(team + number) % pools}" for number in range(min(_POOLS, pools))]


def _object(api_version: str, kind: str, name: str, body: dict[str, Any], namespace: str | None = None) -> Resource:
    metadata = {"name": name, "labels": {"team": "bench"}, **({"namespace": namespace} if namespace else {})}
    token = f"kubernetes:{api_version if '/' in api_version else f'core/{api_version}'}:{kind}"
    return token, f"{kind}-{namespace}-{name}", {"apiVersion": api_version, "kind": kind, "metadata": metadata, **body}


def _pool(name: str) -> list[Resource]:
    requirements = [
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]},
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["g6.xlarge", "g6.2xlarge"]},
    ]
    taints = [{"key": key, "value": "spot", "effect": "NoSchedule"} for key in ("nvidia.com/gpu", "flexspot.dev/capacity-type")]
    node = {"expireAfter": "Never", "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": name}}
    spec = {"limits": {"nvidia.com/gpu": "400"}, "template": {"spec": {**node, "requirements": requirements, "taints": taints}}}
    flavor = {"nodeLabels": {"karpenter.sh/nodepool": name}, "tolerations": [{"operator": "Exists"}]}
    return [
        _object("karpenter.sh/v1", "NodePool", name, {"spec": spec}),
        _object("karpenter.k8s.aws/v1", "EC2NodeClass", name, {"spec": {"amiSelectorTerms": [{"alias": "al2023@v20260903"}]}}),
        _object("kueue.x-k8s.io/v1beta2", "ResourceFlavor", name, {"spec": flavor}),
    ]


def _team(name: str, pools: list[str]) -> list[Resource]:
    quota = [{"name": "nvidia.com/gpu", "nominalQuota": "1"}]
    flavors = [{"name": pool, "resources": quota} for pool in pools]
    queue: dict[str, Any] = {"namespaceSelector": {}, "resourceGroups": [{"coveredResources": ["nvidia.com/gpu"], "flavors": flavors}]}
    return [
        _object("v1", "Namespace", name, {}),
        _object("v1", "ResourceQuota", "team", {"spec": {"hard": {"requests.nvidia.com/gpu": "10"}}}, name),
        _object("v1", "LimitRange", "containers", {"spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}}]}}, name),
        _object("kueue.x-k8s.io/v1beta2", "ClusterQueue", name, {"spec": queue}),
        _object("kueue.x-k8s.io/v1beta2", "LocalQueue", "default", {"spec": {"clusterQueue": name}}, name),
    ]


def _job(name: str, namespace: str, pools: list[str]) -> Resource:
    """Return a job of the namespace's queue. If some of its pools are gone, it names the remaining ones."""
    container = {"name": "train", "image": "trainer:1", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    pod: dict[str, Any] = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 90, "containers": [container]}
    if len(pools) < _POOLS:
        wanted = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "karpenter.sh/nodepool", "operator": "In", "values": pools}]}]}
        pod["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": wanted}}
    return _object("batch/v1", "Job", name, {"spec": {"template": {"spec": pod}}}, namespace)


def _core_seconds(made: list[Resource]) -> float:
    start = time.perf_counter()
    judge_all([from_pulumi(*each) for each in made], all_rules(), DEFAULTS)
    return time.perf_counter() - start


def main() -> None:
    """Print the medians for a state of a thousand resources, and the growth of the core's time."""
    made = resources()
    core = statistics.median(_core_seconds(made) for _ in range(_ROUNDS))
    growth = statistics.median(_core_seconds(resources(4)) / _core_seconds(resources(2)) for _ in range(_ROUNDS))
    each = core / len(made) * 1000
    tell = Console().print
    tell(f"{len(all_rules())} rules over {len(made)} resources, median of {_ROUNDS}: {core:.2f} s, {each:.2f} ms a resource (at most 5)")
    tell(f"over twice the resources: {growth:.2f} times the time (2 is linear)")


if __name__ == "__main__":
    main()
