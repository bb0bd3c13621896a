"""Labels that a pool's nodes have before they boot, and their possible machines."""

from __future__ import annotations

from typing import Any

import pytest
from manifests import node_pool, views

from flexspot.capacity.catalog.machines import Vendor, machines_of
from flexspot.capacity.catalog.node_labels import INSTANCE_TYPE_LABEL, karpenter_aws_labels
from flexspot.policies.inventory import node_offer as machine_catalog
from flexspot.policies.inventory.node_offer import allowed_machines, allows
from flexspot.policies.inventory.views import Pool
from flexspot.policies.values.field import UNKNOWN, Field, Tri


def requirement(key: Any, operator: Any, values: Any) -> Field:
    return Field({"key": key, "operator": operator, "values": values})


def of_type(*machines: Any) -> dict[str, Any]:
    return {"key": INSTANCE_TYPE_LABEL, "operator": "In", "values": list(machines)}


@pytest.mark.parametrize("cloud", Vendor)
def test_the_light_catalog_agrees_with_the_checked_one(cloud: Vendor) -> None:
    light, whole = machine_catalog.machines_of(cloud), machines_of(cloud)

    assert light.keys() == whole.keys()
    for name, machine in whole.items():
        found = light[name]
        assert (found.vcpu, found.memory_mib) == (machine.vcpu, machine.memory_mib)
        assert (found.gpu, found.gpu_counts) == ((machine.gpu.name, machine.gpu.counts) if machine.gpu else ("", ()))
        if cloud is Vendor.AWS:
            assert found.labels == {**karpenter_aws_labels(machine), INSTANCE_TYPE_LABEL: name}


@pytest.mark.parametrize(
    "operator,values,value,answer",
    [
        ("In", ["a", "b"], "b", True),
        ("In", ["a"], "b", False),
        ("In", ["a", UNKNOWN], "b", UNKNOWN),
        ("NotIn", ["a"], "a", False),
        ("NotIn", ["a"], "b", True),
        ("Exists", [], "a", True),
        ("DoesNotExist", [], "a", False),
        ("Gt", ["4"], "5", True),
        ("Gt", ["4"], "4", False),
        ("Gte", ["4"], "4", True),
        ("Lt", ["4"], "4", False),
        ("Lte", ["4"], "4", True),
        ("Lt", [UNKNOWN], "4", UNKNOWN),
        ("Gt", [], "4", True),
        ("Gt", ["4"], "large", True),
        (UNKNOWN, ["a"], "a", UNKNOWN),
    ],
)
def test_a_requirement_allows_a_value_or_not(operator: Any, values: list[Any], value: str, answer: Tri) -> None:
    assert allows(requirement("key", operator, values), value) is answer


def test_requirements_allow_machines_of_the_catalog_and_perhaps_others() -> None:
    def left(*requirements: Field) -> tuple[list[str], bool]:
        machines, complete = allowed_machines(requirements)
        return [machine.name for machine in machines], complete

    assert left(requirement(INSTANCE_TYPE_LABEL, "In", ["g6.xlarge", "p5.48xlarge"])) == (["g6.xlarge", "p5.48xlarge"], True)
    assert left(requirement(INSTANCE_TYPE_LABEL, "In", ["g6.xlarge", "g9.xlarge"])) == (["g6.xlarge"], False)
    assert left(requirement("eks.amazonaws.com/instance-family", "In", ["p5en"])) == (["p5en.48xlarge"], True)
    names, complete = left(requirement("karpenter.k8s.aws/instance-gpu-count", "Gt", ["4"]))
    assert "p5.48xlarge" in names
    assert "c7i.xlarge" not in names
    assert not complete


def pool(token: str, inputs: dict[str, Any]) -> Pool:
    return views(Pool, (token, inputs))[0]


def karpenter(*requirements: Any, **labels: Any) -> Pool:
    return views(Pool, node_pool(*requirements, labels=labels))[0]


GKE_POOL, EKS_GROUP = "gcp:container/nodePool:NodePool", "aws:eks/nodeGroup:NodeGroup"
GKE = {"name": "l4", "nodeConfig": {"machineType": "g2-standard-8", "spot": True, "labels": {"use": "train"}}}
GROUP = {"nodeGroupName": "g5", "instanceTypes": ["g5.xlarge"], "capacityType": "SPOT", "labels": {"use": "train"}}


@pytest.mark.parametrize(
    "offered,wanted,answer",
    [
        (karpenter(of_type("g6.xlarge")), {"karpenter.k8s.aws/instance-gpu-name": "l4", "karpenter.sh/nodepool": "gpu"}, True),
        (karpenter(of_type("g6.xlarge", "p5.48xlarge")), {"eks.amazonaws.com/instance-gpu-name": "h100"}, True),
        (karpenter(of_type("g9.xlarge")), {"karpenter.k8s.aws/instance-gpu-name": "l9"}, True),
        (karpenter(of_type(UNKNOWN)), {INSTANCE_TYPE_LABEL: "g6.xlarge"}, UNKNOWN),
        (karpenter(use="train"), {"use": "train"}, True),
        (karpenter(use=UNKNOWN), {"use": "train"}, UNKNOWN),
        (karpenter({"key": "use", "operator": "Exists"}), {"use": "train"}, True),
        (karpenter({"key": UNKNOWN, "operator": "In", "values": ["a"]}), {"use": "train"}, UNKNOWN),
        (pool(GKE_POOL, GKE), {"cloud.google.com/gke-accelerator": "nvidia-l4", "use": "train"}, True),
        (pool(GKE_POOL, GKE), {"cloud.google.com/gke-spot": "true", "cloud.google.com/gke-nodepool": "l4"}, True),
        (pool(GKE_POOL, GKE), {"cloud.google.com/gke-flex-start": "true"}, False),
        (pool(GKE_POOL, {"nodeConfig": {"preemptible": True}}), {"cloud.google.com/gke-provisioning": "preemptible"}, True),
        (pool(GKE_POOL, {"nodeConfig": {"spot": UNKNOWN}}), {"cloud.google.com/gke-provisioning": "standard"}, UNKNOWN),
        (pool(EKS_GROUP, GROUP), {"eks.amazonaws.com/nodegroup": "g5", INSTANCE_TYPE_LABEL: "g5.xlarge"}, True),
        (pool(EKS_GROUP, GROUP), {"eks.amazonaws.com/capacityType": "ON_DEMAND"}, False),
    ],
)
def test_a_pool_may_carry_labels(offered: Pool, wanted: dict[str, str], answer: Tri) -> None:
    assert offered.offer.carries({key: Field(value) for key, value in wanted.items()}) is answer


SHARED = {"type": "nvidia-l4", "count": 2, "gpuSharingConfig": {"gpuSharingStrategy": "MPS", "maxSharedClientsPerGpu": 4}}


def gke(**node: Any) -> dict[str, Any]:
    return {"nodeConfig": {"machineType": "g2-standard-24", "guestAccelerators": [{"type": "nvidia-l4", "count": 2}], **node}}


@pytest.mark.parametrize(
    "token,inputs,gpus",
    [
        (GKE_POOL, {**gke(), "autoscaling": {"maxNodeCount": 3}, "nodeLocations": ["a", "b"]}, 12),
        (GKE_POOL, {**gke(), "autoscaling": {"maxNodeCount": 3}}, None),
        (GKE_POOL, {**gke(), "nodeCount": 2, "nodeLocations": ["a"]}, 4),
        (GKE_POOL, {**gke(), "autoscaling": {"totalMaxNodeCount": UNKNOWN}}, UNKNOWN),
        (GKE_POOL, {**gke(guestAccelerators=UNKNOWN), "autoscaling": {"totalMaxNodeCount": 3}}, UNKNOWN),
        (GKE_POOL, {**gke(guestAccelerators=[]), "autoscaling": {"totalMaxNodeCount": 3}}, 6),
        (GKE_POOL, {**gke(guestAccelerators=[SHARED]), "autoscaling": {"totalMaxNodeCount": 3}}, None),
        (EKS_GROUP, {"instanceTypes": ["g6.12xlarge"], "scalingConfig": {"maxSize": 2}}, 8),
        (EKS_GROUP, {"instanceTypes": [UNKNOWN], "scalingConfig": {"maxSize": 2}}, UNKNOWN),
    ],
)
def test_a_pool_has_a_largest_number_of_gpus(token: str, inputs: dict[str, Any], gpus: Any) -> None:
    assert pool(token, inputs).gpus == gpus
