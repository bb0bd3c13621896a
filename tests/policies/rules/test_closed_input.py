"""Violations that queue rules report only if the input is declared complete."""

from __future__ import annotations

import pytest
from manifests import Manifest, found, job, kueue, manifest

from flexspot.capacity.values.verdict import Verdict
from flexspot.policies.judging import DEFAULTS, Settings


def check(name: str) -> Manifest:
    parameters = {"apiGroup": "kueue.x-k8s.io", "kind": "ProvisioningRequestConfig", "name": name}
    return kueue("AdmissionCheck", "dws", controllerName="kueue.x-k8s.io/provisioning-request", parameters=parameters)


def asks(provisioning_class: str) -> Manifest:
    return kueue("ProvisioningRequestConfig", "dws", provisioningClassName=provisioning_class)


DEFINITION = manifest("apiextensions.k8s.io/v1", "CustomResourceDefinition", {}, name="provisioningrequests.autoscaling.x-k8s.io")
BORROWS = {"borrowWithinCohort": {"policy": "LowerPriority"}}


def verdict(rule: str, *manifests: Manifest, closed: bool, settings: Settings = DEFAULTS) -> Verdict:
    """Return the verdict about the first object."""
    return found(*manifests, closed=closed, settings=settings, rule=rule)[0].verdict


@pytest.mark.parametrize(
    "rule,manifests",
    [
        ("local-queue-without-cluster-queue", [kueue("LocalQueue", "default", clusterQueue="research")]),
        ("borrowing-without-cohort", [kueue("ClusterQueue", "a", cohortName="acme", preemption=BORROWS)]),
        ("dws-check-without-provisioner", [check("dws")]),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_a_missing_object_is_a_violation_only_in_a_closed_input(rule: str, manifests: list[Manifest]) -> None:
    assert verdict(rule, *manifests, closed=False) is Verdict.UNKNOWN
    assert verdict(rule, *manifests, closed=True) is Verdict.FAIL


def test_an_undeclared_queue_is_reported_in_a_closed_input() -> None:
    queued = job(labels={"kueue.x-k8s.io/queue-name": "gpus"})

    assert verdict("work-in-missing-queue", queued, closed=False) is Verdict.NOT_APPLICABLE
    assert verdict("work-in-missing-queue", queued, closed=True) is Verdict.FAIL
    assert verdict("work-in-missing-queue", queued, kueue("LocalQueue", "gpus", clusterQueue="a"), closed=True) is Verdict.PASS


def test_a_custom_autoscaler_needs_the_definition_of_provisioning_requests() -> None:
    objects = [check("dws"), asks("check-capacity.autoscaling.x-k8s.io")]

    assert verdict("dws-check-without-provisioner", *objects, closed=False) is Verdict.PASS
    assert verdict("dws-check-without-provisioner", *objects, closed=True) is Verdict.FAIL
    assert verdict("dws-check-without-provisioner", *objects, DEFINITION, closed=True) is Verdict.PASS


def test_gke_provides_the_definition_itself() -> None:
    assert verdict("dws-check-without-provisioner", check("dws"), asks("queued-provisioning.gke.io"), closed=True) is Verdict.PASS


def test_a_configuration_that_is_not_in_the_input_does_not_count_as_the_default() -> None:
    weighted = kueue("ClusterQueue", "a", cohortName="acme", fairSharing={"weight": "2"})

    assert verdict("fair-sharing-inert", weighted, closed=True) is Verdict.UNKNOWN


def gke_pool(name: str, machine: str) -> Manifest:
    spec = {"nodeConfig": {"machineType": machine}, "nodeCount": 1}
    return manifest("container.cnrm.cloud.google.com/v1beta1", "ContainerNodePool", spec, name=name)


WEB = {"nodeSelector": {"topology.kubernetes.io/zone": "us-central1-a"}, "containers": [{"name": "web"}]}


def test_gke_does_not_taint_gpu_pools_of_a_cluster_without_other_nodes() -> None:
    """docs.cloud.google.com/kubernetes-engine/docs/how-to/gpus, "Create a GPU node pool" (2026-11-25)."""
    web = manifest("apps/v1", "Deployment", {"template": {"spec": WEB}}, name="web")
    gpus, plain = gke_pool("gpus", "g2-standard-8"), gke_pool("plain", "n2-standard-8")

    assert verdict("gpu-node-without-gpu-request", web, gpus, closed=True) is Verdict.FAIL
    assert verdict("gpu-node-without-gpu-request", web, gpus, closed=False) is Verdict.UNKNOWN
    assert verdict("gpu-node-without-gpu-request", web, gpus, plain, closed=True) is Verdict.NOT_APPLICABLE


def test_a_configured_maximum_takes_precedence_over_the_nodes() -> None:
    def broken(most: int | None = None) -> bool:
        rule = "gpu-container-above-maximum"
        settings = DEFAULTS if most is None else Settings(values={rule: {"most-gpus": most}})
        return verdict(rule, job(count=4), gke_pool("two", "g2-standard-24"), closed=False, settings=settings) is Verdict.FAIL

    assert broken()
    assert broken(most=3)
    assert not broken(most=8)
    assert not broken(most=16), "also where it is what is shipped"
