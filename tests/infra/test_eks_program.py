"""The program with the shipped EKS stacks: its declarations, their order and consistency; without an engine."""

from __future__ import annotations

import json

import pytest
from declared_inputs import violations
from eks_declarations import (
    CLUSTER,
    NODE_CLASS,
    NODE_POOL,
    OTHER_WORK,
    RELEASE,
    SYSTEM_NODES,
    ceilings,
    gpu_pools,
    node_classes,
    node_labels,
    requirements,
)
from program_declarations import as_shipped, declared, plan_of, shipped

ATTACHMENT = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"
BINDING = "kubernetes:rbac.authorization.k8s.io/v1:RoleBinding"
ENTRY = "aws:eks/accessEntry:AccessEntry"
STORAGE_CLASS = "kubernetes:storage.k8s.io/v1:StorageClass"

EFA_GROUP = "aws:ec2/securityGroup:SecurityGroup"
both_stacks = pytest.mark.parametrize("stack", ["dev-eks", "prod-eks"])


@both_stacks
def test_every_pool_of_the_plan_is_a_node_pool_with_its_own_node_class_and_waits_for_karpenter(stack: str) -> None:
    declarations = as_shipped(stack)
    pools = gpu_pools(declarations)

    assert set(pools) == {pool.name for pool in plan_of(stack).pools}
    assert set(node_classes(declarations)) == {*pools, OTHER_WORK}
    assert {name: spec["template"]["spec"]["nodeClassRef"]["name"] for name, spec in pools.items()} == {name: name for name in pools}
    karpenter = f"{RELEASE} karpenter-release"
    inside = [name for name in declarations.made if name.startswith((NODE_POOL, NODE_CLASS))]
    assert [name for name in inside if karpenter not in declarations.waits_for(name)] == []
    assert {SYSTEM_NODES, f"{RELEASE} karpenter-crds"} <= declarations.waits_for(karpenter)


@both_stacks
def test_karpenter_starts_after_its_identity_and_its_nodes_access(stack: str) -> None:
    declarations = as_shipped(stack)
    karpenter = declarations.waits_for(f"{RELEASE} karpenter-release")

    assert "aws:eks/podIdentityAssociation:PodIdentityAssociation karpenter-identity-association" in karpenter
    assert "aws:eks/addon:Addon cluster-eks-pod-identity-agent" in karpenter
    for name in gpu_pools(declarations):
        assert "aws:eks/accessEntry:AccessEntry karpenter-nodes-access" in declarations.waits_for(f"{NODE_POOL} {name}-node-pool")


@pytest.mark.slow
def test_admins_have_access_until_the_clusters_last_object_is_deleted() -> None:
    admin = {"admin_roles": ["arn:aws:iam::111122223333:role/platform-admin"]}
    settings = shipped("dev-eks")
    declarations = declared("dev-eks", settings | {"cluster": settings["cluster"] | admin})

    access = "aws:eks/accessPolicyAssociation:AccessPolicyAssociation cluster-admin-111122223333-platform-admin-policy"
    assert access in declarations.waits_for("pulumi:providers:kubernetes cluster")


@pytest.mark.slow
def test_a_role_in_two_teams_has_one_access_entry_and_both_teams_bind_its_groups() -> None:
    role = "arn:aws:iam::111122223333:role/aws-reserved/sso.amazonaws.com/AWSReservedSSO_Ml_0123456789abcdef"
    settings = shipped("prod-eks")
    nlp, vision = (each for each in settings["teams"] if each["name"] in {"nlp", "vision"})
    nlp["submitters"], vision["viewers"] = [role, "pipelines"], [role]

    declarations = declared("prod-eks", settings)

    [entry] = [each for each in declarations.inputs_of(ENTRY) if each["principalArn"] == role]
    assert violations(ENTRY, entry) == []
    assert entry["kubernetesGroups"] == ["flexspot:nlp:submit", "flexspot:vision:view"]
    bound = {
        (each["metadata"]["namespace"], each["roleRef"]["name"], subject["name"])
        for each in declarations.inputs_of(BINDING)
        for subject in each["subjects"]
        if each["metadata"]["namespace"] in {"nlp", "vision"}
    }
    assert bound == {
        ("nlp", "submit", "flexspot:nlp:submit"),
        ("nlp", "submit", "pipelines"),
        ("vision", "view", "flexspot:vision:view"),
    }


@both_stacks
def test_all_aws_resources_are_in_the_stacks_region_and_account(stack: str) -> None:
    declarations = as_shipped(stack)
    [provider] = declarations.inputs_of("pulumi:providers:aws")

    assert json.loads(provider["allowedAccountIds"]) == ["111122223333"]
    assert provider["region"] == "us-east-1"
    made = {name: each for name, each in declarations.made.items() if name.startswith("aws:")}
    assert {
        name for name, each in made.items() if "$pulumi:providers:aws::aws::" not in each.provider.replace("::pulumi:", "$pulumi:")
    } == set()


@both_stacks
def test_node_pools_have_the_ceilings_labels_and_machines_of_the_plan(stack: str) -> None:
    plan, pools = plan_of(stack), gpu_pools(as_shipped(stack))

    assert {name: spec["limits"] for name, spec in pools.items()} == ceilings(plan)
    for pool in plan.pools:
        spec = pools[pool.name]
        assert pool.selector.items() <= node_labels(pool.name, spec).items()
        assert requirements(spec)["node.kubernetes.io/instance-type"] == list(pool.machines)
        assert requirements(spec)["topology.kubernetes.io/zone"] == sorted(pool.zones)


def test_jobs_are_never_moved_and_services_only_outside_their_quiet_hours() -> None:
    pools = gpu_pools(as_shipped("prod-eks"))

    training, inference = pools["h100-reserved"], pools["l4-reserved"]
    assert training["disruption"]["consolidationPolicy"] == "WhenEmpty"
    assert training["template"]["spec"]["expireAfter"] == "Never"
    assert {"nodes": "0", "reasons": ["Drifted"]} in training["disruption"]["budgets"]
    assert "terminationGracePeriod" not in training["template"]["spec"]
    assert inference["disruption"]["consolidationPolicy"] == "WhenEmptyOrUnderutilized"
    assert {"nodes": "0", "schedule": "0 7 * * mon-fri", "duration": "12h"} in inference["disruption"]["budgets"]


def test_reserved_pools_draw_on_their_own_reservations_and_no_other_pool_does() -> None:
    classes = node_classes(as_shipped("prod-eks"))

    assert {
        name: spec["capacityReservationSelectorTerms"] for name, spec in classes.items() if "capacityReservationSelectorTerms" in spec
    } == {
        "h100-reserved": [{"tags": {"purpose": "training"}}],
        "l4-reserved": [{"id": "cr-0a1b2c3d4e5f60718"}],
    }
    assert {spec["amiSelectorTerms"][0]["alias"] for spec in classes.values()} == {"al2023@v20260903"}


@pytest.mark.slow
def test_a_teams_work_queue_has_a_dead_letter_queue_and_only_that_team_may_read_it() -> None:
    settings = shipped("dev-eks")
    settings["teams"][0]["work_queue"] = {"name": "sweeps"}

    declarations = declared("dev-eks", settings)

    queues = {each["name"]: each for each in declarations.inputs_of("aws:sqs/queue:Queue")}
    assert set(queues) == {"dev", "dev_research_sweeps", "dev_research_sweeps-dead-letter"}
    work = queues["dev_research_sweeps"]
    assert work["visibilityTimeoutSeconds"] == 300
    assert work["tags"]["team"] == "research"
    rights = [each for each in declarations.of("aws:iam/rolePolicy:RolePolicy") if "sqs:ReceiveMessage" in str(each.inputs["policy"])]
    assert len(rights) == 1
    assert "dev_research_sweeps" in rights[0].inputs["policy"]


@pytest.mark.parametrize("stack,ranges", [("dev-eks", ["203.0.113.0/24"]), ("prod-eks", None)])
def test_the_api_server_is_public_only_for_named_ranges(stack: str, ranges: list[str] | None) -> None:
    [cluster] = as_shipped(stack).inputs_of(CLUSTER)

    assert cluster["vpcConfig"]["endpointPublicAccess"] is (ranges is not None)
    assert cluster["vpcConfig"].get("publicAccessCidrs") == ranges


def test_only_multi_node_training_has_efa_and_its_security_group() -> None:
    declarations = as_shipped("prod-eks")
    classes = node_classes(declarations)

    [group] = [each for each in declarations.made.values() if each.type == EFA_GROUP and each.inputs["name"] == "efa-prod"]
    assert "karpenter.sh/discovery" not in group.inputs["tags"], "Karpenter would give it to all nodes"
    discovered = [{"tags": {"karpenter.sh/discovery": "prod"}}]
    assert [name for name, spec in classes.items() if spec["securityGroupSelectorTerms"] != discovered] == ["h100-reserved"]
    assert classes["h100-reserved"]["securityGroupSelectorTerms"][0] == discovered[0]
    assert [name for name, spec in classes.items() if "networkInterfaces" in spec] == ["h100-reserved"]
    assert {each["networkCardIndex"] for each in classes["h100-reserved"]["networkInterfaces"]} == set(range(32))
    assert declarations.made[f"{RELEASE} gpu-plugins-efa"].inputs["chart"] == "aws-efa-k8s-device-plugin"


@pytest.mark.slow
def test_an_existing_cluster_keeps_its_storage_class_and_gets_access_for_nodes_and_teams() -> None:
    role = "arn:aws:iam::111122223333:role/nlp"
    settings = shipped("dev-eks")
    settings["teams"][0]["viewers"] = [role]
    existing = declared("dev-eks", settings | {"cluster": settings["cluster"] | {"existing": "theirs"}})
    ours = as_shipped("dev-eks")

    [made] = ours.of(STORAGE_CLASS)
    assert "aws:eks/addon:Addon cluster-aws-ebs-csi-driver" in ours.waits_for(f"{STORAGE_CLASS} {made.name}")
    assert existing.of(STORAGE_CLASS) == []
    # On a cluster that the stack creates, nodes may not change the network.
    assert f"{ATTACHMENT} karpenter-nodes-cni" not in ours.made
    assert f"{ATTACHMENT} karpenter-nodes-cni" in existing.made
    assert {each["clusterName"] for each in existing.inputs_of(ENTRY) if each["principalArn"] == role} == {"theirs"}


@pytest.mark.slow
def test_the_first_subnets_of_an_existing_network_are_the_control_planes() -> None:
    subnets = ["subnet-0a1b2c3d", "subnet-1a2b3c4d", "subnet-2a3b4c5d"]
    zones = ["us-east-1a", "us-east-1b", "us-east-1c"]
    network = {"existing_vpc": "vpc-0a1b2c3d", "existing_private_subnets": subnets}
    own = {"existing_control_plane_subnets": ["subnet-8a1b2c3d", "subnet-9a1b2c3d"]}

    found, named = (declared("dev-eks", shipped("dev-eks", zones=zones, network=each)) for each in (network, network | own))

    # The control plane keeps its subnets if the nodes get more.
    [cluster], [group] = found.inputs_of(CLUSTER), found.inputs_of("aws:eks/nodeGroup:NodeGroup")
    assert (cluster["vpcConfig"]["subnetIds"], group["subnetIds"]) == (subnets[:2], subnets)
    assert [each["vpcConfig"]["subnetIds"] for each in named.inputs_of(CLUSTER)] == [own["existing_control_plane_subnets"]]
    assert [name for name in found.made if name.startswith(("aws:ec2/vpc", "aws:ec2/subnet", "aws:ec2/nat"))] == []
    terms = [{"id": subnet} for subnet in subnets]
    assert all(spec["subnetSelectorTerms"] == terms for spec in node_classes(found).values())


def test_the_network_of_a_protected_cluster_is_protected_too() -> None:
    kept = [{each.name for each in as_shipped(stack).of("aws:ec2/vpc:Vpc") if each.protected} for stack in ("dev-eks", "prod-eks")]
    subnets = {each.name for each in as_shipped("prod-eks").of("aws:ec2/subnet:Subnet") if each.protected}

    assert kept == [set(), {"network-vpc"}]
    assert subnets == {"network-control-plane-us-east-1a", "network-control-plane-us-east-1b"}


@pytest.mark.slow
def test_another_zone_of_nodes_does_not_change_the_control_plane() -> None:
    """AWS refuses a cluster subnets in other zones than those of its creation (EKS user guide, "networking requirements")."""
    more = declared("dev-eks", shipped("dev-eks", zones=["us-east-1a", "us-east-1b", "us-east-1d"]))

    for each in (as_shipped("dev-eks"), more):
        subnets = {subnet["cidrBlock"]: subnet["availabilityZone"] for subnet in each.inputs_of("aws:ec2/subnet:Subnet")}
        own = {cidr: zone for cidr, zone in subnets.items() if cidr.endswith("/28")}
        assert own == {"10.0.255.224/28": "us-east-1a", "10.0.255.240/28": "us-east-1b"}
