"""Stacks with TPU pools and with GPUDirect: independent validators accept all of it, and cluster, queues and nodes agree."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from declared_inputs import refused_inputs
from google_models import refused_requests
from gpudirect_stack import gpudirect_settings
from plan_settings import own_class, plan_of
from program_declarations import declared, shipped

from flexspot.capacity.values.verdict import Verdict
from flexspot.policies.core import judge_all
from flexspot.policies.inventory.reading.source import from_pulumi
from flexspot.policies.judging import DEFAULTS
from flexspot.policies.rules import all_rules

if TYPE_CHECKING:
    from program_declarations import Declarations

NODE_POOL = "gcp:container/nodePool:NodePool"
CLUSTER = "gcp:container/cluster:Cluster"
TPU = "google.com/tpu"

both_stacks = pytest.mark.parametrize("kind", ["TPUs", "GPUDirect"])


def tpu_settings() -> dict[str, Any]:
    """Return prod-gke with a Spot slice of sixteen chips, reserved single hosts and flex-start v5p, used by a separate class."""
    settings = shipped("prod-gke")
    jax = {"serves": ["jax"], "zones": ["us-central1-a"]}
    slices = {"name": "v5e-slice", "machine": "ct5lp-hightpu-4t", "capacity_type": "spot", "max_nodes": 4, "tpu_topology": "4x4"}
    hosts = {"name": "v6e-hosts", "machine": "ct6e-standard-8t", "capacity_type": "reserved", "max_nodes": 2}
    flex = {"name": "v5p-flex", "machine": "ct5p-hightpu-4t", "capacity_type": "flex-start", "max_nodes": 16, "tpu_topology": "4x4x4"}
    settings["pools"] += [slices | jax, hosts | jax | {"reservation": {"name": "v6e"}}, flex | jax]
    own = own_class("jax", capacity=["reserved", "flex-start", "spot"], checkpoint=True)
    settings["classes"] = {**settings.get("classes", {}), "jax": own}
    settings["zone_machines"] = "unchecked"
    [nlp] = [team for team in settings["teams"] if team["name"] == "nlp"]
    nlp["shares"] = {**nlp.get("shares", {}), "v5e-slice": 16, "v6e-hosts": 16, "v5p-flex": 64}
    return settings


@cache
def stack(kind: str) -> Declarations:
    # With a budget, a rule would report that the added pools are expensive.
    found = {key: value for key, value in (tpu_settings() if kind == "TPUs" else gpudirect_settings()).items() if key != "budget"}
    return declared("prod-gke", found | {"controllers": {"jobset": {"install": True}}})


@pytest.mark.slow
@both_stacks
def test_the_provider_and_googles_api_descriptions_accept_every_input(kind: str) -> None:
    assert refused_inputs(stack(kind).made.values()) == []
    assert refused_requests(stack(kind).made.values()) == []


@pytest.mark.slow
@both_stacks
def test_the_policies_accept_every_object(kind: str) -> None:
    """GPUDirect's installer is privileged and mounts folders of the host, as part of the platform in kube-system. No team's work does."""
    sources = [from_pulumi(each.type, each.name, each.inputs) for each in stack(kind).made.values()]

    found = [each for findings in judge_all(sources, all_rules(), DEFAULTS) for each in findings if each.verdict is Verdict.FAIL]
    assert [(each.rule, each.message) for each in found] == []


@pytest.mark.slow
def test_gpudirect_enables_multi_networking_and_only_its_pools_have_additional_networks() -> None:
    [cluster] = stack("GPUDirect").inputs_of(CLUSTER)
    assert (cluster["enableMultiNetworking"], cluster["datapathProvider"]) == (True, "ADVANCED_DATAPATH")
    further = {
        pool["name"]: len(pool["networkConfig"]["additionalNodeNetworkConfigs"])
        for pool in stack("GPUDirect").inputs_of(NODE_POOL)
        if "networkConfig" in pool
    }
    assert further == {"b200": 9, "h200": 9}, "one more ordinary card, and eight for RDMA"
    made = stack("GPUDirect").inputs_of("kubernetes:networking.gke.io/v1:GKENetworkParamSet")
    assert {each["metadata"]["name"] for each in made} == {"gvnic-1", *(f"rdma-{number}" for number in range(8))}
    [without] = stack("TPUs").inputs_of(CLUSTER)
    assert "enableMultiNetworking" not in without
    assert not any("Rdma" in each or "networking.gke.io" in each for each in stack("TPUs").made)


def test_networks_alone_cost_nothing() -> None:
    fast, settings = plan_of(gpudirect_settings()), gpudirect_settings()
    for pool in settings["pools"]:
        pool.pop("network", None)

    assert fast.spending == plan_of(settings).spending


@pytest.mark.slow
def test_the_cluster_limits_chips_by_name_like_gpus() -> None:
    """The limit of a chip has the name in GKE's label (AI-Hypercomputer/xpk, src/xpk/core/nap.py at 002d8ade).

    v6e has no limit: its machines only boot from Hyperdisk, and GKE gives auto-provisioned machines another disk.
    """
    [cluster] = stack("TPUs").inputs_of(CLUSTER)

    limits = {each["resourceType"]: each["maximum"] for each in cluster["clusterAutoscaling"]["resourceLimits"]}
    chips = {"tpu-v5-lite-podslice": 16, "tpu-v5p-slice": 64}
    assert {name: most for name, most in limits.items() if name.startswith("tpu-")} == chips


@pytest.mark.slow
def test_queues_count_chips_for_tpu_flavors_and_gpus_for_the_others() -> None:
    given = {
        flavor["name"]: {each["name"]: each["nominalQuota"] for each in flavor["resources"] if each["name"] in {TPU, "nvidia.com/gpu"}}
        for queue in stack("TPUs").made.values()
        if queue.type.endswith(":ClusterQueue")
        for group in queue.inputs["spec"]["resourceGroups"]
        for flavor in group["flavors"]
        if flavor["name"].startswith(("v5", "v6")) and any(each["nominalQuota"] not in {"0", 0} for each in flavor["resources"])
    }
    chips = {"v5e-slice": "16", "v6e-hosts": "16", "v5p-flex": "64"}
    assert given == {name: {"nvidia.com/gpu": "0", TPU: count} for name, count in chips.items()}
