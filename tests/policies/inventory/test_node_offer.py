"""The labels that a pool's nodes have before they boot, and the machines that they may be."""

from __future__ import annotations

from typing import Any

import pytest

from capacity.catalog.machines import Cloud, machines_of
from capacity.catalog.node_labels import INSTANCE_TYPE_LABEL, karpenter_aws_labels
from policies.inventory import node_offer as machine_catalog
from policies.inventory.node_offer import allowed_machines, allows
from policies.inventory.reading import views_of
from policies.inventory.reading.source import from_manifest, from_pulumi
from policies.inventory.views import Pool
from policies.values.field import UNKNOWN, Field, Tri


def requirement(key: Any, operator: Any, values: Any) -> Field:
    return Field({"key": key, "operator": operator, "values": values})


def of_type(*machines: Any) -> dict[str, Any]:
    return {"key": INSTANCE_TYPE_LABEL, "operator": "In", "values": list(machines)}


@pytest.mark.parametrize("cloud", Cloud)
def test_the_light_catalog_says_what_the_checked_one_says(cloud: Cloud) -> None:
    light, whole = machine_catalog.machines_of(cloud), machines_of(cloud)

    assert light.keys() == whole.keys()
    for name, machine in whole.items():
        found = light[name]
        assert (found.vcpu, found.memory_mib) == (machine.vcpu, machine.memory_mib)
        assert (found.gpu, found.gpu_counts) == ((machine.gpu.name, machine.gpu.counts) if machine.gpu else ("", ()))
        if cloud is Cloud.AWS:
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
def test_a_requirement_leaves_a_value_or_not(operator: Any, values: list[Any], value: str, answer: Tri) -> None:
    assert allows(requirement("key", operator, values), value) is answer


def test_the_machines_that_requirements_leave_and_whether_those_are_all() -> None:
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
    return next(view for view in views_of(from_pulumi(token, "pool", inputs)) if isinstance(view, Pool))


def karpenter(*requirements: Any, **labels: Any) -> Pool:
    template = {"metadata": {"labels": labels}, "spec": {"requirements": list(requirements)}}
    manifest = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "gpu"}, "spec": {"template": template}}
    return next(view for view in views_of(from_manifest(manifest)) if isinstance(view, Pool))


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
        (pool("gcp:container/nodePool:NodePool", GKE), {"cloud.google.com/gke-accelerator": "nvidia-l4", "use": "train"}, True),
        (pool("gcp:container/nodePool:NodePool", GKE), {"cloud.google.com/gke-spot": "true", "cloud.google.com/gke-nodepool": "l4"}, True),
        (pool("gcp:container/nodePool:NodePool", GKE), {"cloud.google.com/gke-flex-start": "true"}, False),
        (
            pool("gcp:container/nodePool:NodePool", {"nodeConfig": {"preemptible": True}}),
            {"cloud.google.com/gke-provisioning": "preemptible"},
            True,
        ),
        (
            pool("gcp:container/nodePool:NodePool", {"nodeConfig": {"spot": UNKNOWN}}),
            {"cloud.google.com/gke-provisioning": "standard"},
            UNKNOWN,
        ),
        (pool("aws:eks/nodeGroup:NodeGroup", GROUP), {"eks.amazonaws.com/nodegroup": "g5", INSTANCE_TYPE_LABEL: "g5.xlarge"}, True),
        (pool("aws:eks/nodeGroup:NodeGroup", GROUP), {"eks.amazonaws.com/capacityType": "ON_DEMAND"}, False),
    ],
)
def test_a_pool_has_the_labels_or_has_them_not(offered: Pool, wanted: dict[str, str], answer: Tri) -> None:
    assert offered.offer.carries({key: Field(value) for key, value in wanted.items()}) is answer


def gke(**node: Any) -> dict[str, Any]:
    return {"nodeConfig": {"machineType": "g2-standard-24", "guestAccelerators": [{"type": "nvidia-l4", "count": 2}], **node}}


@pytest.mark.parametrize(
    "token,inputs,gpus",
    [
        ("gcp:container/nodePool:NodePool", {**gke(), "autoscaling": {"maxNodeCount": 3}, "nodeLocations": ["a", "b"]}, 12),
        ("gcp:container/nodePool:NodePool", {**gke(), "autoscaling": {"maxNodeCount": 3}}, None),
        ("gcp:container/nodePool:NodePool", {**gke(), "nodeCount": 2, "nodeLocations": ["a"]}, 4),
        ("gcp:container/nodePool:NodePool", {**gke(), "autoscaling": {"totalMaxNodeCount": UNKNOWN}}, UNKNOWN),
        ("gcp:container/nodePool:NodePool", {**gke(guestAccelerators=UNKNOWN), "autoscaling": {"totalMaxNodeCount": 3}}, UNKNOWN),
        ("gcp:container/nodePool:NodePool", {**gke(guestAccelerators=[]), "autoscaling": {"totalMaxNodeCount": 3}}, 6),
        ("aws:eks/nodeGroup:NodeGroup", {"instanceTypes": ["g6.12xlarge"], "scalingConfig": {"maxSize": 2}}, 8),
        ("aws:eks/nodeGroup:NodeGroup", {"instanceTypes": [UNKNOWN], "scalingConfig": {"maxSize": 2}}, UNKNOWN),
    ],
)
def test_how_many_gpus_a_pool_can_have(token: str, inputs: dict[str, Any], gpus: Any) -> None:
    assert pool(token, inputs).gpus == gpus


def test_shared_gpus_are_not_counted() -> None:
    accelerator = {"type": "nvidia-l4", "count": 2, "gpuSharingConfig": {"gpuSharingStrategy": "MPS", "maxSharedClientsPerGpu": 4}}

    assert (
        pool("gcp:container/nodePool:NodePool", {**gke(guestAccelerators=[accelerator]), "autoscaling": {"totalMaxNodeCount": 3}}).gpus
        is None
    )
