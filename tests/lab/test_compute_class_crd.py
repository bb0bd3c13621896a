"""A real API server takes what ComputeClass renders, and refuses what its rules refuse.

The definition is one rebuilt from the documentation. Where the environment variable FLEXSPOT_CRDS names a folder that holds the vendor's
own, cloud.google.com_computeclasses.yaml, that one is asked too.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from server_questions import changed, integers, refusal, serving

from components.gke.compute_class import ComputeClass
from lab.cluster import read_objects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from components.gke.compute_class import ComputeClassPriorityArgs
    from lab.cluster import Cluster, KubeObject

pytestmark = pytest.mark.lab

KIND = "cloud.google.com/v1/ComputeClass"

REBUILT = Path(__file__).parents[1] / "components" / "gke" / "compute_class_crd.yaml"
VENDORS = Path(os.environ.get("FLEXSPOT_CRDS", "")) / "cloud.google.com_computeclasses.yaml"

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
    "recycling_lead_seconds": 3600,
}
CLASSES: dict[str, list[ComputeClassPriorityArgs]] = {
    "named": [{"pools": ["l4-spot"]}, {"pools": ["l4-dws", "l4-on-demand"]}],
    "made": [SPOT, FLEX],
    "mixed": [SPOT, FLEX, {"pools": ["h100-on-demand"]}],
}


@pytest.fixture(scope="module", params=[path for path in (REBUILT, VENDORS) if path.is_file()], ids=lambda path: path.stem)
def definition(request: pytest.FixtureRequest) -> KubeObject:
    """The definition to ask."""
    [each] = read_objects(request.param)
    return each


@pytest.fixture
def defined(cluster: Cluster, definition: KubeObject) -> Iterator[Cluster]:
    """An API server that serves ComputeClasses by the definition, and none afterwards."""
    with serving(cluster, definition) as ready:
        yield ready


@pytest.fixture
def rendered(register: Callable[[Callable[[], object]], Any]) -> dict[str, KubeObject]:
    """What the component renders, by the class's name."""

    def declare() -> None:
        for name, priorities in CLASSES.items():
            account = "nodes@acme-ml.iam.gserviceaccount.com" if any("machine" in priority for priority in priorities) else None
            ComputeClass(
                name, {"name": name, "labels": {"flexspot.dev/owner": "ann"}, "priorities": priorities, "service_account": account}
            )

    objects = register(declare).of("kubernetes:cloud.google.com/v1:ComputeClass")
    return {each["metadata"]["name"]: integers(each) for each in objects}


def test_the_server_takes_every_class_and_adds_nothing_to_it(defined: Cluster, rendered: dict[str, KubeObject]) -> None:
    assert set(rendered) == set(CLASSES)
    for name, each in rendered.items():
        defined.apply(each)

        found = defined.get(KIND, name)
        assert found is not None
        assert found["spec"] == each["spec"], "what the server fills in would show as a change in every later preview"


def test_the_server_refuses_what_the_component_never_renders(defined: Cluster, rendered: dict[str, KubeObject]) -> None:
    mixed = rendered["mixed"]
    kubelet = "priorities.0.nodeSystemConfig.kubeletConfig"
    # Where the server finds each fault, and the object that has it: two kinds of capacity, a pool with a machine, too large a number, an
    # unknown value, an unknown field.
    faults = [
        ("spec.priorities[0]", changed(mixed, "priorities.0", flexStart={"enabled": True})),
        ("spec.priorities[2]", changed(mixed, "priorities.2", machineType="a3-highgpu-8g")),
        ("kubeletConfig.shutdownGracePeriodSeconds", changed(mixed, kubelet, shutdownGracePeriodSeconds=60)),
        ("spec.whenUnsatisfiable", changed(mixed, "", whenUnsatisfiable="Wait")),
        ("spec.priorities[0].maxRunSeconds", changed(mixed, "priorities.0", maxRunSeconds=3600)),
    ]

    for where, each in faults:
        assert f"{where}: " in refusal(defined, each)
