"""The program on EKS Auto Mode: its declarations, what it leaves to AWS, consistency, and rules; without an engine."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from auto_mode_settings import auto_mode_settings
from declared_inputs import refused_inputs
from eks_declarations import CLUSTER, NODE_CLASS, NODE_POOL, OTHER_WORK, RELEASE, ceilings, node_labels, requirements
from iam_judge import Request, decided_otherwise, findings, permissions
from program_declarations import KUEUE, Declarations, as_shipped, declared, taints_of
from request_judge import refused_requests

from flexspot.capacity.catalog.versions import auto_mode
from flexspot.capacity.plan.build import build_plan
from flexspot.capacity.settings.stack_file import parse_settings

if TYPE_CHECKING:
    from flexspot.capacity.plan.model import Plan
    from flexspot.components.iam import PolicyDocument

AUTO_CLASS = "kubernetes:eks.amazonaws.com/v1:NodeClass"
ENTRY = "aws:eks/accessEntry:AccessEntry"
ASSOCIATION = "aws:eks/accessPolicyAssociation:AccessPolicyAssociation"
ATTACHMENT = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"
ADDON = "aws:eks/addon:Addon"
SYSTEM = "system-nodes"


@cache
def in_auto_mode() -> Declarations:
    return declared("dev-eks", auto_mode_settings())


@cache
def plan() -> Plan:
    return build_plan(parse_settings(auto_mode_settings(), "auto"))


def pools() -> dict[str, dict[str, Any]]:
    return {each["metadata"]["name"]: each["spec"] for each in in_auto_mode().inputs_of(NODE_POOL)}


def classes() -> dict[str, dict[str, Any]]:
    return {each["metadata"]["name"]: each["spec"] for each in in_auto_mode().inputs_of(AUTO_CLASS)}


def test_the_cluster_has_the_three_parts_of_auto_mode_and_none_of_its_built_in_pools() -> None:
    [cluster] = in_auto_mode().inputs_of(CLUSTER)

    assert cluster["computeConfig"] == {"enabled": True, "nodePools": []}, "the built-in ones have no ceiling"
    assert cluster["storageConfig"] == {"blockStorage": {"enabled": True}}
    assert cluster["kubernetesNetworkConfig"]["elasticLoadBalancing"] == {"enabled": True}
    [standard] = as_shipped("dev-eks").inputs_of(CLUSTER)
    assert not {"computeConfig", "storageConfig"} & standard.keys()
    assert "elasticLoadBalancing" not in standard["kubernetesNetworkConfig"]


def test_built_in_parts_of_auto_mode_are_not_declared() -> None:
    made = in_auto_mode()

    for kind in ("aws:eks/nodeGroup:NodeGroup", "aws:ec2/launchTemplate:LaunchTemplate", "aws:sqs/queue:Queue", NODE_CLASS):
        assert made.of(kind) == [], kind
    assert [each for each in made.made if each.startswith("aws:cloudwatch/eventRule")] == []
    releases = {each.name for each in made.of(RELEASE)}
    assert not {name for name in releases if "karpenter" in name or "gpu-plugins" in name}
    installed = {each["addonName"] for each in made.inputs_of(ADDON)}
    assert installed == {"aws-mountpoint-s3-csi-driver", "metrics-server"}
    assert installed.isdisjoint(auto_mode().addons)
    standard = {each["addonName"] for each in as_shipped("dev-eks").inputs_of(ADDON)}
    assert standard == installed | {addon.value for addon in auto_mode().addons}, "together they are what every cluster of ours has"


def test_everything_else_in_auto_mode_is_as_on_a_standard_cluster() -> None:
    """Queues, teams, storage, measurement and networks do not depend on who runs Karpenter."""

    def others(declarations: Declarations) -> set[str]:
        of_nodes = ("aws:eks/", "aws:ec2/launchTemplate", "aws:sqs/", "aws:cloudwatch/event", "aws:iam/", "kubernetes:helm", "flexspot:")
        # The two additional pools serve their own class, without a queue.
        added = ("l40s", "unqueued", "gpu-production", SYSTEM)
        kinds = (*of_nodes, NODE_CLASS, AUTO_CLASS)
        return {name for name in declarations.made if not name.startswith(kinds) and not any(each in name for each in added)}

    policies = "kubernetes:core/v1:ConfigMap auto-addons-network-policies"
    assert others(in_auto_mode()) - others(as_shipped("dev-eks")) == {policies}
    assert others(as_shipped("dev-eks")) - others(in_auto_mode()) == set()


def test_every_pool_of_the_plan_is_a_node_pool_with_ceilings_and_its_own_node_class() -> None:
    assert pools().keys() == {*(pool.name for pool in plan().pools), OTHER_WORK, SYSTEM}
    assert classes().keys() == pools().keys()
    for name, spec in pools().items():
        assert spec["template"]["spec"]["nodeClassRef"] == {"group": "eks.amazonaws.com", "kind": "NodeClass", "name": name}
    assert {name: pools()[name]["limits"] for name in ceilings(plan())} == ceilings(plan())
    assert pools()[SYSTEM]["limits"] == {"nodes": "3"}, "system_pool.max_nodes"
    assert requirements(pools()[SYSTEM])["node.kubernetes.io/instance-type"] == ["m6i.xlarge"]
    kueue = next(each for each in in_auto_mode().of(RELEASE) if each.name == "kueue-release")
    assert "flexspot.dev/system" in json.dumps(kueue.inputs)


def test_flavors_and_routes_select_labels_of_auto_mode_nodes() -> None:
    flavors = {each["metadata"]["name"]: each["spec"] for each in in_auto_mode().inputs_of(f"{KUEUE}:ResourceFlavor")}

    assert flavors
    for flavor in plan().flavors:
        for name in flavor.pools:
            spec = pools()[name]
            assert flavors[flavor.name]["nodeLabels"].items() <= node_labels(name, spec).items()
            tolerated = taints_of(flavors[flavor.name]["tolerations"])
            assert {(each["key"], each["value"], each["effect"]) for each in spec["template"]["spec"]["taints"]} <= tolerated
    # The rules of the API server know both spellings.
    text = json.dumps([each.inputs for each in in_auto_mode().made.values() if "admission" not in each.type])
    assert "karpenter.k8s.aws" not in text, "no label of a Karpenter of one's own is on any node, or selected by anybody"
    assert "eks.amazonaws.com/instance-gpu-name" in text


def test_nodes_drain_before_aws_ends_them() -> None:
    """AWS ends nodes after 21 days, and would interrupt a drain that lasts longer."""
    for name, spec in pools().items():
        node = spec["template"]["spec"]
        hours = [_hours(node[key]) for key in ("expireAfter", "terminationGracePeriod")]
        assert sum(hours) <= 21 * 24, name
        assert hours[0] == 480, name
    # AWS's weekly new image causes drift. Services are moved, running jobs are not.
    assert {"nodes": "0", "reasons": ["Drifted"]} in pools()["l4-spot"]["disruption"]["budgets"]
    assert {"nodes": "0", "schedule": "0 8 * * mon-fri", "duration": "10h"} in pools()["l40s-on-demand"]["disruption"]["budgets"]


def _hours(written: str) -> float:
    return int(written[:-1]) / {"h": 1, "s": 3600}[written[-1]]


def test_auto_mode_node_classes_have_volume_reservation_and_tags() -> None:
    reserved, paid, system = (classes()[name] for name in ("l40s-reserved", "l40s-on-demand", SYSTEM))

    assert reserved["capacityReservationSelectorTerms"] == [{"owner": "444455556666", "tags": {"purpose": "serving"}}]
    assert requirements(pools()["l40s-reserved"])["karpenter.sh/capacity-type"] == ["reserved"]
    assert "capacityReservationSelectorTerms" not in paid
    assert paid["ephemeralStorage"]["size"] == "100Gi"
    assert system["ephemeralStorage"] == {"size": "50Gi", "iops": 3000, "throughput": 125}
    for spec in classes().values():
        assert spec["tags"]["environment"] == "dev"
        assert not {"amiSelectorTerms", "userData", "kubelet", "blockDeviceMappings", "metadataOptions"} & spec.keys()


@pytest.mark.slow
def test_a_pool_with_efa_has_interfaces_and_its_group_and_no_separate_plugin() -> None:
    efa = {"name": "a100", "machine": "p4d.24xlarge", "capacity_type": "spot", "zones": ["us-east-1b"], "max_nodes": 2}
    settings = auto_mode_settings()
    settings["pools"].append(efa | {"efa": True, "compact_placement": True, "serves": ["training"]})
    settings["teams"][0]["shares"]["a100"] = 8
    settings["budget"] = {"monthly_usd": 100_000}
    made = declared("dev-eks", settings)

    [spec] = [each["spec"] for each in made.inputs_of(AUTO_CLASS) if each["metadata"]["name"] == "a100"]
    # As in the EKS user guide for four cards: an address on the first, and an EFA-only interface on each.
    cards = [(each["networkCardIndex"], each["interfaceType"]) for each in spec["advancedNetworking"]["networkInterfaces"]]
    assert cards == [(0, "interface"), *((card, "efa-only") for card in range(4))]
    assert len(spec["securityGroupSelectorTerms"]) == 2, "the cluster's, and the one whose members reach one another"
    assert "placementGroupSelector" in spec
    waited = made.waits_for("kubernetes:eks.amazonaws.com/v1:NodeClass a100-class-node-class")
    assert "aws:ec2/placementGroup:PlacementGroup a100-placement-group" in waited
    assert not [each for each in made.made if "efa-k8s-device-plugin" in each or "gpu-plugins" in each]
    assert refused_inputs(made.made.values()) == []
    assert refused_requests(made.made.values()) == []


def test_pools_wait_for_node_access_and_controllers_for_their_nodes() -> None:
    made = in_auto_mode()
    [entry] = [each for each in made.of(ENTRY) if each.inputs["type"] == "EC2"]
    [access] = [each for each in made.of(ASSOCIATION) if each.inputs["policyArn"].endswith("/AmazonEKSAutoNodePolicy")]

    assert access.inputs["accessScope"] == {"type": "cluster"}
    assert entry.name == "auto-nodes-access"
    for name in pools():
        waited = made.waits_for(f"{NODE_POOL} {name}-node-pool")
        assert f"{ASSOCIATION} {access.name}" in waited
        assert {f"{ATTACHMENT} auto-nodes-role-{policy}" for policy in NODE_POLICIES} <= waited
    pool = f"{NODE_POOL} {SYSTEM}-node-pool"
    for inside in (f"{RELEASE} kueue-release", f"{ADDON} auto-addons-metrics-server"):
        assert pool in made.waits_for(inside)
    assert f"{ADDON} auto-addons-aws-mountpoint-s3-csi-driver" in made.waits_for(f"{RELEASE} kueue-release")


NODE_POLICIES = ("AmazonEKSWorkerNodeMinimalPolicy", "AmazonEC2ContainerRegistryPullOnly")


def test_network_policies_and_volumes_are_enabled_for_auto_mode() -> None:
    [policies] = [each for each in in_auto_mode().inputs_of("kubernetes:core/v1:ConfigMap") if each["metadata"]["name"] == "amazon-vpc-cni"]
    [volumes] = in_auto_mode().inputs_of("kubernetes:storage.k8s.io/v1:StorageClass")

    assert policies["metadata"]["namespace"] == "kube-system"
    assert policies["data"] == {"enable-network-policy-controller": "true"}
    assert volumes["provisioner"] == "ebs.csi.eks.amazonaws.com"
    startup = {taint["key"] for spec in pools().values() for taint in spec["template"]["spec"].get("startupTaints", [])}
    assert startup == {"s3.csi.aws.com/agent-not-ready"}, "Auto Mode's EBS driver takes no taint off"


def test_the_provider_and_awss_models_accept_every_input() -> None:
    made = in_auto_mode().made.values()

    assert refused_inputs(made) == []
    assert refused_requests(made) == []


def own_policy() -> PolicyDocument:
    """Return the cluster role's policy document of this project."""
    [own] = [each.inputs["policy"] for each in in_auto_mode().of("aws:iam/policy:Policy") if each.name == "cluster-own-tags-policy"]
    return json.loads(own)


def test_the_clusters_role_has_auto_modes_policies() -> None:
    attached = [each.inputs["policyArn"] for each in in_auto_mode().of(ATTACHMENT) if each.name.startswith("cluster-role-")]

    assert sorted(arn.rpartition("/AmazonEKS")[2].removesuffix("Policy") for arn in attached if "/AmazonEKS" in arn) == [
        *("BlockStorage", "Cluster", "Compute", "LoadBalancing", "Networking")
    ]


def test_auto_mode_may_tag_only_nodes_of_its_own_cluster() -> None:
    """AWS's own policies allow only tags of EKS. With any other tag of a NodeClass, no node could be launched."""
    own = own_policy()
    # The variable is the session's tag, which EKS sets to the cluster's name.
    of_the_cluster = {"aws:RequestTag/eks:eks-cluster-name": "${aws:PrincipalTag/eks:eks-cluster-name}"}

    def under(*tags: str) -> dict[str, Any]:
        return {"StringEquals": of_the_cluster, "StringLike": {f"aws:RequestTag/eks:kubernetes-{tag}": "*" for tag in tags}}

    launching = under("node-class-name", "node-pool-name")
    assert permissions(json.dumps(own)) == [
        *(("Allow", f"ec2:{action}", "*", launching) for action in ("CreateFleet", "RunInstances", "CreateLaunchTemplate")),
        ("Allow", "ec2:CreateNetworkInterface", "*", under("cni-node-name")),
    ]


@pytest.mark.nightly(tested_by="test_auto_mode_may_tag_only_nodes_of_its_own_cluster")
def test_principalmapper_lets_auto_mode_tag_only_nodes_of_its_own_cluster() -> None:
    own = own_policy()
    # principalmapper puts variables into resources, not into conditions.
    bound = json.loads(json.dumps(own).replace("${aws:PrincipalTag/eks:eks-cluster-name}", "dev"))
    tagged = {
        "aws:RequestTag/environment": "dev",
        "aws:RequestTag/eks:eks-cluster-name": "dev",
        "aws:RequestTag/eks:kubernetes-node-class-name": "l4-spot",
        "aws:RequestTag/eks:kubernetes-node-pool-name": "l4-spot",
    }
    refused = [tagged | {"aws:RequestTag/eks:eks-cluster-name": "other"}, {key: tagged[key] for key in tagged if "node-pool" not in key}]
    actions = ("ec2:RunInstances", "ec2:CreateFleet", "ec2:CreateLaunchTemplate")
    instance = "arn:aws:ec2:us-east-1:111122223333:instance/*"

    assert decided_otherwise([bound], "allowed", [Request(action, instance, tagged) for action in actions]) == []
    assert decided_otherwise([bound], "none", [Request(action, instance, context) for action in actions for context in refused]) == []


def test_parliament_finds_nothing_in_the_documents_of_roles() -> None:
    roles = [each for each in in_auto_mode().of("aws:iam/role:Role") if each.name in {"cluster-role", "auto-nodes-role"}]
    own = own_policy()

    assert [each for role in roles for each in findings(role.inputs["assumeRolePolicy"], resource_own=True)] == []
    assert {each.issue for each in findings(json.dumps(own))} <= {"RESOURCE_MISMATCH"}, "a launch touches several kinds, as AWS writes it"
    [trust] = [json.loads(each.inputs["assumeRolePolicy"]) for each in roles if each.name == "cluster-role"]
    assert trust["Statement"][0]["Action"] == ["sts:AssumeRole", "sts:TagSession"]
