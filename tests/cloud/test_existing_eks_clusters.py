"""An EKS cluster with its own Karpenter and GPU operator, with the real engine on a real API server.

Missing parts are reported; existing parts are used, and remain.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cloud_folder import Held
from cluster_side import node_named
from stack_journey import counted
from stack_journey import existing as resources_of

from flexspot.lab.cluster import Cluster, read_objects, wait_until_established

if TYPE_CHECKING:
    from cloud_world import CloudWorld

    from flexspot.lab.cluster import KubeObject
    from flexspot.lab.tools.build import Tools

pytestmark = [
    pytest.mark.lab,
    pytest.mark.engine,
    pytest.mark.timeout(900),
    pytest.mark.nightly(
        tested_by="test_nothing_is_created_in_the_cluster_before_its_required_parts_are_found, "
        "test_an_existing_karpenter_gets_the_pools_and_no_second_one_is_installed, "
        "test_a_cluster_without_required_features_is_refused_before_anything_is_created"
    ),
]

CLUSTER = "aws:eks/cluster:Cluster"
ROLE = "KarpenterNodeRole-theirs"
THEIRS: dict[str, Any] = {
    "existing": "theirs",
    "existing_karpenter": {"node_role": ROLE, "deployment": "kube-system/their-karpenter"},
    "existing_gpu_operator": True,
}


def driver(name: str) -> KubeObject:
    return {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": name}}


def daemons(name: str, kind: str, container: dict[str, Any]) -> KubeObject:
    """Return a DaemonSet or a Deployment that has no pod here."""
    labels = {"app": name}
    template: dict[str, Any] = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "main", "image": "registry.example/x:1", **container}]},
    }
    spec: dict[str, Any] = {"selector": {"matchLabels": labels}, "template": template}
    if kind == "Deployment":
        spec["replicas"] = 0
    else:
        template["spec"]["nodeSelector"] = {"nowhere": "here"}
    meta = {"name": name, "namespace": "kube-system", "labels": {"app.kubernetes.io/version": "1.14.1"}}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": meta, "spec": spec}


def karpenter(**variables: str) -> KubeObject:
    return daemons("their-karpenter", "Deployment", {"env": [{"name": name, "value": value} for name, value in variables.items()]})


def policy_definition() -> KubeObject:
    """Return a definition of ClusterPolicy that accepts any spec."""
    schema = {"type": "object", "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}
    names = {"kind": "ClusterPolicy", "listKind": "ClusterPolicyList", "plural": "clusterpolicies", "singular": "clusterpolicy"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "clusterpolicies.nvidia.com"},
        "spec": {"group": "nvidia.com", "names": names, "scope": "Cluster", "versions": [version]},
    }


POLICY: KubeObject = {
    "apiVersion": "nvidia.com/v1",
    "kind": "ClusterPolicy",
    "metadata": {"name": "cluster-policy"},
    "spec": {"daemonsets": {"tolerations": [{"operator": "Exists"}]}, "devicePlugin": {"enabled": True}, "dcgmExporter": {"enabled": True}},
}
AGENT = daemons("eks-pod-identity-agent", "DaemonSet", {})


@pytest.fixture(scope="module")
def theirs(world: CloudWorld, tools: Tools) -> Cluster:
    """Yield the API server of an existing cluster that only has Karpenter's definition of node classes."""
    place = world.cloud.settings["control_plane"]
    cluster = Cluster(Path(place["kubeconfig"]))
    definitions = [*read_objects(*tools.assets("karpenter-aws", "crds")), policy_definition()]
    # Pods that wait for a node get one of the existing nodes.
    cluster.apply(*definitions, node_named("theirs-1", {}, []))
    wait_until_established(cluster, [each["metadata"]["name"] for each in definitions])
    known = {
        "name": "theirs",
        "endpoint": f"https://{place['host']}",
        "certificateAuthority": {"data": place["ca"]},
        "vpcConfig": {"vpcId": "vpc-0a1b2c3d4e5f60718", "clusterSecurityGroupId": "sg-0a1b2c3d4e5f60718", "subnetIds": []},
        "accessConfig": {"authenticationMode": "API"},
        "version": "1.35",
        "region": "us-east-1",
    }
    made = {"name": "theirs", "vpcConfig": {"endpointPublicAccess": True}}
    world.cloud.put(Held(CLUSTER, "theirs", f"urn:pulumi:theirs::theirs::{CLUSTER}::theirs", made, known))
    world.change("dev-eks", cluster=THEIRS)
    return cluster


def test_missing_or_wrong_parts_are_reported_before_anything_is_created(world: CloudWorld, theirs: Cluster) -> None:
    first = world.flexspot("preview", "-s", "dev-eks")
    theirs.apply(AGENT, driver("s3.csi.aws.com"), karpenter(CLUSTER_NAME="other", FEATURE_GATES="ReservedCapacity=true"), POLICY)
    second = world.flexspot("up", "-s", "dev-eks", "--yes")

    assert first.returncode == 1
    assert "cluster-parts-needs-eks-pod-identity-agent" in first.stdout + first.stderr
    assert "does not exist" in first.stdout + first.stderr
    assert second.returncode == 1
    assert "ExistingKarpenter karpenter: Karpenter in kube-system/their-karpenter has the cluster's name other" in second.stdout
    assert "has no interruption queue" in second.stdout
    assert "Traceback" not in first.stdout + first.stderr + second.stdout + second.stderr
    assert {event.operation for event in world.cloud.events()} == {"read", "credentials"}
    assert theirs.list("karpenter.k8s.aws/v1/EC2NodeClass") == []


def test_pools_use_the_existing_karpenter_which_outlives_the_stack(world: CloudWorld, theirs: Cluster) -> None:
    theirs.apply(AGENT, driver("s3.csi.aws.com"), karpenter(CLUSTER_NAME="theirs", INTERRUPTION_QUEUE="theirs"), POLICY)
    before = world.objects()

    created = counted(world.flexspot("up", "-s", "dev-eks", "--yes"))

    assert created.keys() == {"created"}
    assert {each["spec"]["role"] for each in theirs.list("karpenter.k8s.aws/v1/EC2NodeClass")} == {ROLE}
    assert {each["metadata"]["name"] for each in theirs.list("karpenter.sh/v1/NodePool")} == {"l4-spot", "t4-spot", "other-work"}
    there = resources_of(world, "dev-eks")
    assert not [name for name in there if name.startswith(("aws:sqs", "aws:eks/accessEntry")) or "gpu-plugins" in name or "dcgm" in name]
    assert counted(world.flexspot("up", "-s", "dev-eks", "--yes")) == {}
    assert counted(world.flexspot("destroy", "-s", "dev-eks", "--yes")) == {"deleted": created["created"]}
    assert world.objects() == before
