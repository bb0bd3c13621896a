"""What the queues' rules hold against an object only where the input is said to be complete."""

from __future__ import annotations

from typing import Any

import pytest

from capacity.values.verdict import Verdict
from policies.core import judge_all
from policies.inventory.reading.source import from_manifest
from policies.judging import DEFAULTS, Settings
from policies.rules import all_rules


def kueue(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": name, "namespace": "research"}, "spec": spec}


def check(name: str) -> dict[str, Any]:
    parameters = {"apiGroup": "kueue.x-k8s.io", "kind": "ProvisioningRequestConfig", "name": name}
    return kueue("AdmissionCheck", "dws", controllerName="kueue.x-k8s.io/provisioning-request", parameters=parameters)


def asks(provisioning_class: str) -> dict[str, Any]:
    return kueue("ProvisioningRequestConfig", "dws", provisioningClassName=provisioning_class)


DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "provisioningrequests.autoscaling.x-k8s.io"},
}
BORROWS = {"borrowWithinCohort": {"policy": "LowerPriority"}}


def verdict(rule: str, *manifests: dict[str, Any], closed: bool) -> Verdict:
    """Of the first object."""
    rules = [each for each in all_rules() if each.name == rule]
    [finding] = judge_all([from_manifest(each) for each in manifests], rules, DEFAULTS, closed=closed)[0]
    return finding.verdict


@pytest.mark.parametrize(
    "rule,manifests",
    [
        ("local-queue-without-cluster-queue", [kueue("LocalQueue", "default", clusterQueue="research")]),
        ("borrowing-without-cohort", [kueue("ClusterQueue", "a", cohortName="acme", preemption=BORROWS)]),
        ("dws-check-without-provisioner", [check("dws")]),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_what_is_nowhere_is_held_against_an_object_only_in_a_closed_input(rule: str, manifests: list[dict[str, Any]]) -> None:
    assert verdict(rule, *manifests, closed=False) is Verdict.UNKNOWN
    assert verdict(rule, *manifests, closed=True) is Verdict.FAIL


def test_a_queue_name_that_nothing_declares_is_told_in_a_closed_input() -> None:
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train", "namespace": "research", "labels": {"kueue.x-k8s.io/queue-name": "gpus"}},
        "spec": {"template": {"spec": {"containers": [{"name": "train", "resources": {"limits": {"nvidia.com/gpu": 1}}}]}}},
    }

    assert verdict("work-in-missing-queue", job, closed=False) is Verdict.NOT_APPLICABLE
    assert verdict("work-in-missing-queue", job, closed=True) is Verdict.FAIL
    assert verdict("work-in-missing-queue", job, kueue("LocalQueue", "gpus", clusterQueue="a"), closed=True) is Verdict.PASS


def test_an_autoscaler_of_ones_own_needs_the_definition_of_its_requests() -> None:
    objects = [check("dws"), asks("check-capacity.autoscaling.x-k8s.io")]

    assert verdict("dws-check-without-provisioner", *objects, closed=False) is Verdict.PASS
    assert verdict("dws-check-without-provisioner", *objects, closed=True) is Verdict.FAIL
    assert verdict("dws-check-without-provisioner", *objects, DEFINITION, closed=True) is Verdict.PASS


def test_gke_brings_the_definition_itself() -> None:
    assert verdict("dws-check-without-provisioner", check("dws"), asks("queued-provisioning.gke.io"), closed=True) is Verdict.PASS


def test_a_configuration_that_nobody_gave_is_not_taken_for_the_default() -> None:
    weighted = kueue("ClusterQueue", "a", cohortName="acme", fairSharing={"weight": "2"})

    assert verdict("fair-sharing-inert", weighted, closed=True) is Verdict.UNKNOWN


def gke_pool(name: str, machine: str) -> dict[str, Any]:
    spec = {"nodeConfig": {"machineType": machine}, "nodeCount": 1}
    return {
        "apiVersion": "container.cnrm.cloud.google.com/v1beta1",
        "kind": "ContainerNodePool",
        "metadata": {"name": name},
        "spec": spec,
    }


WEB = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {"template": {"spec": {"nodeSelector": {"topology.kubernetes.io/zone": "us-central1-a"}, "containers": [{"name": "web"}]}}},
}


def test_gke_taints_no_pool_of_gpus_where_no_other_nodes_are() -> None:
    """docs.cloud.google.com/kubernetes-engine/docs/how-to/gpus, "Create a GPU node pool" (2026-11-25)."""
    gpus, plain = gke_pool("gpus", "g2-standard-8"), gke_pool("plain", "n2-standard-8")

    assert verdict("gpu-node-without-gpu-request", WEB, gpus, closed=True) is Verdict.FAIL
    assert verdict("gpu-node-without-gpu-request", WEB, gpus, closed=False) is Verdict.UNKNOWN
    assert verdict("gpu-node-without-gpu-request", WEB, gpus, plain, closed=True) is Verdict.NOT_APPLICABLE


def test_a_maximum_that_somebody_set_goes_before_what_the_nodes_have() -> None:
    pool = {"spec": {"nodeConfig": {"machineType": "g2-standard-24"}, "nodeCount": 1}}
    pools = {"apiVersion": "container.cnrm.cloud.google.com/v1beta1", "kind": "ContainerNodePool", "metadata": {"name": "two"}, **pool}
    limits = {"limits": {"nvidia.com/gpu": 4}}
    spec = {"template": {"spec": {"containers": [{"name": "a", "resources": limits}]}}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"}, "spec": spec}

    def broken(most: int | None = None) -> bool:
        rules = [each for each in all_rules() if each.name == "gpu-container-above-maximum"]
        values = {} if most is None else {"gpu-container-above-maximum": {"most-gpus": most}}
        findings = judge_all([from_manifest(job), from_manifest(pools)], rules, Settings(values=values))
        return findings[0][0].verdict is Verdict.FAIL

    assert broken()
    assert broken(most=3)
    assert not broken(most=8)
    assert not broken(most=16), "also where it is what is shipped"
