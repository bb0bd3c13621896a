"""Which object a resource or a manifest is."""

from __future__ import annotations

from typing import Any

import pytest

from policies.inventory.reading import views_of
from policies.inventory.reading.source import from_manifest, from_pulumi
from policies.inventory.views import PodSet
from policies.values.field import UNKNOWN

NAMED = {"name": "a", "namespace": "n"}
EMPTY: dict[str, Any] = {}


@pytest.mark.parametrize(
    "token,inputs,named,family,partial",
    [
        ("kubernetes:core/v1:Pod", {}, "core/v1/Pod/resource", "", False),
        (
            "kubernetes:core/v1:Pod",
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "n"}},
            "v1/Pod/n/a",
            "",
            False,
        ),
        ("kubernetes:apps/v1:DeploymentPatch", {"metadata": {"name": "a"}}, "apps/v1/Deployment/a", "apps", True),
        ("kubernetes:karpenter.sh/v1beta1:NodePool", {}, "karpenter.sh/v1beta1/NodePool/resource", "karpenter.sh", False),
        ("kubernetes:yaml/v2:ConfigGroup", {}, "yaml/v2/ConfigGroup/resource", "yaml", False),
        ("kubernetes:batch/v1:Job", {"metadata": UNKNOWN}, "batch/v1/Job/resource", "batch", False),
        ("gcp:container/nodePool:NodePool", {"name": "p"}, "gcp:container/nodePool/NodePool/resource", "gcp:container", False),
        ("pulumi:pulumi:Stack", {}, "pulumi:pulumi/Stack/resource", "pulumi:pulumi", False),
        ("flexspot:index:GpuPool", {}, "flexspot:index/GpuPool/resource", "flexspot:index", False),
    ],
)
def test_a_resource_is_named_by_its_token_and_what_its_inputs_say(
    token: str, inputs: dict[str, Any], named: str, family: str, *, partial: bool
) -> None:
    source = from_pulumi(token, "resource", inputs)

    assert (str(source.identity), source.family, source.fields.partial) == (named, family, partial)


def test_a_manifest_is_named_by_itself() -> None:
    source = from_manifest({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train", "namespace": "team-a"}})

    assert str(source.identity) == "batch/v1/Job/team-a/train"


@pytest.mark.parametrize(
    "manifest", [{}, {"kind": "Pod"}, {"apiVersion": 3, "kind": ["Pod"]}, {"apiVersion": "v1", "kind": "Pod", "spec": []}]
)
def test_a_document_that_is_no_whole_object_is_read_without_complaint(manifest: dict[str, Any]) -> None:
    assert {view.identity.kind for view in views_of(from_manifest(manifest))} in (set(), {"Pod"})


@pytest.mark.parametrize(
    "api_version,kind,spec,places",
    [
        ("v1", "Pod", EMPTY, ["spec"]),
        ("batch/v1", "CronJob", {"jobTemplate": {"spec": {"template": {"spec": EMPTY}}}}, ["spec.jobTemplate.spec.template.spec"]),
        (
            "jobset.x-k8s.io/v1alpha2",
            "JobSet",
            {"replicatedJobs": [{"template": {"spec": {"template": {"spec": EMPTY}}}}] * 2},
            [f"spec.replicatedJobs[{place}].template.spec.template.spec" for place in (0, 1)],
        ),
        (
            "ray.io/v1",
            "RayCluster",
            {"headGroupSpec": {"template": {"spec": EMPTY}}, "workerGroupSpecs": [{"template": {"spec": EMPTY}}]},
            ["spec.headGroupSpec.template.spec", "spec.workerGroupSpecs[0].template.spec"],
        ),
        (
            "kubeflow.org/v1",
            "PyTorchJob",
            {"pytorchReplicaSpecs": {"Master": {"template": {"spec": EMPTY}}}},
            ["spec.pytorchReplicaSpecs[Master].template.spec"],
        ),
    ],
)
def test_the_pods_of_a_workload_are_found_where_its_kind_keeps_them(
    api_version: str, kind: str, spec: dict[str, Any], places: list[str]
) -> None:
    views = views_of(from_manifest({"apiVersion": api_version, "kind": kind, "spec": spec}))

    assert [view.where for view in views if isinstance(view, PodSet)] == places
