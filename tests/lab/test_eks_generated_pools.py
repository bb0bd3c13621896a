"""A real API server takes NodePools and EC2NodeClasses of shipped and generated settings, by the definitions of Karpenter's AWS chart."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pulumi
import pytest
from auto_mode_settings import auto_mode_settings
from edited_stacks import edited_stacks
from hypothesis import HealthCheck, assume, given, settings
from kubernetes.client.exceptions import ApiException
from program_declarations import as_shipped, declared
from pulumi_aws import Provider as AwsProvider
from pulumi_kubernetes import Provider
from server_questions import changed, integers, serving
from valid_settings import valid_settings

from capacity.catalog.platform import Platform
from capacity.plan.build import build_plan
from capacity.settings.platform import EksSettings
from capacity.settings.stack_file import parse_settings
from capacity.values.errors import SettingsError
from components.cloud_names import EksPlace
from infra.deployment.api_refusals import known_refusals
from infra.eks import declare_pools
from infra.eks_existing import KarpenterNodes
from lab.cluster import read_objects

if TYPE_CHECKING:
    from collections.abc import Iterator

    from capacity.plan.model import Plan
    from lab.cluster import Cluster, KubeObject
    from lab.tools.build import Tools

pytestmark = pytest.mark.lab

Register = Callable[[Callable[[], object]], Any]

SETTINGS = 200

KINDS = ("NodePool", "EC2NodeClass")

NODE_POOL = "kubernetes:karpenter.sh/v1:NodePool"

GROUP = "aws.karpenter.sh"
"""Where the test server has the chart's NodePool. Its rules say which labels of AWS's there are; those of the core take any."""


@pytest.fixture
def defined(cluster: Cluster, tools: Tools) -> Iterator[Cluster]:
    """An API server with the chart's EC2NodeClass, and with its NodePool in a group of its own: the lab's Karpenter keeps the core's."""
    [node_class] = read_objects(*tools.assets("karpenter-aws", "crds"))
    [node_pool] = read_objects(*tools.assets("karpenter-aws", "pool-crds"))
    node_pool["metadata"]["name"] = f"nodepools.{GROUP}"
    node_pool["spec"]["group"] = GROUP
    with serving(cluster, node_class) as first, serving(first, node_pool) as ready:
        yield ready


def generated(count: int) -> list[tuple[Plan, EksSettings]]:
    """So many settings that are accepted, with their plans."""
    found: list[tuple[Plan, EksSettings]] = []

    @settings(max_examples=count, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
    @given(valid_settings([Platform.EKS]) | edited_stacks(Platform.EKS.value))
    def draw(document: dict[str, Any]) -> None:
        try:
            wanted = parse_settings(document, "settings")
            plan = build_plan(wanted, "settings")
        except SettingsError:
            assume(False)
        else:
            assert isinstance(wanted, EksSettings)
            found.append((plan, wanted))

    draw()
    return found


def pools_of(plan: Plan, wanted: EksSettings, register: Register) -> list[KubeObject]:
    """What the program declares of Karpenter's kinds, on a cluster of which nothing else is declared: that would take a second each."""

    def declare() -> None:
        name = wanted.cluster.existing or wanted.cluster.name or wanted.environment
        place = EksPlace(name, wanted.account, "aws", wanted.region, wanted.ownership | {"cluster": name})
        cluster = cast("Any", SimpleNamespace(security_group_id="sg-0a1b2c3d4e5f60718", vpc_id="vpc-0a1b2c3d4e5f60718"))
        nodes = KarpenterNodes(pulumi.ComponentResource("flexspot:test:Karpenter", "karpenter"), f"KarpenterNodeRole-{name}")
        providers: Any = {"aws": AwsProvider("aws", region=wanted.region), "kubernetes": Provider("cluster")}
        declare_pools(plan, wanted, place, cluster=cluster, nodes=nodes, **providers)

    made = [with_known_groups(inputs) for token, _, inputs in register(declare).resources if token.startswith("kubernetes:karpenter")]
    return [of_chart(each) if each["kind"] == "NodePool" else integers(each) for each in made]


def with_known_groups(made: KubeObject) -> KubeObject:
    """With the id of a security group as EC2 writes it, where the group is one that the mocks have made: EFA's own."""
    terms: list[dict[str, Any]] = made["spec"].get("securityGroupSelectorTerms", [])
    for each in terms:
        if "id" in each and not each["id"].startswith("sg-"):
            each["id"] = "sg-0b1c2d3e4f5a60718"
    return made


@pytest.mark.nightly(
    held_by="test_the_server_takes_every_pool_of_a_stack_and_of_auto_mode_and_adds_nothing_to_it, "
    "test_the_server_takes_everything_else_that_a_pool_can_be_asked_for, test_the_server_takes_every_kind_and_adds_nothing_to_it"
)
def test_the_server_takes_every_pool_and_node_class_of_generated_settings(defined: Cluster, register: Register) -> None:
    cases = generated(SETTINGS)
    objects = {json.dumps(each, sort_keys=True): each for plan, wanted in cases for each in pools_of(plan, wanted, register)}
    refused: list[str] = []
    added: list[str] = []
    for each in objects.values():
        try:
            [found] = defined.apply(each, dry_run=True)
        except ApiException as error:
            refused.append(f"{each['kind']} {each['metadata']['name']}: {error.body}")
        else:
            added += [] if found["spec"] == each["spec"] else [f"{each['spec']} became {found['spec']}"]

    assert len(cases) >= SETTINGS
    assert {each["kind"] for each in objects.values()} == set(KINDS)
    assert refused == []
    assert added == [], "what the server fills in would show as a change in every later preview"


def of_chart(pool: KubeObject) -> KubeObject:
    return integers(pool) | {"apiVersion": f"{GROUP}/v1"}


def test_the_server_takes_every_pool_of_a_stack_and_of_auto_mode_and_adds_nothing_to_it(defined: Cluster) -> None:
    """The definition of Auto Mode's NodeClass is not public; its NodePool is Karpenter's, with the same rules."""
    for program in (as_shipped("dev-eks"), as_shipped("prod-eks"), declared("auto", auto_mode_settings())):
        for each in map(of_chart, program.inputs_of(NODE_POOL)):
            [found] = defined.apply(each, dry_run=True)
            assert found["spec"] == each["spec"], "what the server fills in would show as a change in every later preview"


def test_the_server_lets_no_node_pool_change_into_auto_mode_or_out_of_it(defined: Cluster) -> None:
    """So that a cluster keeps its mode: infra/deployment/api_refusals.yaml, node-class-kind."""
    [managed] = [each for each in declared("auto", auto_mode_settings()).inputs_of(NODE_POOL) if each["metadata"]["name"] == "t4-spot"]
    own = changed(managed, "template.spec", nodeClassRef={"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "t4-spot"})
    first, then = map(of_chart, (own, managed))
    defined.apply(first)

    with pytest.raises(ApiException) as error:
        defined.apply(then, dry_run=True)

    assert "nodeClassRef.group is immutable" in str(error.value.body)
    assert known_refusals()["node-class-kind"].text.endswith("nodeClassRef.group is immutable")
    defined.delete(f"{GROUP}/v1/NodePool", "t4-spot")
