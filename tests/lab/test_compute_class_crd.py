"""A real API server accepts the objects of ComputeClass, and adds nothing to them.

The definition was rebuilt from the documentation.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from server_questions import integers, serving

from flexspot.components.gke.compute_class import ComputeClass
from flexspot.lab.cluster import read_objects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flexspot.components.gke.compute_class import ComputeClassPriorityArgs
    from flexspot.lab.cluster import Cluster, KubeObject

pytestmark = pytest.mark.lab

KIND = "cloud.google.com/v1/ComputeClass"

REBUILT = Path(__file__).parents[1] / "components" / "gke" / "compute_class_crd.yaml"

SPOT: ComputeClassPriorityArgs = {
    "machine": "g2-standard-8",
    "accelerator": "nvidia-l4",
    "gpus": 1,
    "capacity_type": "spot",
    "zones": ["us-central1-a"],
    "shutdown_grace_seconds": 120,
}
FLEX: ComputeClassPriorityArgs = {
    "machine": "a3-highgpu-8g",
    "accelerator": "nvidia-h100-80gb",
    "gpus": 8,
    "capacity_type": "flex-start",
    "driver": "latest",
    "max_run_seconds": 86_400,
}
CLASSES: dict[str, list[ComputeClassPriorityArgs]] = {
    "named": [{"pools": ["l4-spot"]}, {"pools": ["l4-dws", "l4-on-demand"]}],
    "made": [SPOT, FLEX],
    "mixed": [SPOT, FLEX, {"pools": ["h100-on-demand"]}],
}


@pytest.fixture
def defined(cluster: Cluster) -> Iterator[Cluster]:
    """Yield an API server that serves ComputeClasses by the definition, and none afterwards."""
    [definition] = read_objects(REBUILT)
    with serving(cluster, definition) as ready:
        yield ready


@pytest.fixture
def rendered(register: Callable[[Callable[[], object]], Any]) -> dict[str, KubeObject]:
    """Return the component's objects, by the class's name."""

    def declare() -> None:
        for name, priorities in CLASSES.items():
            account = "nodes@acme-ml.iam.gserviceaccount.com" if any("machine" in priority for priority in priorities) else None
            ComputeClass(
                name, {"name": name, "labels": {"flexspot.dev/owner": "ann"}, "priorities": priorities, "service_account": account}
            )

    objects = register(declare).of("kubernetes:cloud.google.com/v1:ComputeClass")
    return {each["metadata"]["name"]: integers(each) for each in objects}


def test_the_server_accepts_every_class_and_adds_nothing_to_it(defined: Cluster, rendered: dict[str, KubeObject]) -> None:
    assert set(rendered) == set(CLASSES)
    for name, each in rendered.items():
        defined.apply(each)

        found = defined.get(KIND, name)
        assert found is not None
        assert found["spec"] == each["spec"], "what the server fills in would show as a change in every later preview"
