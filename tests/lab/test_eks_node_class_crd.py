"""A real API server accepts every EC2NodeClass of the component, by Karpenter's own definition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from karpenter_node_class_args import KINDS, NODE_CLASS, node_class_args
from server_questions import integers, serving

from flexspot.components.karpenter.ec2_node_class import Ec2NodeClass
from flexspot.lab.cluster import read_objects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flexspot.lab.cluster import Cluster, KubeObject
    from flexspot.lab.tools.build import Tools

pytestmark = pytest.mark.lab

KIND = "karpenter.k8s.aws/v1/EC2NodeClass"


@pytest.fixture
def defined(cluster: Cluster, tools: Tools) -> Iterator[Cluster]:
    """Yield an API server that serves EC2NodeClasses, and none afterwards."""
    [definition] = read_objects(*tools.assets("karpenter-aws", "crds"))
    with serving(cluster, definition) as ready:
        yield ready


@pytest.fixture
def rendered(register: Callable[[Callable[[], object]], Any]) -> dict[str, KubeObject]:
    """Return the component's object of each kind, by its name."""

    def declare() -> None:
        for kind, changes in KINDS.items():
            Ec2NodeClass(kind, node_class_args(node_class=kind, **changes))

    return {each["metadata"]["name"]: integers(each) for each in register(declare).of(NODE_CLASS)}


def test_the_server_accepts_every_kind_and_adds_nothing_to_it(defined: Cluster, rendered: dict[str, KubeObject]) -> None:
    assert set(rendered) == set(KINDS)
    for name, each in rendered.items():
        defined.apply(each)

        found = defined.get(KIND, name)
        assert found is not None
        assert found["spec"] == each["spec"], "what the server fills in would show as a change in every later preview"
