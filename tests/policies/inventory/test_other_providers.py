"""Pools of the providers made from the clouds' APIs, of Auto Scaling groups, and pods that a chart's values describe.

Shapes: Pulumi's registry of aws-native 1.51 (AWS::EKS::Nodegroup, AWS::AutoScaling::AutoScalingGroup) and google-native 0.32
(container/v1), and aws 7 (autoscaling.Group); tags of kubernetes/autoscaler's README for AWS; values as of the charts vllm-stack,
triton and text-generation-inference. Looked up on 2026-11-26.
"""

from __future__ import annotations

from typing import Any

import pytest

from capacity.values.verdict import Verdict
from policies.core import judge_all
from policies.inventory.objects import KubernetesObject
from policies.inventory.reading import views_of
from policies.inventory.reading.source import from_manifest, from_pulumi
from policies.inventory.views import GpuPool, PodSet, Pool
from policies.judging import DEFAULTS
from policies.rules import all_rules
from policies.values.field import UNKNOWN

LATER = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"


def failing(token: str, inputs: dict[str, Any]) -> dict[str, str]:
    [findings] = judge_all([from_pulumi(token, "a", inputs)], all_rules(), DEFAULTS)
    return {each.rule: each.message for each in findings if each.verdict is Verdict.FAIL}


def undecided(token: str, inputs: dict[str, Any]) -> set[str]:
    [findings] = judge_all([from_pulumi(token, "a", inputs)], all_rules(), DEFAULTS)
    return {each.rule for each in findings if each.verdict is Verdict.UNKNOWN}


def pool_of(token: str, inputs: dict[str, Any]) -> Pool:
    [pool] = [view for view in views_of(from_pulumi(token, "a", inputs)) if isinstance(view, Pool)]
    return pool


NODEGROUP = {
    "clusterName": "a",
    "nodeRole": "arn:aws:iam::1:role/a",
    "subnets": ["subnet-1"],
    "instanceTypes": ["g6.xlarge"],
    "capacityType": "SPOT",
    "scalingConfig": {"minSize": 0, "maxSize": 4},
}


def test_a_node_group_of_aws_native_is_judged_like_any() -> None:
    usual = failing("aws:eks/nodeGroup:NodeGroup", NODEGROUP)

    assert "gpu-pool-without-taint" in usual
    assert failing("aws-native:eks:Nodegroup", NODEGROUP) == usual


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


def test_a_node_pool_of_google_native_is_judged_in_its_own_words() -> None:
    found = failing("google-native:container/v1:NodePool", google_native(spot=True))

    assert found.keys() >= {"gpu-pool-without-limit", "gpu-pool-without-taint", "spot-pool-without-taint"}
    assert "config.accelerators" in found["gpu-pool-without-taint"]
    assert "nodeConfig" not in " ".join(found.values())


def test_a_pool_of_google_native_that_does_not_scale_is_bounded_by_its_count() -> None:
    inputs = {**google_native(), "autoscaling": {"enabled": False}, "initialNodeCount": 2}

    assert "gpu-pool-without-limit" not in failing("google-native:container/v1:NodePool", inputs)


def test_the_pools_of_a_cluster_of_google_native_are_seen_and_networks_that_are_off_keep_nobody_out() -> None:
    cluster = {
        "nodePools": [{"name": "gpu", **google_native()}],
        "autoscaling": {"enableNodeAutoprovisioning": True, "resourceLimits": [{"resourceType": "cpu", "maximum": "100"}]},
        "masterAuthorizedNetworksConfig": {"enabled": False},
    }

    found = failing("google-native:container/v1:Cluster", cluster)

    assert found.keys() >= {"gpu-pool-without-limit", "gpu-pool-without-taint", "public-control-plane"}
    assert "auto-provisioning-without-gpu-limit" in found or "nodePools[0].config.accelerators" in found["gpu-pool-without-taint"]


def test_a_private_cluster_of_the_native_providers_is_not_accused() -> None:
    google = {"nodePools": [], "privateClusterConfig": {"enablePrivateEndpoint": True}, "autopilot": {"enabled": True}}
    amazon = {"resourcesVpcConfig": {"endpointPublicAccess": False, "endpointPrivateAccess": True}}

    assert "public-control-plane" not in failing("google-native:container/v1:Cluster", google)
    assert "public-control-plane" not in failing("aws-native:eks:Cluster", amazon)
    assert "public-control-plane" in failing("aws-native:eks:Cluster", {"resourcesVpcConfig": {"endpointPublicAccess": True}})


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
    pool = pool_of(token, inputs)

    assert isinstance(pool, GpuPool)
    assert (pool.concerned, pool.spot, pool.gpus) == (True, True, 4)
    assert "missing-owner-labels" in failing(token, inputs)


def test_what_a_group_leaves_to_its_template_and_its_user_data_is_not_held_against_it() -> None:
    found = failing("aws:autoscaling/group:Group", group("g6.xlarge"))

    assert not {"gpu-pool-without-taint", "spot-pool-without-taint"} & found.keys()
    assert not undecided("aws:autoscaling/group:Group", group("g6.xlarge"))
    assert not undecided("aws:autoscaling/group:Group", group())


@pytest.mark.parametrize(
    "inputs",
    [group("g6.xlarge", tags={"Name": "render-farm"}), group("g6.xlarge", tags={}), {**group("m7i.large"), "maxSize": 100}],
    ids=["another program's group", "no tags", "no GPUs"],
)
def test_a_group_of_no_cluster_or_without_gpus_is_not_accused_for_its_gpus(inputs: dict[str, Any]) -> None:
    assert not {"gpu-pool-without-limit", "gpu-pool-without-taint"} & failing("aws:autoscaling/group:Group", inputs).keys()


def test_labels_and_taints_that_cluster_autoscaler_is_told_of_are_the_pools() -> None:
    tags = {
        "k8s.io/cluster-autoscaler/enabled": "true",
        "k8s.io/cluster-autoscaler/node-template/label/team": "research",
        "k8s.io/cluster-autoscaler/node-template/taint/nvidia.com/gpu": "present:NoSchedule",
    }
    [pool] = [
        view for view in views_of(from_pulumi("aws:autoscaling/group:Group", "a", group("g6.xlarge", tags=tags))) if isinstance(view, Pool)
    ]

    assert pool.offer.fixed["team"].text() == "research"
    assert [(each.key.text(), each.value.text(), each.effect.text()) for each in pool.taints] == [
        ("nvidia.com/gpu", "present", "NoSchedule")
    ]


def test_a_group_whose_tags_or_machines_come_later_is_not_decided_now() -> None:
    [pool] = [
        view for view in views_of(from_pulumi("aws:autoscaling/group:Group", "a", {"maxSize": 1, "tags": LATER})) if isinstance(view, Pool)
    ]

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


def test_what_a_releases_values_say_of_gpu_pods_is_judged() -> None:
    found = failing("kubernetes:helm.sh/v3:Release", {"chart": "vllm-stack", "values": VALUES})

    assert found.keys() >= {"gpu-request-differs-from-limit", "fractional-gpu"}
    assert "values.servingEngine" in found["gpu-request-differs-from-limit"]
    assert "values.workers[0]" in found["fractional-gpu"]


def test_what_its_chart_may_say_is_not_held_against_a_release() -> None:
    right = {"resources": {"limits": {"nvidia.com/gpu": 1}}}
    inputs = {"chart": "vllm-stack", "values": {"engine": right, "unset": {"resources": {}}, "late": {"resources": LATER}}}

    assert not failing("kubernetes:helm.sh/v3:Release", inputs)
    assert not undecided("kubernetes:helm.sh/v3:Release", inputs)


def test_a_release_of_flux_is_read_like_one_of_pulumi() -> None:
    manifest = {"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": {"name": "a"}, "spec": {"values": VALUES}}
    found = [view.where for view in views_of(from_manifest(manifest)) if isinstance(view, PodSet)]

    assert found == ["spec.values.servingEngine", "spec.values.workers[0]"]
    assert any(isinstance(view, KubernetesObject) for view in views_of(from_manifest(manifest)))
