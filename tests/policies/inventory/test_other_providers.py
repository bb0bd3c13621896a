"""Pools of the providers generated from the clouds' APIs, Auto Scaling groups, and pods in a chart's values.

Shapes: Pulumi's registry of aws-native 1.51 (AWS::EKS::Nodegroup, AWS::AutoScaling::AutoScalingGroup) and google-native 0.32
(container/v1), and aws 7 (autoscaling.Group); tags of kubernetes/autoscaler's README for AWS; values as of the charts vllm-stack,
triton and text-generation-inference. Looked up on 2026-11-26.
"""

from __future__ import annotations

from typing import Any

import pytest
from manifests import failing, found, manifest, views

from flexspot.capacity.values.verdict import Verdict
from flexspot.policies.inventory.objects import KubernetesObject
from flexspot.policies.inventory.views import GpuPool, PodSet, Pool
from flexspot.policies.values.field import UNKNOWN

LATER = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"


EKS_GROUP, SCALING_GROUP = "aws:eks/nodeGroup:NodeGroup", "aws:autoscaling/group:Group"
GOOGLE_POOL, GOOGLE_CLUSTER = "google-native:container/v1:NodePool", "google-native:container/v1:Cluster"
RELEASE = "kubernetes:helm.sh/v3:Release"


def undecided(token: str, inputs: dict[str, Any]) -> set[str]:
    return {each.rule for each in found((token, inputs)) if each.verdict is Verdict.UNKNOWN}


NODEGROUP = {
    "clusterName": "a",
    "nodeRole": "arn:aws:iam::1:role/a",
    "subnets": ["subnet-1"],
    "instanceTypes": ["g6.xlarge"],
    "capacityType": "SPOT",
    "scalingConfig": {"minSize": 0, "maxSize": 4},
}


def test_a_node_group_of_aws_native_is_judged_like_any_other() -> None:
    usual = failing((EKS_GROUP, NODEGROUP))

    assert "gpu-pool-without-taint" in usual
    assert failing(("aws-native:eks:Nodegroup", NODEGROUP)) == usual


def google_native(**more: Any) -> dict[str, Any]:
    return {
        "clusterId": "a",
        "config": {
            "machineType": "n1-standard-8",
            "accelerators": [{"acceleratorCount": "1", "acceleratorType": "nvidia-tesla-t4"}],
            **more,
        },
        "autoscaling": {"enabled": True, "minNodeCount": 0},
    }


def test_findings_about_a_node_pool_of_google_native_use_its_own_field_names() -> None:
    found = failing((GOOGLE_POOL, google_native(spot=True)))

    assert found.keys() >= {"gpu-pool-without-limit", "gpu-pool-without-taint", "spot-pool-without-taint"}
    assert "config.accelerators" in found["gpu-pool-without-taint"]
    assert "nodeConfig" not in " ".join(found.values())


def test_a_pool_of_google_native_that_does_not_scale_is_bounded_by_its_count() -> None:
    inputs = {**google_native(), "autoscaling": {"enabled": False}, "initialNodeCount": 2}

    assert "gpu-pool-without-limit" not in failing((GOOGLE_POOL, inputs))


def test_the_pools_of_a_google_native_cluster_are_read_and_disabled_authorized_networks_protect_nothing() -> None:
    cluster = {
        "nodePools": [{"name": "gpu", **google_native()}],
        "autoscaling": {"enableNodeAutoprovisioning": True, "resourceLimits": [{"resourceType": "cpu", "maximum": "100"}]},
        "masterAuthorizedNetworksConfig": {"enabled": False},
    }

    found = failing((GOOGLE_CLUSTER, cluster))

    assert found.keys() >= {"gpu-pool-without-limit", "gpu-pool-without-taint", "public-control-plane"}
    assert "auto-provisioning-without-gpu-limit" in found or "nodePools[0].config.accelerators" in found["gpu-pool-without-taint"]


def test_a_private_cluster_of_the_native_providers_is_not_reported_as_public() -> None:
    google = {"nodePools": [], "privateClusterConfig": {"enablePrivateEndpoint": True}, "autopilot": {"enabled": True}}
    amazon = {"resourcesVpcConfig": {"endpointPublicAccess": False, "endpointPrivateAccess": True}}

    assert "public-control-plane" not in failing((GOOGLE_CLUSTER, google))
    assert "public-control-plane" not in failing(("aws-native:eks:Cluster", amazon))
    assert "public-control-plane" in failing(("aws-native:eks:Cluster", {"resourcesVpcConfig": {"endpointPublicAccess": True}}))


def group(*machines: str, tags: dict[str, str] | None = None, **distribution: Any) -> dict[str, Any]:
    of_cluster = {"kubernetes.io/cluster/a": "owned"} if tags is None else tags
    return {
        "maxSize": 4,
        "minSize": 0,
        "mixedInstancesPolicy": {
            "launchTemplate": {
                "launchTemplateSpecification": {"launchTemplateId": LATER, "version": "$Latest"},
                "overrides": [{"instanceType": each} for each in machines],
            },
            "instancesDistribution": distribution,
        },
        "tags": [{"key": key, "value": value, "propagateAtLaunch": True} for key, value in of_cluster.items()],
    }


@pytest.mark.parametrize("token", ["aws:autoscaling/group:Group", "aws-native:autoscaling:AutoScalingGroup"])
def test_an_auto_scaling_group_of_a_cluster_is_a_pool(token: str) -> None:
    inputs = group("g6.xlarge", "g6.2xlarge", onDemandPercentageAboveBaseCapacity=0)
    [pool] = views(Pool, (token, inputs))

    assert isinstance(pool, GpuPool)
    assert (pool.concerned, pool.spot, pool.gpus) == (True, True, 4)
    assert "missing-owner-labels" in failing((token, inputs))


def test_fields_that_a_group_leaves_to_its_template_and_user_data_are_no_violation() -> None:
    found = failing((SCALING_GROUP, group("g6.xlarge")))

    assert not {"gpu-pool-without-taint", "spot-pool-without-taint"} & found.keys()
    assert not undecided(SCALING_GROUP, group("g6.xlarge"))
    assert not undecided(SCALING_GROUP, group())


@pytest.mark.parametrize(
    "inputs",
    [group("g6.xlarge", tags={"Name": "render-farm"}), group("g6.xlarge", tags={}), {**group("m7i.large"), "maxSize": 100}],
    ids=["another program's group", "no tags", "no GPUs"],
)
def test_a_group_outside_a_cluster_or_without_gpus_has_no_finding_about_gpus(inputs: dict[str, Any]) -> None:
    assert not {"gpu-pool-without-limit", "gpu-pool-without-taint"} & failing((SCALING_GROUP, inputs)).keys()


def test_labels_and_taints_in_tags_for_cluster_autoscaler_belong_to_the_pool() -> None:
    tags = {
        "k8s.io/cluster-autoscaler/enabled": "true",
        "k8s.io/cluster-autoscaler/node-template/label/team": "research",
        "k8s.io/cluster-autoscaler/node-template/taint/nvidia.com/gpu": "present:NoSchedule",
    }
    [pool] = views(Pool, (SCALING_GROUP, group("g6.xlarge", tags=tags)))

    assert pool.offer.fixed["team"].text() == "research"
    assert [each.value for each in pool.taints.fields] == [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]


def test_a_group_with_unknown_tags_is_undecided() -> None:
    [pool] = views(Pool, (SCALING_GROUP, {"maxSize": 1, "tags": LATER}))

    assert pool.concerned is UNKNOWN


VALUES = {
    "image": {"repository": "vllm/vllm-openai", "tag": "v0.9"},
    "servingEngine": {
        "resources": {"requests": {"nvidia.com/gpu": "2"}, "limits": {"nvidia.com/gpu": "1"}},
        "nodeSelector": {"cloud.google.com/gke-spot": "true"},
        "terminationGracePeriodSeconds": 600,
    },
    "workers": [{"name": "a", "resources": {"limits": {"nvidia.com/gpu": "0.5"}}}],
    "router": {"resources": {"limits": {"cpu": 1}}},
}


def test_gpu_pods_in_a_releases_values_are_judged() -> None:
    found = failing((RELEASE, {"chart": "vllm-stack", "values": VALUES}))

    assert found.keys() >= {"gpu-request-differs-from-limit", "fractional-gpu"}
    assert "values.servingEngine" in found["gpu-request-differs-from-limit"]
    assert "values.workers[0]" in found["fractional-gpu"]


def test_fields_that_a_release_leaves_to_its_chart_are_no_violation() -> None:
    right = {"resources": {"limits": {"nvidia.com/gpu": 1}}}
    inputs = {"chart": "vllm-stack", "values": {"engine": right, "unset": {"resources": {}}, "late": {"resources": LATER}}}

    assert not failing((RELEASE, inputs))
    assert not undecided(RELEASE, inputs)


def test_a_release_of_flux_is_read_like_one_of_pulumi() -> None:
    release = manifest("helm.toolkit.fluxcd.io/v2", "HelmRelease", {"values": VALUES})

    assert [view.where for view in views(PodSet, release)] == ["spec.values.servingEngine", "spec.values.workers[0]"]
    assert views(KubernetesObject, release)
