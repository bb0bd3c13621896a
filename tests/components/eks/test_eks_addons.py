"""EKS's add-ons: in which order they come, what they may do, and that taints keep none of them away."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pulumi
import pytest
from eks_cluster_args import ADDON, ARN, ATTACHMENT, EC2_WARNING, ROLE, TAGS, args

from capacity.catalog.versions import Addon
from components.eks.addons import ADDONS
from components.eks.cluster import EksCluster

pytestmark = pytest.mark.filterwarnings(EC2_WARNING)

Register = Callable[[Callable[[], object]], Any]

CRITICAL = [{"key": "CriticalAddonsOnly", "operator": "Exists"}]


@pytest.fixture
def addons_of(register: Register) -> Callable[..., dict[str, dict[str, Any]]]:
    """The inputs of the add-ons, by name, with some arguments changed."""

    def run(**changes: Any) -> dict[str, dict[str, Any]]:
        return {each["addonName"]: each for each in register(lambda: EksCluster("eks", args(**changes))).of(ADDON)}

    return run


@pytest.fixture
def waits(register: Register) -> dict[str, list[str]]:
    """What each resource of a cluster waits for, by Pulumi names."""
    found: dict[str, list[str]] = {}
    names: dict[int, str] = {}

    def note(resource: pulumi.ResourceTransformationArgs) -> None:
        names[id(resource.resource)] = resource.name
        depends_on: Any = resource.opts.depends_on
        found[resource.name] = [names[id(each)] for each in list[Any](depends_on or ())]

    register(lambda: EksCluster("eks", args(), pulumi.ResourceOptions(transformations=[note])))
    return found


def configuration(addon: dict[str, Any]) -> dict[str, Any]:
    return json.loads(addon["configurationValues"])


def test_a_cluster_gets_these_add_ons_and_its_configuration_of_them_prevails(addons_of: Callable[..., dict[str, dict[str, Any]]]) -> None:
    addons = addons_of()

    assert addons.keys() == {
        "vpc-cni",
        "kube-proxy",
        "eks-pod-identity-agent",
        "coredns",
        "aws-ebs-csi-driver",
        "aws-mountpoint-s3-csi-driver",
        "eks-node-monitoring-agent",
        "metrics-server",
    }
    assert {each.name for each in ADDONS} - {Addon.EFS_DRIVER, Addon.LUSTRE_DRIVER} == addons.keys()
    for each in addons.values():
        assert (each["clusterName"], each["tags"]) == ("prod", TAGS)
        assert (each["resolveConflictsOnCreate"], each["resolveConflictsOnUpdate"]) == ("OVERWRITE", "OVERWRITE")
        assert "addonVersion" not in each


def test_nodes_come_after_what_they_need_and_before_what_needs_them(waits: dict[str, list[str]]) -> None:
    assert waits["eks-eks-pod-identity-agent"] == []
    assert waits["eks-vpc-cni"] == ["eks-eks-pod-identity-agent", "eks-vpc-cni-role-AmazonEKS_CNI_Policy"]
    assert set(waits["eks-system-nodes"]) > {"eks-eks-pod-identity-agent", "eks-kube-proxy", "eks-vpc-cni"}
    for name in ("coredns", "aws-ebs-csi-driver", "aws-mountpoint-s3-csi-driver", "eks-node-monitoring-agent", "metrics-server"):
        assert waits[f"eks-{name}"][0] == "eks-system-nodes"


@pytest.mark.slow
def test_what_pods_use_is_told_from_system_nodes_unless_something_else_tells_it(
    addons_of: Callable[..., dict[str, dict[str, Any]]],
) -> None:
    assert configuration(addons_of()["metrics-server"]) == {"replicas": 2, "tolerations": CRITICAL}
    assert "metrics-server" not in addons_of(metrics_server=False)


def test_the_driver_of_efs_is_installed_where_it_is_asked_for_and_its_controller_has_a_role(register: Register) -> None:
    registered = register(lambda: EksCluster("eks", args(efs_driver=True)))

    [driver] = [each for each in registered.of(ADDON) if each["addonName"] == "aws-efs-csi-driver"]
    assert configuration(driver) == {"controller": {"tolerations": CRITICAL}, "node": {"tolerations": [{"operator": "Exists"}]}}
    assert [each["serviceAccount"] for each in driver["podIdentityAssociations"]] == ["efs-csi-controller-sa"]
    attached = dict(zip(registered.names(ATTACHMENT), registered.of(ATTACHMENT), strict=True))
    assert [each["policyArn"] for name, each in attached.items() if name.startswith("eks-aws-efs-csi-driver-role")] == [
        "arn:aws:iam::aws:policy/service-role/AmazonEFSCSIDriverPolicy"
    ]


def test_the_driver_of_lustre_is_installed_where_it_is_asked_for_without_a_role_to_make_file_systems(register: Register) -> None:
    registered = register(lambda: EksCluster("eks", args(lustre_driver=True)))

    [driver] = [each for each in registered.of(ADDON) if each["addonName"] == "aws-fsx-csi-driver"]
    assert configuration(driver) == {"controller": {"tolerations": CRITICAL}, "node": {"tolerateAllTaints": True}}
    assert "podIdentityAssociations" not in driver
    assert [name for name in registered.names(ATTACHMENT) if "fsx" in name] == []


def test_network_policies_hold(addons_of: Callable[..., dict[str, dict[str, Any]]]) -> None:
    assert addons_of()["vpc-cni"]["configurationValues"] == '{"enableNetworkPolicy":"true"}'


@pytest.mark.parametrize("name", ["aws-ebs-csi-driver", "aws-mountpoint-s3-csi-driver"])
def test_drivers_run_their_controllers_on_system_nodes_and_their_agents_on_every_node(
    name: str, addons_of: Callable[..., dict[str, dict[str, Any]]]
) -> None:
    assert configuration(addons_of()[name]) == {"controller": {"tolerations": CRITICAL}, "node": {"tolerateAllTaints": True}}


def test_names_are_resolved_on_system_nodes_and_gpus_are_watched_on_tainted_ones(
    addons_of: Callable[..., dict[str, dict[str, Any]]],
) -> None:
    addons = addons_of()

    assert configuration(addons["coredns"]) == {"tolerations": CRITICAL}
    assert configuration(addons["eks-node-monitoring-agent"]) == {"dcgmAgent": {"tolerations": [{"operator": "Exists"}]}}


def test_an_add_on_has_what_its_own_service_account_needs_and_nothing_else(register: Register) -> None:
    registered = register(lambda: EksCluster("eks", args()))

    identities = {each["addonName"]: each["podIdentityAssociations"] for each in registered.of(ADDON) if "podIdentityAssociations" in each}
    accounts = {name: [each["serviceAccount"] for each in found] for name, found in identities.items()}
    assert accounts == {"vpc-cni": ["aws-node"], "aws-ebs-csi-driver": ["ebs-csi-controller-sa"]}
    attached = {name: each["policyArn"] for name, each in zip(registered.names(ATTACHMENT), registered.of(ATTACHMENT), strict=True)}
    assert [arn for name, arn in attached.items() if name.startswith("eks-vpc-cni-role")] == [
        "arn:aws:iam::aws:policy/AmazonEKS_CNI_Policy"
    ]
    assert [arn for name, arn in attached.items() if name.startswith("eks-aws-ebs-csi-driver-role")] == [
        "arn:aws:iam::aws:policy/AmazonEBSCSIDriverEKSClusterScopedPolicy"
    ]


def test_an_add_ons_role_is_assumed_by_its_service_account_of_this_cluster_alone(register: Register) -> None:
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


def test_versions_are_the_callers(addons_of: Callable[..., dict[str, dict[str, Any]]]) -> None:
    versions = {"coredns": "v1.14.3-eksbuild.3", "aws-ebs-csi-driver": "v1.63.1-eksbuild.1"}

    addons = addons_of(addon_versions=versions)

    assert {name: each["addonVersion"] for name, each in addons.items() if "addonVersion" in each} == versions
