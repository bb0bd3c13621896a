"""The program over the shipped EKS stacks: what it declares, in which order, and what agrees with what; without an engine."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
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
from program_declarations import KUEUE, as_shipped, declared, plan_of, shipped, taints_of

from capacity.catalog.node_labels import KARPENTER_POOL_LABEL
from lab.providers.cloud_rules.rule_checks import violations

if TYPE_CHECKING:
    from collections.abc import Mapping

WITHOUT_TAGS = re.compile(
    r"aws:(cloudwatch/eventTarget:EventTarget|ec2/(route:Route|routeTableAssociation:RouteTableAssociation|tag:Tag)"
    r"|iam/(rolePolicy:RolePolicy|rolePolicyAttachment:RolePolicyAttachment)|kms/alias:Alias|eks/accessPolicyAssociation.*"
    r"|s3/bucket(LifecycleConfiguration|OwnershipControls|Policy|PublicAccessBlock|ServerSideEncryptionConfiguration|Versioning):.*"
    r"|sqs/(queuePolicy:QueuePolicy|redriveAllowPolicy:RedriveAllowPolicy))"
)
"""The resources of AWS among ours that have no tags."""

ATTACHMENT = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"
BINDING = "kubernetes:rbac.authorization.k8s.io/v1:RoleBinding"
ENTRY = "aws:eks/accessEntry:AccessEntry"
STORAGE_CLASS = "kubernetes:storage.k8s.io/v1:StorageClass"

LONGEST_POLICY = 6144
"""Characters of a managed policy, white space not counted. https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html"""

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
def test_karpenter_starts_only_when_its_pods_can_act_and_its_nodes_can_join(stack: str) -> None:
    declarations = as_shipped(stack)
    karpenter = declarations.waits_for(f"{RELEASE} karpenter-release")

    assert "aws:eks/podIdentityAssociation:PodIdentityAssociation karpenter-identity-association" in karpenter
    assert "aws:eks/addon:Addon cluster-eks-pod-identity-agent" in karpenter
    for name in gpu_pools(declarations):
        assert "aws:eks/accessEntry:AccessEntry karpenter-nodes-access" in declarations.waits_for(f"{NODE_POOL} {name}-node-pool")


@both_stacks
def test_queues_wait_for_kueue_and_everything_inside_goes_to_the_clusters_own_api_server(stack: str) -> None:
    declarations = as_shipped(stack)
    inside = {name: each for name, each in declarations.made.items() if name.startswith("kubernetes:")}

    assert {name for name, each in inside.items() if "$pulumi:providers:kubernetes::cluster::" not in each.provider} == set()
    release = f"{RELEASE} kueue-release"
    assert {name for name in inside if name.startswith(KUEUE) and release not in declarations.waits_for(name)} == set()
    assert SYSTEM_NODES in declarations.waits_for(release)


@pytest.mark.parametrize("stack,protected", [("dev-eks", False), ("prod-eks", True)])
def test_a_cluster_that_may_not_be_destroyed_is_protected_from_the_preview_on(stack: str, protected: object) -> None:
    [cluster] = as_shipped(stack).of(CLUSTER)

    # Refused by EKS alone, what runs on the cluster would be gone by then.
    assert (cluster.protected, cluster.inputs["deletionProtection"]) == (protected, protected)


@pytest.mark.slow
def test_admins_have_access_until_the_last_object_of_the_cluster_is_gone() -> None:
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


@pytest.mark.slow
def test_a_cluster_that_is_there_already_lets_roles_of_teams_in_too() -> None:
    role = "arn:aws:iam::111122223333:role/nlp"
    settings = shipped("dev-eks")
    settings["teams"][0]["viewers"] = [role]
    existing = declared("dev-eks", settings | {"cluster": settings["cluster"] | {"existing": "theirs"}})

    assert {each["clusterName"] for each in existing.inputs_of(ENTRY) if each["principalArn"] == role} == {"theirs"}


@pytest.mark.slow
def test_a_cluster_of_ours_has_a_default_class_of_volumes_and_anothers_keeps_its_own() -> None:
    settings = shipped("dev-eks")
    existing = declared("dev-eks", settings | {"cluster": settings["cluster"] | {"existing": "theirs"}})

    [made] = as_shipped("dev-eks").of(STORAGE_CLASS)
    assert "aws:eks/addon:Addon cluster-aws-ebs-csi-driver" in as_shipped("dev-eks").waits_for(f"{STORAGE_CLASS} {made.name}")
    assert existing.of(STORAGE_CLASS) == []


@both_stacks
def test_volumes_can_be_attached_to_every_node_of_karpenters(stack: str) -> None:
    declarations = as_shipped(stack)
    [cluster] = declarations.inputs_of(CLUSTER)

    assert {spec["tags"].get("ebs.csi.aws.com/cluster-name") for spec in node_classes(declarations).values()} == {cluster["name"]}


@pytest.mark.slow
def test_nodes_of_a_cluster_of_ours_may_not_change_the_network_and_those_of_anothers_may() -> None:
    settings = shipped("dev-eks")
    existing = declared("dev-eks", settings | {"cluster": settings["cluster"] | {"existing": "theirs"}})

    assert f"{ATTACHMENT} karpenter-nodes-cni" not in as_shipped("dev-eks").made
    assert f"{ATTACHMENT} karpenter-nodes-cni" in existing.made


@both_stacks
def test_everything_of_aws_is_made_in_the_named_region_of_the_named_account_alone(stack: str) -> None:
    declarations = as_shipped(stack)
    [provider] = declarations.inputs_of("pulumi:providers:aws")

    assert json.loads(provider["allowedAccountIds"]) == ["111122223333"]
    assert provider["region"] == "us-east-1"
    made = {name: each for name, each in declarations.made.items() if name.startswith("aws:")}
    assert {
        name for name, each in made.items() if "$pulumi:providers:aws::aws::" not in each.provider.replace("::pulumi:", "$pulumi:")
    } == set()


def test_production_is_reached_from_inside_alone_and_is_protected() -> None:
    [cluster] = as_shipped("prod-eks").inputs_of(CLUSTER)

    assert (cluster["vpcConfig"]["endpointPrivateAccess"], cluster["vpcConfig"]["endpointPublicAccess"]) == (True, False)
    assert cluster["deletionProtection"] is True
    assert cluster["encryptionConfig"]["resources"] == ["secrets"]
    assert [each.get("forceDestroy", False) for each in as_shipped("prod-eks").inputs_of("aws:s3/bucket:Bucket")] == [False, False]


def test_development_is_reached_from_named_ranges_and_can_be_destroyed() -> None:
    [cluster] = as_shipped("dev-eks").inputs_of(CLUSTER)

    assert cluster["vpcConfig"]["endpointPublicAccess"] is True
    assert cluster["vpcConfig"]["publicAccessCidrs"] == ["203.0.113.0/24"]
    assert cluster["deletionProtection"] is False
    assert len(as_shipped("dev-eks").of("aws:ec2/natGateway:NatGateway")) == 1
    assert len(as_shipped("prod-eks").of("aws:ec2/natGateway:NatGateway")) == 3


@both_stacks
def test_node_pools_have_the_ceilings_labels_and_taints_of_the_plan(stack: str) -> None:
    plan, pools = plan_of(stack), gpu_pools(as_shipped(stack))

    assert {name: spec["limits"] for name, spec in pools.items()} == ceilings(plan)
    for pool in plan.pools:
        spec = pools[pool.name]
        assert pool.selector.items() <= node_labels(pool.name, spec).items()
        assert requirements(spec)["node.kubernetes.io/instance-type"] == list(pool.machines)
        assert requirements(spec)["topology.kubernetes.io/zone"] == sorted(pool.zones)
        assert taints_of(spec["template"]["spec"]["taints"]) == {(each.key, each.value, each.effect.value) for each in pool.taints}


@both_stacks
def test_a_flavor_selects_only_labels_that_its_pools_have_before_a_node_boots(stack: str) -> None:
    pools = gpu_pools(as_shipped(stack))
    flavors = {each["metadata"]["name"]: each["spec"] for each in as_shipped(stack).inputs_of(f"{KUEUE}:ResourceFlavor")}

    plan = plan_of(stack)
    assert plan.cpu_work is not None
    assert set(flavors) == {*(flavor.name for flavor in plan.flavors), plan.cpu_work.flavor}
    assert flavors[plan.cpu_work.flavor] == {"nodeLabels": {KARPENTER_POOL_LABEL: OTHER_WORK}}, "nothing else, and no toleration"
    assert OTHER_WORK in {each["metadata"]["name"] for each in as_shipped(stack).inputs_of("kubernetes:karpenter.sh/v1:NodePool")}
    for flavor in plan.flavors:
        for pool in flavor.pools:
            assert flavors[flavor.name]["nodeLabels"].items() <= node_labels(pool, pools[pool]).items()


@both_stacks
def test_flavors_and_routes_tolerate_every_taint_of_the_pools_that_they_lead_to(stack: str) -> None:
    plan, pools = plan_of(stack), gpu_pools(as_shipped(stack))
    taints = {name: taints_of(spec["template"]["spec"]["taints"]) for name, spec in pools.items()}
    flavors = {each["metadata"]["name"]: each["spec"] for each in as_shipped(stack).inputs_of(f"{KUEUE}:ResourceFlavor")}

    for flavor in plan.flavors:
        spec = flavors[flavor.name]
        known = taints_of(spec["tolerations"]) | taints_of(spec.get("nodeTaints", []))
        assert {pool for pool in flavor.pools if not taints[pool] <= known} == set()
    for route in plan.routes:
        tolerated = {(taint.key, taint.value, taint.effect.value) for taint in route.tolerations}
        assert {route_pool.pool for route_pool in route.pools if not taints[route_pool.pool] <= tolerated} == set()


def test_running_jobs_are_never_moved_and_services_are_moved_a_tenth_at_a_time_outside_their_quiet_hours() -> None:
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


def test_nodes_of_multi_node_training_have_every_network_card_for_it() -> None:
    declarations = as_shipped("prod-eks")

    cards = {each["networkCardIndex"] for each in node_classes(declarations)["h100-reserved"]["networkInterfaces"]}
    assert cards == set(range(32)), "as many as a p5.48xlarge has"
    assert [name for name, spec in node_classes(declarations).items() if "networkInterfaces" in spec] == ["h100-reserved"]
    assert declarations.made[f"{RELEASE} gpu-plugins-efa"].inputs["chart"] == "aws-efa-k8s-device-plugin"


def test_nodes_with_efa_let_each_other_in_and_out_by_their_own_group_and_no_other_nodes_do() -> None:
    declarations = as_shipped("prod-eks")

    [group] = [each for each in declarations.made.values() if each.type == EFA_GROUP and each.inputs["name"] == "efa-prod"]
    # Rules that name the group itself, in both directions: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-start.html
    for direction in ("ingress", "egress"):
        [rule] = group.inputs[direction]
        assert {key: rule[key] for key in ("protocol", "fromPort", "toPort", "self")} == {
            "protocol": "-1",
            "fromPort": 0,
            "toPort": 0,
            "self": True,
        }
        assert "cidrBlocks" not in rule
    assert "karpenter.sh/discovery" not in group.inputs["tags"], "Karpenter would give it to all nodes"
    terms = {name: spec["securityGroupSelectorTerms"] for name, spec in node_classes(declarations).items()}
    discovered = [{"tags": {"karpenter.sh/discovery": "prod"}}]
    assert [name for name, each in terms.items() if each != discovered] == ["h100-reserved"]
    assert terms["h100-reserved"][0] == discovered[0]
    assert len(terms["h100-reserved"]) == 2, "the cluster's group, and the one for EFA"


def test_no_group_is_made_where_no_pool_has_efa() -> None:
    assert [each for each in as_shipped("dev-eks").made.values() if each.type == EFA_GROUP and each.inputs["name"].startswith("efa-")] == []


@both_stacks
def test_every_policy_fits_into_what_iam_takes(stack: str) -> None:
    documents = {
        name: each.inputs["policy"]
        for name, each in as_shipped(stack).made.items()
        if each.type in {"aws:iam/policy:Policy", "aws:iam/rolePolicy:RolePolicy"}
    }

    lengths = {name: len(re.sub(r"\s", "", text)) for name, text in documents.items() if isinstance(text, str)}
    assert len(lengths) > 6
    assert {name: length for name, length in lengths.items() if length > LONGEST_POLICY} == {}


@both_stacks
def test_everything_that_takes_tags_or_labels_says_whose_it_is(stack: str) -> None:
    settings = shipped(stack)
    wanted = {"environment": settings["environment"], "owner": settings["owner"]}

    for name, each in as_shipped(stack).made.items():
        if name.startswith("aws:") and not WITHOUT_TAGS.match(name):
            assert wanted.items() <= each.inputs.get("tags", {}).items(), name
        elif name.startswith("kubernetes:") and "metadata" in each.inputs:
            labels = each.inputs["metadata"]["labels"]
            assert {f"flexspot.dev/{key}": value for key, value in wanted.items()}.items() <= labels.items(), name


@pytest.mark.slow
def test_a_work_queue_of_a_team_is_a_queue_a_place_for_what_fails_and_a_right_of_that_team_alone() -> None:
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


@pytest.mark.slow
def test_an_existing_network_is_used_and_none_is_made() -> None:
    subnets = ["subnet-0a1b2c3d", "subnet-1a2b3c4d"]

    declarations = declared("dev-eks", shipped("dev-eks", network={"existing_vpc": "vpc-0a1b2c3d", "existing_private_subnets": subnets}))

    [cluster] = declarations.inputs_of(CLUSTER)
    assert cluster["vpcConfig"]["subnetIds"] == subnets
    [group] = declarations.inputs_of("aws:eks/nodeGroup:NodeGroup")
    assert group["subnetIds"] == subnets
    assert [name for name in declarations.made if name.startswith(("aws:ec2/vpc", "aws:ec2/subnet", "aws:ec2/nat"))] == []
    assert {json.dumps(spec["subnetSelectorTerms"]) for spec in node_classes(declarations).values()} == {
        json.dumps([{"id": subnet} for subnet in subnets])
    }


@pytest.mark.thorough
def test_in_an_existing_network_the_control_plane_keeps_its_subnets_when_the_nodes_get_more() -> None:
    network = {"existing_vpc": "vpc-0a1b2c3d", "existing_private_subnets": ["subnet-0a1b2c3d", "subnet-1a2b3c4d", "subnet-2a3b4c5d"]}
    own = {"existing_control_plane_subnets": ["subnet-8a1b2c3d", "subnet-9a1b2c3d"]}

    def of_the_control_plane(network: Mapping[str, object]) -> object:
        zones = ["us-east-1a", "us-east-1b", "us-east-1c"]
        [cluster] = declared("dev-eks", shipped("dev-eks", zones=zones, network=network)).inputs_of(CLUSTER)
        return cluster["vpcConfig"]["subnetIds"]

    assert of_the_control_plane(network) == ["subnet-0a1b2c3d", "subnet-1a2b3c4d"]
    assert of_the_control_plane(network | own) == own["existing_control_plane_subnets"]


@pytest.mark.thorough
@pytest.mark.parametrize("protected", [True, False])
def test_what_would_delete_the_ground_under_a_protected_cluster_fails_in_the_preview(protected: object) -> None:
    declarations = declared("prod-eks", shipped("prod-eks", cluster={**shipped("prod-eks")["cluster"], "deletion_protection": protected}))

    kept = {each.name for each in declarations.made.values() if each.protected and each.type.startswith("aws:ec2/")}
    subnets = {"network-control-plane-us-east-1a", "network-control-plane-us-east-1b"}
    assert kept == ({"network-vpc"} | subnets if protected else set())


@pytest.mark.thorough
def test_another_zone_of_nodes_leaves_the_control_plane_as_it_is() -> None:
    """AWS refuses a cluster subnets in other zones than those it was made with (EKS user guide, "networking requirements")."""

    def of_the_cluster(**changes: object) -> dict[str, str]:
        declarations = declared("dev-eks", shipped("dev-eks", **changes))
        subnets = {each["cidrBlock"]: each["availabilityZone"] for each in declarations.inputs_of("aws:ec2/subnet:Subnet")}
        return {cidr: zone for cidr, zone in subnets.items() if cidr.endswith("/28")}

    assert of_the_cluster() == {"10.0.255.224/28": "us-east-1a", "10.0.255.240/28": "us-east-1b"}
    assert of_the_cluster(zones=["us-east-1a", "us-east-1b", "us-east-1d"]) == of_the_cluster()
