"""Identity of resources and manifests, and the places of their pods."""

from __future__ import annotations

from typing import Any

import pytest
from manifests import manifest, views

from flexspot.policies.inventory.reading.source import from_manifest, from_pulumi
from flexspot.policies.inventory.views import PodSet, View
from flexspot.policies.values.field import UNKNOWN

EMPTY: dict[str, Any] = {}
PODS = {"template": {"spec": EMPTY}}
RAY = {"headGroupSpec": PODS, "workerGroupSpecs": [PODS]}
OF_JOBS = [f"spec.replicatedJobs[{place}].template.spec.template.spec" for place in (0, 1)]


@pytest.mark.parametrize(
    "token,inputs,named,family,partial",
    [
        ("kubernetes:core/v1:Pod", {}, "core/v1/Pod/resource", "", False),
        ("kubernetes:core/v1:Pod", manifest("v1", "Pod", {}, namespace="n"), "v1/Pod/n/a", "", False),
        ("kubernetes:apps/v1:DeploymentPatch", {"metadata": {"name": "a"}}, "apps/v1/Deployment/a", "apps", True),
        ("kubernetes:karpenter.sh/v1beta1:NodePool", {}, "karpenter.sh/v1beta1/NodePool/resource", "karpenter.sh", False),
        ("kubernetes:yaml/v2:ConfigGroup", {}, "yaml/v2/ConfigGroup/resource", "yaml", False),
        ("kubernetes:batch/v1:Job", {"metadata": UNKNOWN}, "batch/v1/Job/resource", "batch", False),
        ("gcp:container/nodePool:NodePool", {"name": "p"}, "gcp:container/nodePool/NodePool/resource", "gcp:container", False),
        ("pulumi:pulumi:Stack", {}, "pulumi:pulumi/Stack/resource", "pulumi:pulumi", False),
        ("flexspot:index:GpuPool", {}, "flexspot:index/GpuPool/resource", "flexspot:index", False),
    ],
)
def test_a_resource_is_named_by_its_token_and_its_inputs(
    token: str, inputs: dict[str, Any], named: str, family: str, *, partial: bool
) -> None:
    source = from_pulumi(token, "resource", inputs)

    assert (str(source.identity), source.family, source.fields.partial) == (named, family, partial)


def test_a_manifest_is_named_by_itself() -> None:
    assert str(from_manifest(manifest("batch/v1", "Job", {}, name="train", namespace="team-a")).identity) == "batch/v1/Job/team-a/train"


@pytest.mark.parametrize(
    "document", [{}, {"kind": "Pod"}, {"apiVersion": 3, "kind": ["Pod"]}, {"apiVersion": "v1", "kind": "Pod", "spec": []}]
)
def test_an_incomplete_object_is_read_without_an_error(document: dict[str, Any]) -> None:
    assert {view.identity.kind for view in views(View, document)} in (set(), {"Pod"})


@pytest.mark.parametrize(
    "api_version,kind,spec,places",
    [
        ("v1", "Pod", EMPTY, ["spec"]),
        ("batch/v1", "CronJob", {"jobTemplate": {"spec": PODS}}, ["spec.jobTemplate.spec.template.spec"]),
        ("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": [{"template": {"spec": PODS}}] * 2}, OF_JOBS),
        ("ray.io/v1", "RayCluster", RAY, ["spec.headGroupSpec.template.spec", "spec.workerGroupSpecs[0].template.spec"]),
        ("kubeflow.org/v1", "PyTorchJob", {"pytorchReplicaSpecs": {"Master": PODS}}, ["spec.pytorchReplicaSpecs[Master].template.spec"]),
    ],
)
def test_the_pods_of_a_workload_are_found_at_the_paths_of_its_kind(
    api_version: str, kind: str, spec: dict[str, Any], places: list[str]
) -> None:
    assert [view.where for view in views(PodSet, manifest(api_version, kind, spec))] == places
