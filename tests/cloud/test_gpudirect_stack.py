"""A stack with GPUDirect pools: the providers take all of it, nodes and cluster agree on the networks, and networks cost nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from declared_inputs import refused_inputs
from gpudirect_stack import gpudirect_settings
from plan_settings import plan_of
from program_declarations import as_shipped, declared

from capacity.values.verdict import Verdict
from policies.core import judge_all
from policies.inventory.reading.source import from_pulumi
from policies.judging import DEFAULTS
from policies.rules import all_rules

if TYPE_CHECKING:
    from program_declarations import Declarations

pytestmark = pytest.mark.filterwarnings("ignore:gcp.compute.[A-Za-z]+ has been deprecated in favor of:DeprecationWarning")


@pytest.fixture(scope="module")
def stack() -> Declarations:
    # With its budget a rule would say that the two pools more are dear.
    settings = {key: value for key, value in gpudirect_settings().items() if key != "budget"}
    return declared("prod-gke", settings | {"controllers": {"jobset": {"install": True}}})


def of(stack: Declarations, kind: str) -> dict[str, dict[str, Any]]:
    return {each.inputs["name"]: each.inputs for each in stack.made.values() if each.type == kind}


def test_the_provider_takes_every_input(stack: Declarations) -> None:
    assert refused_inputs(stack.made.values()) == []


def test_the_policies_let_all_of_it_through(stack: Declarations) -> None:
    """The installer's privileges and folders of the host are the platform's own, in kube-system; no team's work has any."""
    sources = [from_pulumi(each.type, each.name, each.inputs) for each in stack.made.values()]

    found = [each for findings in judge_all(sources, all_rules(), DEFAULTS) for each in findings if each.verdict is Verdict.FAIL]
    assert [(each.rule, each.message) for each in found] == []


def test_the_cluster_has_multi_networking_and_these_pools_alone_have_further_networks(stack: Declarations) -> None:
    [cluster] = of(stack, "gcp:container/cluster:Cluster").values()
    assert (cluster["enableMultiNetworking"], cluster["datapathProvider"]) == (True, "ADVANCED_DATAPATH")
    further = {
        name: len(pool["networkConfig"]["additionalNodeNetworkConfigs"])
        for name, pool in of(stack, "gcp:container/nodePool:NodePool").items()
        if "networkConfig" in pool
    }
    assert further == {"b200": 9, "h200": 9}, "one more ordinary card, and eight for RDMA"


@pytest.mark.slow
def test_without_such_a_pool_nothing_of_it_is_there() -> None:
    made = as_shipped("prod-gke")

    [cluster] = of(made, "gcp:container/cluster:Cluster").values()
    assert "enableMultiNetworking" not in cluster
    assert not any("Rdma" in each.type or "networking.gke.io" in each.type for each in made.made.values())


def test_the_networks_of_the_cluster_are_those_of_the_nodes(stack: Declarations) -> None:
    made = [each for each in stack.made.values() if each.type == "kubernetes:networking.gke.io/v1:GKENetworkParamSet"]

    assert {each.inputs["metadata"]["name"] for each in made} == {"gvnic-1", *(f"rdma-{number}" for number in range(8))}


def test_networks_cost_nothing_by_themselves() -> None:
    fast, settings = plan_of(gpudirect_settings()), gpudirect_settings()
    for pool in settings["pools"]:
        pool.pop("network", None)

    assert fast.spending == plan_of(settings).spending
