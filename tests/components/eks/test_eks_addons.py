"""EKS's add-ons: their order, their permissions and their tolerations."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pulumi
import pytest
from eks_cluster_args import ADDON, ARN, ATTACHMENT, ROLE, TAGS, args

from flexspot.components.eks.cluster import EksCluster

if TYPE_CHECKING:
    from collections.abc import Callable

    from component_types import Register


CRITICAL = [{"key": "CriticalAddonsOnly", "operator": "Exists"}]


@pytest.fixture
def addons_of(register: Register) -> Callable[..., dict[str, dict[str, Any]]]:
    """Return the inputs of the add-ons, by name, with some arguments changed."""

    def run(**changes: Any) -> dict[str, dict[str, Any]]:
        return {each["addonName"]: each for each in register(lambda: EksCluster("eks", args(**changes))).of(ADDON)}

    return run


def configuration(addon: dict[str, Any]) -> dict[str, Any]:
    return json.loads(addon["configurationValues"])


EVERYWHERE = {"operator": "Exists"}
CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "aws-ebs-csi-driver": {"controller": {"tolerations": CRITICAL}, "node": {"tolerateAllTaints": True}},
    "aws-mountpoint-s3-csi-driver": {"controller": {"tolerations": CRITICAL}, "node": {"tolerateAllTaints": True}},
    "coredns": {"tolerations": CRITICAL},
    "eks-node-monitoring-agent": {"dcgmAgent": {"tolerations": [EVERYWHERE]}},
    "metrics-server": {"replicas": 2, "tolerations": CRITICAL},
    "vpc-cni": {"enableNetworkPolicy": "true"},
}


def test_add_ons_run_on_system_nodes_and_their_agents_on_every_node(addons_of: Callable[..., dict[str, dict[str, Any]]]) -> None:
    addons = addons_of()

    assert addons.keys() == {*CONFIGURATIONS, "kube-proxy", "eks-pod-identity-agent"}
    assert {name: configuration(each) for name, each in addons.items() if "configurationValues" in each} == CONFIGURATIONS
    for each in addons.values():
        assert (each["clusterName"], each["tags"]) == ("prod", TAGS)
        assert (each["resolveConflictsOnCreate"], each["resolveConflictsOnUpdate"]) == ("OVERWRITE", "OVERWRITE")
        assert "addonVersion" not in each


def test_nodes_wait_for_the_add_ons_that_they_need_and_other_add_ons_wait_for_nodes(register: Register) -> None:
    waits: dict[str, list[str]] = {}
    names: dict[int, str] = {}

    def note(resource: pulumi.ResourceTransformationArgs) -> None:
        names[id(resource.resource)] = resource.name
        depends_on: Any = resource.opts.depends_on
        waits[resource.name] = [names[id(each)] for each in list[Any](depends_on or ())]

    register(lambda: EksCluster("eks", args(), pulumi.ResourceOptions(transformations=[note])))

    assert waits["eks-eks-pod-identity-agent"] == []
    assert waits["eks-vpc-cni"] == ["eks-eks-pod-identity-agent", "eks-vpc-cni-role-AmazonEKS_CNI_Policy"]
    assert set(waits["eks-system-nodes"]) > {"eks-eks-pod-identity-agent", "eks-kube-proxy", "eks-vpc-cni"}
    for name in ("coredns", "aws-ebs-csi-driver", "aws-mountpoint-s3-csi-driver", "eks-node-monitoring-agent", "metrics-server"):
        assert waits[f"eks-{name}"][0] == "eks-system-nodes"


def test_the_metrics_server_can_be_left_out(addons_of: Callable[..., dict[str, dict[str, Any]]]) -> None:
    assert "metrics-server" not in addons_of(metrics_server=False)


def test_the_efs_driver_is_installed_on_request_and_its_controller_has_a_role(register: Register) -> None:
    registered = register(lambda: EksCluster("eks", args(efs_driver=True)))

    [driver] = [each for each in registered.of(ADDON) if each["addonName"] == "aws-efs-csi-driver"]
    assert configuration(driver) == {"controller": {"tolerations": CRITICAL}, "node": {"tolerations": [EVERYWHERE]}}
    assert [each["serviceAccount"] for each in driver["podIdentityAssociations"]] == ["efs-csi-controller-sa"]
    attached = dict(zip(registered.names(ATTACHMENT), registered.of(ATTACHMENT), strict=True))
    assert [each["policyArn"] for name, each in attached.items() if name.startswith("eks-aws-efs-csi-driver-role")] == [
        "arn:aws:iam::aws:policy/service-role/AmazonEFSCSIDriverPolicy"
    ]


def test_the_lustre_driver_is_installed_on_request_without_a_role_to_create_file_systems(register: Register) -> None:
    registered = register(lambda: EksCluster("eks", args(lustre_driver=True)))

    [driver] = [each for each in registered.of(ADDON) if each["addonName"] == "aws-fsx-csi-driver"]
    assert configuration(driver) == {"controller": {"tolerations": CRITICAL}, "node": {"tolerateAllTaints": True}}
    assert "podIdentityAssociations" not in driver
    assert [name for name in registered.names(ATTACHMENT) if "fsx" in name] == []


def test_an_add_on_has_only_the_policy_of_its_service_account(register: Register) -> None:
    registered = register(lambda: EksCluster("eks", args()))

    identities = {each["addonName"]: each["podIdentityAssociations"] for each in registered.of(ADDON) if "podIdentityAssociations" in each}
    accounts = {name: [each["serviceAccount"] for each in found] for name, found in identities.items()}
    assert accounts == {"vpc-cni": ["aws-node"], "aws-ebs-csi-driver": ["ebs-csi-controller-sa"]}
    attached = [name for name in registered.names(ATTACHMENT) if name.startswith(("eks-vpc-cni-role", "eks-aws-ebs-csi-driver-role"))]
    assert [name.partition("-role-")[2] for name in attached] == ["AmazonEBSCSIDriverEKSClusterScopedPolicy", "AmazonEKS_CNI_Policy"]


def test_only_its_service_account_of_this_cluster_can_assume_an_add_ons_role(register: Register) -> None:
    registered = register(lambda: EksCluster("eks", args()))

    role = dict(zip(registered.names(ROLE), registered.of(ROLE), strict=True))["eks-aws-ebs-csi-driver-role"]
    assert role["name"] == "prod-aws-ebs-csi-driver"
    assert json.loads(role["assumeRolePolicy"]) == {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Principal": {"Service": "pods.eks.amazonaws.com"},
                "Action": ["sts:AssumeRole", "sts:TagSession"],
                "Condition": {
                    "StringEquals": {
                        "aws:RequestTag/eks-cluster-arn": ARN,
                        "aws:RequestTag/kubernetes-namespace": "kube-system",
                        "aws:RequestTag/kubernetes-service-account": "ebs-csi-controller-sa",
                    }
                },
            }
        ],
    }


def test_versions_can_be_set(addons_of: Callable[..., dict[str, dict[str, Any]]]) -> None:
    versions = {"coredns": "v1.14.3-eksbuild.3", "aws-ebs-csi-driver": "v1.63.1-eksbuild.1"}

    addons = addons_of(addon_versions=versions)

    assert {name: each["addonVersion"] for name, each in addons.items() if "addonVersion" in each} == versions
