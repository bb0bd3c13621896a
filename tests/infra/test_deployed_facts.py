"""Facts about all resources of the shipped stacks: numbers, owners, protection and names."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import eks_declarations as eks
import gke_declarations as gke
import pytest
from program_declarations import COMPONENTS, KUEUE, as_shipped, plan_of, shipped, taints_of

from flexspot.capacity.catalog.node_labels import KARPENTER_POOL_LABEL
from flexspot.capacity.values.names import is_production
from flexspot.components.cloud_names import check_aws_tags, check_gcp_labels

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from program_declarations import Declared

pytestmark = pytest.mark.slow

STACKS = ("local", "dev-gke", "prod-gke", "dev-eks", "prod-eks")
each_stack = pytest.mark.parametrize("stack", STACKS)
each_cloud_stack = pytest.mark.parametrize("stack", STACKS[1:])

COUNTS = {
    "aws:cloudwatch": (0, 0, 0, 11, 11),
    "aws:ec2": (0, 0, 0, 28, 48),
    "aws:eks": (0, 0, 0, 15, 16),
    "aws:iam": (0, 0, 0, 35, 37),
    "aws:kms": (0, 0, 0, 2, 2),
    "aws:s3": (0, 0, 0, 13, 13),
    "aws:sqs": (0, 0, 0, 2, 2),
    "aws:vpc": (0, 0, 0, 1, 2),
    "gcp:compute": (0, 4, 4, 0, 0),
    "gcp:container": (0, 4, 8, 0, 0),
    "gcp:projects": (0, 3, 3, 0, 0),
    "gcp:serviceaccount": (0, 7, 9, 0, 0),
    "gcp:storage": (0, 12, 15, 0, 0),
    "kubernetes:admissionregistration.k8s.io": (17, 15, 15, 15, 15),
    "kubernetes:apps": (0, 1, 1, 1, 1),
    "kubernetes:cloud.google.com": (0, 0, 1, 0, 0),
    "kubernetes:core": (14, 33, 47, 34, 48),
    "kubernetes:helm.sh": (0, 1, 1, 5, 6),
    "kubernetes:karpenter.k8s.aws": (0, 0, 0, 3, 6),
    "kubernetes:karpenter.kwok.sh": (1, 0, 0, 0, 0),
    "kubernetes:karpenter.sh": (3, 0, 0, 3, 6),
    "kubernetes:kueue.x-k8s.io": (14, 20, 31, 20, 28),
    "kubernetes:monitoring.googleapis.com": (0, 2, 2, 0, 0),
    "kubernetes:networking.k8s.io": (2, 3, 4, 3, 4),
    "kubernetes:rbac.authorization.k8s.io": (10, 8, 10, 8, 10),
    "kubernetes:scheduling.k8s.io": (4, 4, 5, 4, 5),
    "kubernetes:storage.k8s.io": (0, 0, 0, 1, 1),
    "pulumi:providers:aws": (0, 0, 0, 1, 1),
    "pulumi:providers:kubernetes": (1, 1, 1, 1, 1),
}
"""Reviewed number of resources by service or API group, one for each stack."""

UNLABELLED = re.compile(
    r"pulumi:|kubernetes:helm|aws:(cloudwatch/eventTarget:EventTarget|ec2/(route:Route|routeTableAssociation:RouteTableAssociation|tag:Tag)"
    r"|iam/(rolePolicy:RolePolicy|rolePolicyAttachment:RolePolicyAttachment)|kms/alias:Alias"
    r"|s3/bucket(LifecycleConfiguration|OwnershipControls|Policy|PublicAccessBlock|ServerSideEncryptionConfiguration|Versioning):.*"
    r"|sqs/queuePolicy:QueuePolicy)"
    r"|gcp:(compute/(network:Network|subnetwork:Subnetwork|router:Router|routerNat:RouterNat)|serviceaccount/account:Account"
    r"|storage/managedFolder:ManagedFolder|.*I[Aa][Mm]Member)"
)
"""Types that have neither tags nor labels."""

CLUSTERS = {"gcp:container/cluster:Cluster", "aws:eks/cluster:Cluster"}
POOLS = {"gcp:container/nodePool:NodePool", "kubernetes:karpenter.sh/v1:NodePool"}


def deployed(stack: str) -> list[Declared]:
    return [each for each in as_shipped(stack).made.values() if not each.type.startswith(COMPONENTS)]


def cluster_of(stack: str) -> Declared:
    [cluster] = [each for each in deployed(stack) if each.type in CLUSTERS]
    return cluster


@each_stack
def test_a_stack_has_the_reviewed_number_of_resources_per_group(stack: str) -> None:
    found = Counter(each.type if each.type.startswith("pulumi:") else each.type.partition("/")[0] for each in deployed(stack))

    assert found == {group: counts[STACKS.index(stack)] for group, counts in COUNTS.items() if counts[STACKS.index(stack)]}


@each_stack
def test_every_resource_has_valid_labels_of_environment_and_owner(stack: str) -> None:
    wanted = {key: shipped(stack)[key] for key in ("environment", "owner")}

    for each in deployed(stack):
        if UNLABELLED.match(each.type):
            continue
        if each.type.startswith("aws:"):
            check_aws_tags(each.name, each.inputs["tags"])
            assert wanted.items() <= each.inputs["tags"].items(), each.name
        elif each.type.startswith("gcp:"):
            holder = each.inputs.get("nodeConfig", each.inputs) if each.type in POOLS else each.inputs
            labels = holder.get("resourceLabels") or holder["labels"]
            check_gcp_labels(each.name, labels)
            assert wanted.items() <= labels.items(), each.name
        else:
            labels = each.inputs["metadata"]["labels"]
            assert {f"flexspot.dev/{key}": value for key, value in wanted.items()}.items() <= labels.items(), each.name


@dataclass(frozen=True)
class Nodes:
    """Nodes of a pool: labels and taints before they boot, and their greatest number."""

    labels: Mapping[str, str | None]
    taints: set[tuple[str, str, str]]
    most: int


def nodes_of(stack: str) -> dict[str, Nodes]:
    """Return the nodes of each GPU pool of the plan, with the additions of GKE or Karpenter."""
    made, plan = as_shipped(stack), plan_of(stack)
    if stack.endswith("gke"):
        return {
            name: Nodes(gke.node_labels(plan, pool), gke.node_taints(plan, pool), pool.inputs["autoscaling"]["totalMaxNodeCount"])
            for name, pool in gke.gpu_pools(made).items()
        }
    return {
        name: Nodes(eks.node_labels(name, spec), taints_of(spec["template"]["spec"]["taints"]), int(spec["limits"]["nodes"]))
        for name, spec in eks.gpu_pools(made).items()
    }


def as_taints(taints: Iterable[Any]) -> set[tuple[str, str, str]]:
    return {(each.key, each.value, each.effect.value) for each in taints}


@each_stack
def test_every_gpu_pool_has_the_plans_taints_and_ceiling(stack: str) -> None:
    pools = {pool.name: pool for pool in plan_of(stack).pools}
    nodes = nodes_of(stack)

    assert nodes.keys() == pools.keys()
    assert {name: (each.taints, each.most) for name, each in nodes.items()} == {
        name: (as_taints(pool.taints), pool.max_nodes) for name, pool in pools.items()
    }
    assert all("nvidia.com/gpu" in {key for key, _, _ in each.taints} for each in nodes.values())


@each_stack
def test_a_flavor_selects_only_labels_that_its_pools_have_before_a_node_boots(stack: str) -> None:
    plan, nodes = plan_of(stack), nodes_of(stack)
    flavors = {each["metadata"]["name"]: each["spec"] for each in as_shipped(stack).inputs_of(f"{KUEUE}:ResourceFlavor")}

    for flavor in plan.flavors:
        assert [name for name in flavor.pools if not flavors[flavor.name]["nodeLabels"].items() <= nodes[name].labels.items()] == []
    assert plan.cpu_work is not None
    of_cpu_work = flavors[plan.cpu_work.flavor]
    if not stack.endswith("gke"):
        assert of_cpu_work == {"nodeLabels": {KARPENTER_POOL_LABEL: eks.OTHER_WORK}}, "nothing else, and no toleration"
        assert eks.OTHER_WORK in {each["metadata"]["name"] for each in as_shipped(stack).inputs_of(eks.NODE_POOL)}


@each_stack
def test_flavors_and_routes_tolerate_all_taints_of_their_pools(stack: str) -> None:
    plan, nodes = plan_of(stack), nodes_of(stack)
    flavors = {each["metadata"]["name"]: each["spec"] for each in as_shipped(stack).inputs_of(f"{KUEUE}:ResourceFlavor")}

    for flavor in plan.flavors:
        spec = flavors[flavor.name]
        # A flavor requires tolerations for its other taints from the pods, so that only such pods are admitted to it.
        known = taints_of(spec["tolerations"]) | taints_of(spec.get("nodeTaints", []))
        assert [name for name in flavor.pools if not nodes[name].taints <= known] == []
    for route in plan.routes:
        assert [each.pool for each in route.pools if not nodes[each.pool].taints <= as_taints(route.tolerations)] == []


@each_cloud_stack
def test_queues_wait_for_kueue_and_kueue_for_system_nodes(stack: str) -> None:
    made, release = as_shipped(stack), "kubernetes:helm.sh/v3:Release kueue-release"

    assert [name for name in made.made if name.startswith(KUEUE) and release not in made.waits_for(name)] == []
    assert (gke.SYSTEM_POOL if stack.endswith("gke") else eks.SYSTEM_NODES) in made.waits_for(release)


@each_cloud_stack
def test_a_cluster_is_protected_in_production_and_its_nodes_have_no_public_address(stack: str) -> None:
    cluster = cluster_of(stack)
    protected = is_production(shipped(stack)["environment"])

    # If only the cloud refused the deletion, everything on the cluster would already be deleted.
    assert (cluster.protected, cluster.inputs["deletionProtection"]) == (protected, protected)
    if stack.endswith("gke"):
        assert cluster.inputs["privateClusterConfig"]["enablePrivateNodes"] is True
    else:
        assert cluster.inputs["vpcConfig"]["endpointPrivateAccess"] is True
        assert not any(each.get("mapPublicIpOnLaunch") for each in as_shipped(stack).inputs_of("aws:ec2/subnet:Subnet"))
    buckets = [each.inputs for each in deployed(stack) if each.type.endswith("/bucket:Bucket")]
    # Checkpoints of a development stack are deleted with it, datasets never.
    assert [each["forceDestroy"] for each in buckets] == [not protected, False]


def disks(value: Any) -> list[Any]:
    """Return all descriptions of EBS volumes in some inputs."""
    if isinstance(value, list):
        return [disk for each in value for disk in disks(each)]
    return [disk for key, each in value.items() for disk in ([each] if key == "ebs" else disks(each))] if isinstance(value, dict) else []


@each_cloud_stack
def test_disks_buckets_queues_and_secrets_are_encrypted_and_no_bucket_is_public(stack: str) -> None:
    made = as_shipped(stack)

    if stack.endswith("gke"):
        # Google encrypts everything that it stores.
        access = [
            (each["publicAccessPrevention"], each["uniformBucketLevelAccess"]) for each in made.inputs_of("gcp:storage/bucket:Bucket")
        ]
        assert access == [("enforced", True)] * 2
        return
    volumes = disks([each.inputs for each in deployed(stack)])
    assert len(volumes) == 1 + len(made.of("kubernetes:karpenter.k8s.aws/v1:EC2NodeClass"))
    assert {str(each["encrypted"]).lower() for each in volumes} == {"true"}
    [storage_class] = made.inputs_of("kubernetes:storage.k8s.io/v1:StorageClass")
    assert storage_class["parameters"]["encrypted"] == "true"
    assert cluster_of(stack).inputs["encryptionConfig"]["resources"] == ["secrets"]
    assert all(each["sqsManagedSseEnabled"] for each in made.inputs_of("aws:sqs/queue:Queue"))
    closed = made.inputs_of("aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock")
    assert [all(each[key] for key in each if key.startswith(("block", "ignore", "restrict"))) for each in closed] == [True, True]


@each_stack
def test_no_resource_names_another_environment(stack: str) -> None:
    others = {"dev", "prod", "local"} - {shipped(stack)["environment"]}
    # CEL uses some of these words, such as "dev", as do names of devices.
    text = {each.name: json.dumps(each.inputs).replace("/dev/", "") for each in deployed(stack) if "admission" not in each.type}

    words = re.compile(rf"(?<![\w.])({'|'.join(sorted(others))})(?![\w.]|-dns)")
    assert {name: found.group() for name, each in text.items() if (found := words.search(each.replace("node-local", "")))} == {}


@each_stack
def test_flavors_queues_cohorts_and_priorities_are_the_plans(stack: str) -> None:
    plan = plan_of(stack)

    def names(kind: str) -> set[str]:
        return {each["metadata"]["name"] for each in as_shipped(stack).inputs_of(kind)}

    assert plan.cpu_work is not None
    cpu = {f"{queue.cluster_queue}-cpu" for queue in plan.queues}
    assert names(f"{KUEUE}:ResourceFlavor") == {*(each.name for each in plan.flavors), plan.cpu_work.flavor}
    assert names(f"{KUEUE}:ClusterQueue") == {each.cluster_queue for each in plan.queues} | cpu
    assert names(f"{KUEUE}:Cohort") == {each.name for each in plan.cohorts if each.parent or each.quotas}
    assert names("kubernetes:scheduling.k8s.io/v1:PriorityClass") == {each.name for each in plan.priorities}
    assert names("kubernetes:core/v1:Namespace") >= {team.namespace for team in plan.teams}
