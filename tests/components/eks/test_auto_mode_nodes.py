"""AutoNodeIdentity, AutoNodeClass, AutoSystemPool and AutoAddons: nodes and add-ons of a cluster in Auto Mode, and invalid arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from eks_cluster_args import ACCOUNT, TAGS

from flexspot.components.eks.auto_mode import (
    AutoAddons,
    AutoAddonsArgs,
    AutoNodeClass,
    AutoNodeClassArgs,
    AutoNodeIdentity,
    AutoNodeIdentityArgs,
    AutoSystemPool,
    AutoSystemPoolArgs,
)

if TYPE_CHECKING:
    from component_types import Refusal, Register

NODE_CLASS = "kubernetes:eks.amazonaws.com/v1:NodeClass"
NODE_POOL = "kubernetes:karpenter.sh/v1:NodePool"
CONFIG_MAP = "kubernetes:core/v1:ConfigMap"
ENTRY = "aws:eks/accessEntry:AccessEntry"
ASSOCIATION = "aws:eks/accessPolicyAssociation:AccessPolicyAssociation"
ROLE = "aws:iam/role:Role"
ADDON = "aws:eks/addon:Addon"


def identity(**changes: Any) -> AutoNodeIdentityArgs:
    return {"cluster": "prod", "cluster_name": "prod", "tags": TAGS} | changes  # pyrefly: ignore[bad-return] -- a test's own


def node_class(**changes: Any) -> AutoNodeClassArgs:
    least = {"node_class": "gpu", "cluster": "prod", "node_role": "prod-auto-nodes", "tags": TAGS}
    return least | changes  # pyrefly: ignore[bad-return] -- a test's own


def system_pool(**changes: Any) -> AutoSystemPoolArgs:
    least = {
        "pool": "system-nodes",
        "machine": "m6i.xlarge",
        "zones": ["us-east-1b", "us-east-1a"],
        "node_class": {"group": "eks.amazonaws.com", "kind": "NodeClass", "name": "system-nodes"},
        "expire_after_hours": 480,
        "drain_hours": 24,
        "labels": {"flexspot.dev/owner": "ann"},
    }
    return least | changes  # pyrefly: ignore[bad-return] -- a test's own


def addons(**changes: Any) -> AutoAddonsArgs:
    least = {"cluster": "prod", "cluster_name": "prod", "account": ACCOUNT, "region": "us-east-1", "labels": {"flexspot.dev/owner": "ann"}}
    return least | changes  # pyrefly: ignore[bad-return] -- a test's own


def test_nodes_join_by_an_entry_of_type_ec2_with_awss_policy_for_auto_mode(register: Register) -> None:
    made = register(lambda: AutoNodeIdentity("nodes", identity(partition="aws-us-gov", iam_path="/ml/")))

    [entry], [access], [role] = made.of(ENTRY), made.of(ASSOCIATION), made.of(ROLE)
    assert (entry["type"], access["accessScope"]) == ("EC2", {"type": "cluster"})
    assert "kubernetesGroups" not in entry, "EKS refuses groups of nodes' entries"
    assert access["policyArn"] == "arn:aws-us-gov:eks::aws:cluster-access-policy/AmazonEKSAutoNodePolicy"
    assert (role["name"], role["path"]) == ("prod-auto-nodes", "/ml/")


def test_a_node_class_requests_a_volume_for_gpu_nodes_by_default(register: Register) -> None:
    [made] = register(lambda: AutoNodeClass("gpu-class", node_class())).of(NODE_CLASS)

    assert made["metadata"] == {"name": "gpu"}
    assert made["spec"] == {
        "role": "prod-auto-nodes",
        "subnetSelectorTerms": [{"tags": {"karpenter.sh/discovery": "prod"}}],
        "securityGroupSelectorTerms": [{"tags": {"karpenter.sh/discovery": "prod"}}],
        "ephemeralStorage": {"size": "200Gi", "iops": 6000, "throughput": 500},
        "networkPolicy": "DefaultAllow",
        "networkPolicyEventLogs": "Disabled",
        "snatPolicy": "Random",
        "advancedNetworking": {"associatePublicIPAddress": False},
        "tags": TAGS,
    }


def test_subnets_and_reservations_can_be_set(register: Register) -> None:
    changes = {"subnet_ids": ["subnet-b", "subnet-a"], "reservation_ids": ["cr-0a1b2c3d4e5f60718"], "boot_disk_gib": 500}

    [made] = register(lambda: AutoNodeClass("gpu-class", node_class(**changes))).of(NODE_CLASS)

    assert made["spec"]["subnetSelectorTerms"] == [{"id": "subnet-a"}, {"id": "subnet-b"}]
    assert made["spec"]["capacityReservationSelectorTerms"] == [{"id": "cr-0a1b2c3d4e5f60718"}]
    assert made["spec"]["ephemeralStorage"]["size"] == "500Gi"


@pytest.mark.parametrize("pods,prefixes", [(1, 1), (32, 2), (33, 3), (110, 7), (250, 7)])
def test_a_node_with_efa_gets_prefixes_for_its_pods_as_it_starts(pods: int, prefixes: int, register: Register) -> None:
    efa = node_class(efa_interfaces=2, efa_first_card=1, pods=pods, more_security_group_ids=["sg-efa"], placement_group="near")

    [made] = register(lambda: AutoNodeClass("gpu-class", efa)).of(NODE_CLASS)

    spec = made["spec"]
    assert spec["advancedNetworking"] == {
        "networkInterfaces": [
            {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface", "secondaryIPv4PrefixCount": prefixes},
            {"networkCardIndex": 1, "deviceIndex": 0, "interfaceType": "efa-only"},
            {"networkCardIndex": 2, "deviceIndex": 0, "interfaceType": "efa-only"},
        ]
    }
    assert spec["securityGroupSelectorTerms"][1:] == [{"id": "sg-efa"}]
    assert spec["placementGroupSelector"] == {"name": "near"}


@pytest.mark.parametrize(
    "changes,problem",
    [
        ({"node_class": "default"}, "but not default, which EKS creates"),
        ({"node_class": "GPU"}, "node_class"),
        ({"reservation_ids": ["cr-1"]}, "reservation_ids"),
        ({"reservation_ids": ["cr-0a1b2c3d4e5f60718"], "reservation_tags": {"a": "b"}}, "cannot be combined with reservation_tags"),
        ({"reservation_owner": "111122223333"}, "reservation_owner"),
        ({"efa_interfaces": -1}, "efa_interfaces"),
        ({"efa_first_card": 1}, "efa_first_card"),
        ({"pods": 0}, "pods"),
        ({"tags": {"karpenter.sh/nodepool": "x"}}, "a key that Auto Mode or AWS set"),
        ({"tags": {"eks:eks-cluster-name": "x"}}, "Auto Mode or AWS set"),
        ({"boot_disk_gib": 10}, "boot_disk_gib"),
        ({"boot_disk_iops": 20_000}, "boot_disk_iops"),
    ],
)
def test_a_node_class_that_auto_mode_would_reject_is_refused_before_anything_is_registered(
    changes: dict[str, Any], problem: str, refusal: Refusal
) -> None:
    assert problem in refusal(AutoNodeClass, "gpu-class", node_class(**changes))


def test_the_controllers_pool_has_taint_label_highest_weight_and_ceiling(register: Register) -> None:
    [made] = register(lambda: AutoSystemPool("system-nodes", system_pool())).of(NODE_POOL)

    assert made["spec"]["limits"] == {"nodes": "4"}
    assert made["spec"]["weight"] == 100
    node = made["spec"]["template"]
    assert node["metadata"]["labels"] == {"flexspot.dev/system": "true"}
    assert node["spec"]["requirements"] == [
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m6i.xlarge"]},
        {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-east-1a", "us-east-1b"]},
    ]
    assert (node["spec"]["expireAfter"], node["spec"]["terminationGracePeriod"]) == ("480h", "24h")


@pytest.mark.parametrize("changes,problem", [({"max_nodes": 0}, "max_nodes (is 0)"), ({"pool": "system"}, "that EKS creates")])
def test_a_controllers_pool_without_a_ceiling_or_with_eks_own_name_is_refused(
    changes: dict[str, Any], problem: str, refusal: Refusal
) -> None:
    assert problem in refusal(AutoSystemPool, "system-nodes", system_pool(**changes))


def test_addons_that_auto_mode_lacks_are_installed_in_the_requested_versions(register: Register) -> None:
    versions = {"metrics-server": "v0.8.0-eksbuild.3"}
    more = addons(efs_driver=True, lustre_driver=True, addon_versions=versions)

    made = register(lambda: AutoAddons("addons", more))

    found = {each["addonName"]: each.get("addonVersion") for each in made.of(ADDON)}
    assert found == {
        "aws-mountpoint-s3-csi-driver": None,
        "aws-efs-csi-driver": None,
        "aws-fsx-csi-driver": None,
        "metrics-server": "v0.8.0-eksbuild.3",
    }
    [policies] = made.of(CONFIG_MAP)
    assert (policies["metadata"]["name"], policies["metadata"]["namespace"]) == ("amazon-vpc-cni", "kube-system")
    none = register(lambda: AutoAddons("addons", addons(metrics_server=False)))
    assert [each["addonName"] for each in none.of(ADDON)] == ["aws-mountpoint-s3-csi-driver"]
