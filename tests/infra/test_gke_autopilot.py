"""The program on GKE Autopilot: its declarations without node pools, their consistency, and the rules' verdicts; without an engine."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from autopilot_settings import autopilot_settings
from gke_declarations import CLUSTER, NODE_POOL
from program_declarations import KUEUE, Declarations, as_shipped, declared, taints_of

from flexspot.capacity.plan.build import build_plan
from flexspot.capacity.settings.stack_file import parse_settings

if TYPE_CHECKING:
    from flexspot.capacity.plan.model import Plan

COMPUTE_CLASS = "kubernetes:cloud.google.com/v1:ComputeClass"


@cache
def on_autopilot() -> Declarations:
    return declared("dev-gke", autopilot_settings())


@cache
def plan() -> Plan:
    return build_plan(parse_settings(autopilot_settings(), "autopilot"))


def flavors() -> dict[str, dict[str, Any]]:
    return {each["metadata"]["name"]: each["spec"] for each in on_autopilot().inputs_of(f"{KUEUE}:ResourceFlavor")}


def test_an_autopilot_cluster_has_no_node_pool_no_ceilings_and_no_system_pool() -> None:
    [cluster] = on_autopilot().inputs_of(CLUSTER)

    assert cluster["enableAutopilot"] is True
    assert on_autopilot().of(NODE_POOL) == []
    # Autopilot refuses limits of node auto-provisioning. Only the nodes' service account may be set.
    assert cluster["clusterAutoscaling"].keys() == {"autoProvisioningDefaults"}
    assert not {"nodePools", "nodeConfig", "removeDefaultNodePool", "initialNodeCount"} & cluster.keys()


def test_everything_else_on_autopilot_is_as_on_standard() -> None:
    of_nodes = {CLUSTER, NODE_POOL, COMPUTE_CLASS, f"{KUEUE}:ResourceFlavor"}

    def others(declarations: Declarations) -> set[str]:
        return {each.type for each in declarations.made.values() if each.type not in of_nodes and ":index:" not in each.type}

    assert others(on_autopilot()) == others(as_shipped("dev-gke"))
    names = {name for name in as_shipped("dev-gke").made if name.startswith(("gcp:storage", "gcp:serviceaccount", "gcp:compute"))}
    assert names <= on_autopilot().made.keys()


def test_objects_inside_wait_for_the_cluster() -> None:
    release = "kubernetes:helm.sh/v3:Release kueue-release"

    assert f"{CLUSTER} cluster-cluster" in on_autopilot().waits_for(release)
    assert {each for each in on_autopilot().made if each.startswith(KUEUE) and release not in on_autopilot().waits_for(each)} == set()


def test_flavors_select_only_system_labels_and_tolerate_the_taints_of_gke() -> None:
    cpu_work = plan().cpu_work
    assert cpu_work is not None
    assert flavors()[cpu_work.flavor] == {}, "GKE makes a node for whatever selects none"
    for flavor in plan().flavors:
        spec = flavors()[flavor.name]
        [pool] = [each for each in plan().pools if each.name == flavor.name]
        assert spec["nodeLabels"] == pool.labels
        assert all(key.startswith(("cloud.google.com/", "topology.kubernetes.io/")) for key in spec["nodeLabels"])
        assert "cloud.google.com/gke-nodepool" not in spec["nodeLabels"]
        assert "nodeTaints" not in spec
        assert taints_of(spec["tolerations"]) == {(taint.key, taint.value, taint.effect.value) for taint in pool.taints}


def test_routes_and_flavors_agree_so_that_kueue_contradicts_no_selector() -> None:
    for route in plan().routes:
        assert route.node_affinity is None, "the autoscaler would take it for the selector that Kueue adds"
        for pool in route.pools:
            if pool.flavor is not None:
                assert route.node_selector.items() <= flavors()[pool.flavor]["nodeLabels"].items()
    assert not any(taint.key.startswith("flexspot.dev/") for route in plan().routes for taint in route.tolerations)


def test_priorities_of_a_compute_class_describe_their_pools() -> None:
    [made], [each] = on_autopilot().inputs_of(COMPUTE_CLASS), plan().compute_classes
    pools = {pool.name: pool for pool in plan().pools}

    assert made["metadata"]["name"] == each.name
    assert [(priority["machineType"], priority["gpu"]["type"], priority["gpu"]["count"]) for priority in made["spec"]["priorities"]] == [
        (pools[name].machines[0], pools[name].accelerator, pools[name].gpus_per_node) for name in each.pools
    ]
    reserved, paid = made["spec"]["priorities"]
    assert reserved["reservations"] == {"affinity": "Specific", "specific": [{"name": "acme-l4", "project": "acme-shared"}]}
    assert paid.keys() == {"machineType", "gpu", "spot", "storage", "location"}
    assert (paid["spot"], paid["location"]["zones"], paid["storage"]) == (
        False,
        ["us-central1-a", "us-central1-c"],
        {"bootDiskSize": 100},
    )
    assert made["spec"]["nodePoolAutoCreation"] == {"enabled": True}
    assert made["spec"]["nodePoolConfig"].keys() == {"serviceAccount", "nodeLabels"}
    assert made["spec"]["nodePoolConfig"]["nodeLabels"] == plan().labels


def test_an_existing_autopilot_cluster_has_no_node_pools_and_takes_described_machines() -> None:
    settings = autopilot_settings() | {"cluster": {"existing": "shared", "mode": "autopilot"}}
    gpu = {"name": "nvidia-l4", "count": 2, "memory_mib": 23034}
    settings["machines"] = [{"name": "g3-standard-24", "vcpu": 24, "memory_mib": 98304, "gpu": gpu}]
    next(pool for pool in settings["pools"] if pool["name"] == "l4-on-demand")["machine"] = "g3-standard-24"

    declarations = declared("dev-gke", settings)

    assert declarations.of(NODE_POOL) == []
    [spec] = [each["spec"] for each in declarations.inputs_of(COMPUTE_CLASS)]
    assert spec["nodePoolAutoCreation"] == {"enabled": True}
    assert [each["gpu"]["count"] for each in spec["priorities"] if each["machineType"] == "g3-standard-24"] == [2]
