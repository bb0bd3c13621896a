"""The plan's sizes of the platform's controllers, compared with the deployed ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from program_declarations import Declarations, as_shipped, declared, shipped

from flexspot.capacity.plan.system_room import own_pods
from flexspot.capacity.settings.platform import EksSettings, GkeSettings
from flexspot.capacity.settings.stack_file import parse_settings

if TYPE_CHECKING:
    from flexspot.capacity.catalog.system_pods import SystemPod

pytestmark = pytest.mark.slow

LARGER: dict[str, Any] = {
    "kueue": {"replicas": 3, "cpu_milli": 2500, "memory_mib": 3072},
    "kube_state_metrics": {"cpu_milli": 250, "memory_mib": 768},
}
ON_EKS: dict[str, Any] = LARGER | {
    "kueue": {"replicas": 1, "cpu_milli": 2500, "memory_mib": 3072},
    "karpenter": {"replicas": 1, "cpu_milli": 500, "memory_mib": 1536},
    "load_balancer_controller": {"install": True, "replicas": 2, "cpu_milli": 150, "memory_mib": 384},
}

Asked = tuple[int, str, str]


def deployed(declarations: Declarations) -> dict[str, Asked]:
    """Return replicas, vCPU and memory of each controller, from the charts and the Deployments."""
    found: dict[str, Asked] = {}
    for release in declarations.inputs_of("kubernetes:helm.sh/v3:Release"):
        values = release.get("values", {})
        if release["name"] == "kueue":
            manager = values["controllerManager"]
            found["kueue"] = (manager["replicas"], *_requests(manager["manager"]["resources"]))
        if release["name"] == "karpenter":
            found["karpenter"] = (values["replicas"], *_requests(values["controller"]["resources"]))
        if release["name"] == "aws-load-balancer-controller":
            found["load-balancer-controller"] = (values["replicaCount"], *_requests(values["resources"]))
    for each in declarations.inputs_of("kubernetes:apps/v1:Deployment"):
        [container] = each["spec"]["template"]["spec"]["containers"]
        found[each["metadata"]["name"]] = (each["spec"]["replicas"], *_requests(container["resources"]))
    return found


def _requests(resources: dict[str, Any]) -> tuple[str, str]:
    requests, limits = resources["requests"], resources["limits"]
    assert limits["memory"] == requests["memory"]
    return requests["cpu"], requests["memory"]


def planned_sizes(pods: list[SystemPod]) -> dict[str, tuple[int | None, int, int]]:
    return {each.name: (each.replicas, each.cpu_milli, each.memory_mib) for each in pods}


def in_figures(asked: Asked) -> tuple[int, int, int]:
    copies, cpu, memory = asked
    milli = int(cpu.removesuffix("m")) if cpu.endswith("m") else 1000 * int(cpu)
    mib = int(memory.removesuffix("Mi")) if memory.endswith("Mi") else 1024 * int(memory.removesuffix("Gi"))
    return copies, milli, mib


@pytest.mark.parametrize("stack,sizes", [("dev-eks", {}), ("dev-gke", {}), ("dev-eks", ON_EKS), ("dev-gke", LARGER)])
def test_controllers_have_the_sizes_of_the_plan(stack: str, sizes: dict[str, Any]) -> None:
    written = shipped(stack, controllers=sizes)
    settings = parse_settings(written, stack)
    assert isinstance(settings, GkeSettings | EksSettings)

    asked = deployed(declared(stack, written) if sizes else as_shipped(stack))

    assert {name: in_figures(each) for name, each in asked.items()} == planned_sizes([*own_pods(settings)])
