"""A stack with pools of TPUs: Google's descriptions, the provider's rules and the policies take all of it, and quotas are its chips."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from declared_inputs import refused_inputs
from google_models import refused_requests
from plan_settings import own_class
from program_declarations import declared, shipped

from capacity.values.verdict import Verdict
from policies.core import judge_all
from policies.inventory.reading.source import from_pulumi
from policies.judging import DEFAULTS
from policies.rules import all_rules

if TYPE_CHECKING:
    from program_declarations import Declarations

NODE_POOL = "gcp:container/nodePool:NodePool"
TPU = "google.com/tpu"


def tpu_settings() -> dict[str, Any]:
    """prod-gke with a Spot slice of sixteen chips, reserved single hosts and flex-start v5p, for a class of their own."""
    settings = shipped("prod-gke")
    jax = {"machine": "ct5lp-hightpu-4t", "serves": ["jax"], "zones": ["us-central1-a"]}
    pools = [
        {"name": "v5e-slice", **jax, "capacity_type": "spot", "max_nodes": 4, "tpu_topology": "4x4"},
        {
            "name": "v6e-hosts",
            **jax,
            "machine": "ct6e-standard-8t",
            "capacity_type": "reserved",
            "max_nodes": 2,
            "reservation": {"name": "v6e"},
        },
        {"name": "v5p-flex", **jax, "machine": "ct5p-hightpu-4t", "capacity_type": "flex-start", "max_nodes": 16, "tpu_topology": "4x4x4"},
    ]
    settings["pools"] = [*settings["pools"], *pools]
    settings["classes"] = {
        **settings.get("classes", {}),
        "jax": own_class("jax", capacity=["reserved", "flex-start", "spot"], checkpoint=True),
    }
    settings["zone_machines"] = "unchecked"
    settings.pop("budget", None)
    for team in settings["teams"]:
        if team["name"] == "nlp":
            team["shares"] = {**team.get("shares", {}), "v5e-slice": 16, "v6e-hosts": 16, "v5p-flex": 64}
    return settings


@pytest.fixture(scope="module")
def stack() -> Declarations:
    return declared("prod-gke", tpu_settings())


def pools_of(stack: Declarations) -> dict[str, dict[str, Any]]:
    made = {each.inputs["name"]: each.inputs for each in stack.made.values() if each.type == NODE_POOL}
    return {name: inputs for name, inputs in made.items() if name.startswith(("v5", "v6"))}


def test_the_provider_and_googles_own_descriptions_take_every_input(stack: Declarations) -> None:
    assert refused_inputs(stack.made.values()) == []
    assert refused_requests(stack.made.values()) == []


def test_the_policies_let_all_of_it_through(stack: Declarations) -> None:
    sources = [from_pulumi(each.type, each.name, each.inputs) for each in stack.made.values()]

    found = [each for findings in judge_all(sources, all_rules(), DEFAULTS) for each in findings if each.verdict is Verdict.FAIL]
    assert [(each.rule, each.message) for each in found] == []


def test_slices_and_single_hosts_are_asked_for_as_gke_has_them(stack: Declarations) -> None:
    pools = pools_of(stack)

    assert {name: pool.get("placementPolicy") for name, pool in pools.items()} == {
        "v5e-slice": {"type": "COMPACT", "tpuTopology": "4x4"},
        "v6e-hosts": None,
        "v5p-flex": {"type": "COMPACT", "tpuTopology": "4x4x4"},
    }
    assert {name: pool["autoscaling"]["totalMaxNodeCount"] for name, pool in pools.items()} == {
        "v5e-slice": 4,
        "v6e-hosts": 2,
        "v5p-flex": 16,
    }
    for pool in pools.values():
        node = pool["nodeConfig"]
        assert "guestAccelerators" not in node
        assert not [key for key in node["labels"] if "tpu" in key], "GKE sets these by itself"
        assert {"key": TPU, "value": "present", "effect": "NO_SCHEDULE"} in node["taints"]


def test_the_cluster_limits_chips_by_their_name_as_it_limits_gpus(stack: Declarations) -> None:
    """AI-Hypercomputer/xpk, src/xpk/core/nap.py at 002d8ade: a limit of chips has the name that is in GKE's label.

    Of v6e there is none: its machines boot from Hyperdisk alone, and GKE would give those that it makes by itself another disk.
    """
    [cluster] = [each.inputs for each in stack.made.values() if each.type == "gcp:container/cluster:Cluster"]

    limits = {each["resourceType"]: each["maximum"] for each in cluster["clusterAutoscaling"]["resourceLimits"]}
    assert {name: most for name, most in limits.items() if name.startswith("tpu-")} == {
        "tpu-v5-lite-podslice": 16,
        "tpu-v5p-slice": 64,
    }


def test_queues_give_chips_of_tpu_flavors_and_gpus_of_the_others(stack: Declarations) -> None:
    queues = [each.inputs["spec"] for each in stack.made.values() if each.type.endswith(":ClusterQueue")]
    given = {
        flavor["name"]: {each["name"]: each["nominalQuota"] for each in flavor["resources"] if each["name"] in {TPU, "nvidia.com/gpu"}}
        for queue in queues
        for group in queue["resourceGroups"]
        for flavor in group["flavors"]
        if flavor["name"].startswith(("v5", "v6")) and any(each["nominalQuota"] not in {"0", 0} for each in flavor["resources"])
    }
    assert given == {
        "v5e-slice": {"nvidia.com/gpu": "0", TPU: "16"},
        "v6e-hosts": {"nvidia.com/gpu": "0", TPU: "16"},
        "v5p-flex": {"nvidia.com/gpu": "0", TPU: "64"},
    }
