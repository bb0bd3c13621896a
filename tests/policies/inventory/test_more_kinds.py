"""Kinds from other repositories are read as pods and pools, with fields named in their own spelling.

Shapes looked up on 2026-11-25: kserve/kserve (docs/samples/v1beta1), kubeflow/trainer (examples), kubeflow/mpi-operator (examples/v2beta1),
argoproj/argo-workflows (examples/gpu*), argoproj/argo-rollouts (examples), Config Connector's reference, karpenter.sh/v0.31.
"""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from manifests import failing, manifest, views

from flexspot.policies.inventory.views import GpuPool, PodSet

GPUS = {"limits": {"nvidia.com/gpu": 1}}
SELECTOR = {"nodeSelector": {"cloud.google.com/gke-spot": "true"}}
ON_SPOT = {**SELECTOR, "terminationGracePeriodSeconds": 90}
CONTAINER = {"image": "a:1", "resources": GPUS}
POD = {**ON_SPOT, "containers": [{"name": "main", **CONTAINER}]}
TEMPLATE = {"template": {"spec": POD}}

WORK: dict[str, tuple[str, dict[str, Any]]] = {
    "Rollout": ("argoproj.io/v1alpha1", TEMPLATE),
    "MPIJob": ("kubeflow.org/v2beta1", {"mpiReplicaSpecs": {"Worker": TEMPLATE}}),
    "TFJob": ("kubeflow.org/v1", {"tfReplicaSpecs": {"Chief": TEMPLATE}}),
    "Job": ("batch.volcano.sh/v1alpha1", {"tasks": [TEMPLATE]}),
    "LLMInferenceService": ("serving.kserve.io/v1alpha1", {"template": POD}),
    "InferenceService": ("serving.kserve.io/v1beta1", {"predictor": {**ON_SPOT, "model": {"resources": GPUS}}}),
    "TrainJob": (
        "trainer.kubeflow.org/v1alpha1",
        {"trainer": {"numNodes": 2, "resourcesPerNode": GPUS}, "podTemplateOverrides": [{"spec": ON_SPOT}]},
    ),
    "Workflow": ("argoproj.io/v1alpha1", {"templates": [{"name": "t", **SELECTOR, "container": CONTAINER}]}),
    "CronWorkflow": ("argoproj.io/v1alpha1", {"workflowSpec": {**SELECTOR, "templates": [{"name": "t", "script": CONTAINER}]}}),
}


def of_kind(kind: str) -> dict[str, Any]:
    version, spec = WORK[kind]
    return manifest(version, kind, spec, namespace="b")


@pytest.mark.parametrize("kind", sorted(WORK))
def test_its_pods_request_gpus_and_select_spot(kind: str) -> None:
    [pods] = views(PodSet, of_kind(kind))

    assert pods.requests_gpus is True
    assert pods.pod.at("nodeSelector", "cloud.google.com/gke-spot").text() == "true"


@pytest.mark.parametrize("kind", sorted(set(WORK) - {"Workflow", "CronWorkflow"}))
def test_its_grace_period_is_judged(kind: str) -> None:
    assert "its pods have 15 seconds" in failing(of_kind(kind), closed=True)["grace-exceeds-notice"]


def test_findings_about_a_container_node_pool_use_its_own_field_names() -> None:
    pool = yaml.safe_load(
        "{apiVersion: container.cnrm.cloud.google.com/v1beta1, kind: ContainerNodePool, metadata: {name: gpu}, spec: {"
        "autoscaling: {minNodeCount: 0}, nodeConfig: {machineType: n1-standard-4, guestAccelerator: [{type: nvidia-tesla-t4, count: 1}]}}}"
    )
    said = failing(pool, closed=True)

    assert "spec.autoscaling.maxNodeCount or spec.autoscaling.totalMaxNodeCount" in said["gpu-pool-without-limit"]
    assert "spec.nodeConfig.taint has no taint" in said["gpu-pool-without-taint"]
    pool["spec"]["nodeConfig"]["taint"] = [{"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}]
    pool["spec"]["autoscaling"]["maxNodeCount"] = 3
    assert not {"gpu-pool-without-limit", "gpu-pool-without-taint"} & failing(pool, closed=True).keys()


def test_a_provisioner_is_a_pool() -> None:
    provisioner = yaml.safe_load(
        "{apiVersion: karpenter.sh/v1alpha5, kind: Provisioner, metadata: {name: gpu}, spec: {requirements: "
        "[{key: karpenter.k8s.aws/instance-family, operator: In, values: [g5]}]}}"
    )
    said = failing(provisioner, closed=True)
    [pool] = views(GpuPool, provisioner)

    assert pool.taints_field == "spec.taints"
    assert "spec.limits.resources" in said["gpu-pool-without-limit"]
    provisioner["spec"] |= {"limits": {"resources": {"nvidia.com/gpu": 4}}, "taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]}
    assert not {"gpu-pool-without-limit", "gpu-pool-without-taint"} & failing(provisioner, closed=True).keys()
    # Its webhook sets on-demand in a pool without a capacity type. A NodePool without one may have Spot as well.
    assert "spot-pool-without-taint" not in failing(provisioner, closed=True)
    provisioner["spec"]["requirements"].append({"key": "karpenter.sh/capacity-type", "operator": "Exists"})
    assert "spot-pool-without-taint" in failing(provisioner, closed=True)
