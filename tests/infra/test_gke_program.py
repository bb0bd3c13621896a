"""The program with the shipped GKE stacks: its declarations, their order and consistency; without an engine."""

from __future__ import annotations

import functools
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from gke_declarations import CLUSTER, NODE_POOL, SYSTEM_POOL, gpu_pools
from program_declarations import as_shipped, declared, plan_of, shipped, taints_of

from flexspot.capacity.catalog.capacity_type import Origin, facts_of, gpu_marks_of
from flexspot.capacity.catalog.machines import Vendor, machines_of
from flexspot.capacity.plan.build import build_plan
from flexspot.capacity.settings.stack_file import parse_settings

if TYPE_CHECKING:
    from program_declarations import Declarations

both_stacks = pytest.mark.parametrize("stack", ["dev-gke", "prod-gke"])


@both_stacks
def test_every_gpu_pool_waits_for_the_system_pool(stack: str) -> None:
    declarations = as_shipped(stack)

    assert set(gpu_pools(declarations)) == {pool.name for pool in plan_of(stack).pools}
    assert {
        name for name, pool in gpu_pools(declarations).items() if SYSTEM_POOL not in declarations.waits_for(f"{NODE_POOL} {pool.name}")
    } == set()


@both_stacks
def test_auto_provisioning_limits_are_the_plans_and_include_gpus_if_gke_may_create_their_nodes(stack: str) -> None:
    [cluster] = as_shipped(stack).inputs_of(CLUSTER)
    plan = plan_of(stack)
    assert plan.limits is not None

    limits = {each["resourceType"]: each["maximum"] for each in cluster["clusterAutoscaling"]["resourceLimits"]}

    # In development, only declared pools have GPUs.
    of_gpus = plan.accelerators if stack == "prod-gke" else {}
    assert limits == {"cpu": plan.limits.vcpu, "memory": plan.limits.memory_gib, **of_gpus}
    gpus: Counter[str] = Counter()
    for pool in gpu_pools(as_shipped(stack)).values():
        [accelerator] = pool.inputs["nodeConfig"]["guestAccelerators"]
        gpus[accelerator["type"]] += accelerator["count"] * pool.inputs["autoscaling"]["totalMaxNodeCount"]
    assert gpus == plan.accelerators


@pytest.mark.slow
@pytest.mark.parametrize(
    "machine,accelerator,limited", [("a4-highgpu-8g", "nvidia-b200", False), ("a3-highgpu-8g", "nvidia-h100-80gb", True)]
)
def test_gpus_whose_machines_cannot_boot_from_gkes_disk_have_no_limit(machine: str, accelerator: str, *, limited: bool) -> None:
    """The provider accepts one kind of disk for all nodes that GKE creates. A pool of the stack names its own and grows without a limit."""
    own = {
        "name": "own",
        "machine": machine,
        "capacity_type": "spot",
        "max_nodes": 2,
        "zones": ["us-central1-a"],
        "serves": ["interactive"],
    }
    stack = shipped("prod-gke", zone_machines="unchecked", gpu_quotas={})
    stack["pools"].append(own)
    plan = build_plan(parse_settings(stack, "stack"))
    [cluster] = declared("stack", stack).inputs_of(CLUSTER)

    limits = {each["resourceType"]: each["maximum"] for each in cluster["clusterAutoscaling"]["resourceLimits"]}
    assert (accelerator in limits) is limited
    made = plan.spending.made_by_itself
    assert made is not None
    assert dict(made.gpus) == {name: most for name, most in limits.items() if name.startswith("nvidia-")}
    # These two limits apply to declared pools with any GPUs.
    assert plan.limits is not None
    assert (limits["cpu"], limits["memory"]) == (plan.limits.vcpu, plan.limits.memory_gib)


@pytest.mark.slow
def test_former_accelerators_keep_a_limit_that_their_pools_can_reach() -> None:
    """GKE is said to keep limits. With the smallest limit, the pool that has the GPUs would stop growing."""
    own = {"name": "own", "machine": "a4-highgpu-8g", "capacity_type": "spot", "max_nodes": 2, "serves": ["interactive"]}
    stack = shipped("prod-gke", zone_machines="unchecked", gpu_quotas={})
    stack["pools"].append(own)
    stack["cluster"]["former_accelerators"] = ["nvidia-b200", "nvidia-tesla-t4"]
    [cluster] = declared("stack", stack).inputs_of(CLUSTER)

    limits = {each["resourceType"]: each["maximum"] for each in cluster["clusterAutoscaling"]["resourceLimits"]}
    assert (limits["nvidia-b200"], limits["nvidia-tesla-t4"]) == (16, 1)


def test_labels_and_taints_of_gke_are_not_declared_except_the_gpu_taint() -> None:
    for stack in ("dev-gke", "prod-gke"):
        for pool in plan_of(stack).pools:
            node, marks = (
                gpu_pools(as_shipped(stack))[pool.name].inputs["nodeConfig"],
                facts_of("gke")[pool.capacity_type].marks[Origin.NODE_POOL],
            )
            assert not node.get("labels", {}).keys() & {*marks.labels, *gpu_marks_of("gke")[Origin.NODE_POOL].labels}
            assert not {key for key, _, _ in taints_of(node["taints"])} & {taint.key for taint in marks.taints}


def test_roles_are_minimal_and_granted_to_single_members() -> None:
    made = as_shipped("prod-gke").made.values()

    assert Counter(each.inputs["role"] for each in made if "role" in each.inputs and "iam" in each.type.lower()) == {
        "roles/container.defaultNodeServiceAccount": 1,
        "roles/artifactregistry.reader": 1,
        "roles/serviceusage.serviceUsageConsumer": 1,
        "roles/iam.workloadIdentityUser": 4,
        "roles/storage.objectUser": 4,
        "roles/storage.objectViewer": 4,
    }
    assert [each.type for each in made if re.search("iam(binding|policy)", each.type, re.IGNORECASE)] == []


@pytest.mark.slow
def test_a_teams_work_queue_is_a_topic_with_a_subscription_and_a_dead_letter_topic() -> None:
    settings = shipped("dev-gke")
    settings["teams"][0]["work_queue"] = {"name": "sweeps"}

    declarations = declared("dev-gke", settings)

    names = {"dev.research.sweeps", "dev.research.sweeps-dead-letter"}
    subscriptions = {each["name"]: each for each in declarations.inputs_of("gcp:pubsub/subscription:Subscription")}
    assert {each["name"] for each in declarations.inputs_of("gcp:pubsub/topic:Topic")} == set(subscriptions) == names
    for each in subscriptions.values():
        assert each["labels"] == {"environment": "dev", "owner": "ml-platform", "team": "research"}


@pytest.mark.slow
def test_an_existing_network_is_used_and_none_is_made() -> None:
    network = {"existing_network": "shared", "existing_subnetwork": "shared-nodes", "pods_range": "p", "services_range": "s"}

    declarations = declared("dev-gke", shipped("dev-gke", network=network))

    [cluster] = declarations.inputs_of(CLUSTER)
    assert (cluster["network"], cluster["subnetwork"]) == ("shared", "shared-nodes")
    assert cluster["ipAllocationPolicy"] == {"clusterSecondaryRangeName": "p", "servicesSecondaryRangeName": "s"}
    assert [name for name in declarations.made if name.startswith("gcp:compute")] == []


@both_stacks
def test_the_api_server_is_reached_only_by_its_dns_name(stack: str) -> None:
    """The stack creates its own network, and no client inside it exists that could create the first objects."""
    [cluster] = as_shipped(stack).inputs_of(CLUSTER)

    assert cluster["controlPlaneEndpointsConfig"] == {
        "dnsEndpointConfig": {"allowExternalTraffic": True},
        "ipEndpointsConfig": {"enabled": False},
    }
    assert "masterAuthorizedNetworksConfig" not in cluster


@functools.cache
def on_existing(**zone: str) -> Declarations:
    return declared("dev-gke", shipped("dev-gke", cluster={"existing": "lab", **zone}))


@pytest.mark.slow
def test_a_zonal_cluster_is_reached_in_its_zone_and_other_resources_stay_regional() -> None:
    regional, zonal = on_existing(), on_existing(zone="us-central1-c")

    assert zonal.read == [f"{CLUSTER} projects/acme-ai-dev/locations/us-central1-c/clusters/lab"]
    # Nodes may be in all zones of the region, and the ceiling is their total.
    for name, pool in gpu_pools(zonal).items():
        assert pool.inputs["location"] == "us-central1-c"
        assert pool.inputs | {"location": "us-central1"} == gpu_pools(regional)[name].inputs
    changed = {name for name, each in zonal.made.items() if each.inputs != regional.made[name].inputs and ":index:" not in name}
    assert changed == {"pulumi:providers:kubernetes cluster", *(f"{NODE_POOL} {name}-node-pool" for name in gpu_pools(zonal))}


@pytest.mark.slow
def test_an_existing_cluster_is_read_and_must_have_the_features_that_the_stack_uses() -> None:
    declarations = on_existing()

    assert declarations.read == [f"{CLUSTER} projects/acme-ai-dev/locations/us-central1/clusters/lab"]
    assert [name for name in declarations.made if name.startswith((CLUSTER, "gcp:compute", SYSTEM_POOL))] == []
    for name, pool in gpu_pools(declarations).items():
        assert pool.inputs["cluster"] == "lab"
        assert f"{CLUSTER} cluster-cluster" in declarations.waits_for(f"{NODE_POOL} {name}-node-pool")
    [wanted] = declarations.inputs_of("flexspot:index:ExistingGkeCluster")
    assert (wanted["mode"], wanted["workload_identity"], wanted["gcs_fuse"]) == ("standard", True, True)
    assert [each["version"] for each in wanted["at_least"]] == ["1.35.0-gke.1171000", "1.29"]
    # Exactly the total of the autoscaling limits of its pools.
    machines = machines_of(Vendor.GCP)
    most = [(each.inputs["autoscaling"]["totalMaxNodeCount"], each.inputs["nodeConfig"]) for each in gpu_pools(declarations).values()]
    assert wanted["room"]["cpu"] == sum(count * machines[node["machineType"]].vcpu for count, node in most)


KNOWN = machines_of(Vendor.GCP)["a4-highgpu-8g"]


def description(**changes: Any) -> dict[str, Any]:
    """Return a4-highgpu-8g under a name that the catalog does not have."""
    gpu = {"name": "nvidia-b200", "count": 8, "memory_mib": 184320}
    facts = {"bundled_local_ssd_disks": KNOWN.bundled_local_ssd_disks, "boot_disk": KNOWN.boot_disk.value, "flex_start": True}
    return {"name": "a5-highgpu-8g", "vcpu": KNOWN.vcpu, "memory_mib": KNOWN.memory_mib, "gpu": gpu, **facts, **changes}


def with_pool(stack: str, machine: str, **settings: Any) -> dict[str, Any]:
    written = {**shipped(stack), **settings}
    pool = {"name": "new", "machine": machine, "capacity_type": "flex-start", "max_nodes": 2, "serves": ["training"]}
    return {**written, "zone_machines": "unchecked", "pools": [*written["pools"], pool]}


@pytest.mark.slow
def test_a_described_machine_has_the_same_node_pool_as_one_of_the_catalog() -> None:
    described = declared("prod-gke", with_pool("prod-gke", "a5-highgpu-8g", machines=[description()]))
    catalogued = declared("prod-gke", with_pool("prod-gke", "a4-highgpu-8g"))

    own, known = (gpu_pools(each)["new"].inputs for each in (described, catalogued))
    assert own["nodeConfig"]["machineType"] == "a5-highgpu-8g"
    assert own["nodeConfig"]["diskType"] == "hyperdisk-balanced"
    assert own | {"nodeConfig": own["nodeConfig"] | {"machineType": "a4-highgpu-8g"}} == known
    limits = [each.inputs_of(CLUSTER)[0]["clusterAutoscaling"]["resourceLimits"] for each in (described, catalogued)]
    assert limits[0] == limits[1]


@pytest.mark.slow
def test_controllers_run_on_a_described_machine_with_its_own_disk() -> None:
    settings = shipped("prod-gke")
    settings["machines"] = [{"name": "c5-standard-8", "vcpu": 8, "memory_mib": 32768, "boot_disk": "hyperdisk-balanced"}]
    settings["cluster"]["system_pool"]["machine"] = "c5-standard-8"

    [system] = [each.inputs for each in declared("prod-gke", settings).of(NODE_POOL) if each.name == "cluster-system-pool"]

    assert (system["nodeConfig"]["machineType"], system["nodeConfig"]["diskType"]) == ("c5-standard-8", "hyperdisk-balanced")
