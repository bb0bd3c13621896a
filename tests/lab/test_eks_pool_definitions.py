"""A real API server accepts the NodePools of shipped stacks, by the definitions of Karpenter's AWS chart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from auto_mode_settings import auto_mode_settings
from kubernetes.client.exceptions import ApiException
from program_declarations import as_shipped, declared
from server_questions import changed, integers, serving

from flexspot.infra.deployment.api_refusals import known_refusals
from flexspot.lab.cluster import read_objects

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexspot.lab.cluster import Cluster, KubeObject
    from flexspot.lab.tools.build import Tools

pytestmark = pytest.mark.lab

NODE_POOL = "kubernetes:karpenter.sh/v1:NodePool"

GROUP = "aws.karpenter.sh"
"""Group of the chart's NodePool on the test server. Its rules list AWS's labels; those of the core accept any."""


@pytest.fixture
def defined(cluster: Cluster, tools: Tools) -> Iterator[Cluster]:
    """Yield an API server with the chart's NodePool in a separate group: the lab's Karpenter uses the core's."""
    [node_pool] = read_objects(*tools.assets("karpenter-aws", "pool-crds"))
    node_pool["metadata"]["name"] = f"nodepools.{GROUP}"
    node_pool["spec"]["group"] = GROUP
    with serving(cluster, node_pool) as ready:
        yield ready


def of_chart(pool: KubeObject) -> KubeObject:
    return integers(pool) | {"apiVersion": f"{GROUP}/v1"}


def test_the_server_accepts_every_pool_of_a_stack_and_of_auto_mode_and_adds_nothing_to_it(defined: Cluster) -> None:
    """The definition of Auto Mode's NodeClass is not public; its NodePool is Karpenter's, with the same rules."""
    for program in (as_shipped("dev-eks"), as_shipped("prod-eks"), declared("auto", auto_mode_settings())):
        for each in map(of_chart, program.inputs_of(NODE_POOL)):
            [found] = defined.apply(each, dry_run=True)
            assert found["spec"] == each["spec"], "what the server fills in would show as a change in every later preview"


def test_the_server_lets_no_node_pool_change_into_auto_mode_or_out_of_it(defined: Cluster) -> None:
    """So that a cluster keeps its mode: flexspot/infra/deployment/api_refusals.yaml, node-class-kind."""
    [managed] = [each for each in declared("auto", auto_mode_settings()).inputs_of(NODE_POOL) if each["metadata"]["name"] == "t4-spot"]
    own = changed(managed, "template.spec", nodeClassRef={"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "t4-spot"})
    first, then = map(of_chart, (own, managed))
    defined.apply(first)

    with pytest.raises(ApiException) as error:
        defined.apply(then, dry_run=True)

    assert "nodeClassRef.group is immutable" in str(error.value.body)
    assert known_refusals()["node-class-kind"].text.endswith("nodeClassRef.group is immutable")
    defined.delete(f"{GROUP}/v1/NodePool", "t4-spot")
