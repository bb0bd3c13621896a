"""A real API server takes every EC2NodeClass of the component, by Karpenter's own definition, and refuses what it never renders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from karpenter_node_class_args import KINDS, NODE_CLASS, node_class_args
from server_questions import changed, integers, refusal, serving

from components.karpenter.ec2_node_class import Ec2NodeClass
from lab.cluster import read_objects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lab.cluster import Cluster, KubeObject
    from lab.tools.build import Tools

pytestmark = pytest.mark.lab

KIND = "karpenter.k8s.aws/v1/EC2NodeClass"


@pytest.fixture
def defined(cluster: Cluster, tools: Tools) -> Iterator[Cluster]:
    """An API server that serves EC2NodeClasses, and none afterwards."""
    [definition] = read_objects(*tools.assets("karpenter-aws", "crds"))
    with serving(cluster, definition) as ready:
        yield ready


@pytest.fixture
def rendered(register: Callable[[Callable[[], object]], Any]) -> dict[str, KubeObject]:
    """What the component renders of each kind, by its name."""

    def declare() -> None:
        for kind, changes in KINDS.items():
            Ec2NodeClass(kind, node_class_args(node_class=kind, **changes))

    return {each["metadata"]["name"]: integers(each) for each in register(declare).of(NODE_CLASS)}


def test_the_server_takes_every_kind_and_adds_nothing_to_it(defined: Cluster, rendered: dict[str, KubeObject]) -> None:
    assert set(rendered) == set(KINDS)
    for name, each in rendered.items():
        defined.apply(each)

        found = defined.get(KIND, name)
        assert found is not None
        assert found["spec"] == each["spec"], "what the server fills in would show as a change in every later preview"


def test_the_server_refuses_what_the_component_never_renders(defined: Cluster, rendered: dict[str, KubeObject]) -> None:
    plain, efa, by_id = rendered["al2023"], rendered["p5-efa"], rendered["reserved-by-id"]
    # What the server says, and the object of which it says so.
    faults = [
        ("tag contains a restricted tag matching karpenter.sh/nodepool", changed(plain, "tags", **{"karpenter.sh/nodepool": "x"})),
        ("must specify exactly one of ['role', 'instanceProfile']", changed(plain, "", role=None)),
        ("family is not supported", changed(plain, "", amiSelectorTerms=[{"alias": "ubuntu@v1"}])),
        ("networkInterfaces must include a primary interface", changed(efa, "networkInterfaces.0", interfaceType="efa-only")),
        ("capacityReservationSelectorTerms[0].id", changed(by_id, "capacityReservationSelectorTerms.0", id="p5-block")),
        ("field not declared in schema", changed(plain, "", gpuDriver="latest")),
    ]

    for said, each in faults:
        assert said in refusal(defined, each).replace('\\"', '"')
