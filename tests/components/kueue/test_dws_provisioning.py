"""DwsProvisioning: Kueue's requests to GKE before a job on queued capacity starts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flexspot.components.kueue.controller import DwsProvisioning, DwsProvisioningArgs

if TYPE_CHECKING:
    from component_types import Outputs, Register

KUEUE = "kubernetes:kueue.x-k8s.io/v1beta2"


def dws_args(**changes: Any) -> DwsProvisioningArgs:
    arguments: DwsProvisioningArgs = {"name": "dws", "labels": {"flexspot.dev/owner": "ml-platform"}}
    return arguments | changes  # pyrefly: ignore[bad-return] -- some arguments are invalid on purpose


def test_requests_are_of_gkes_queued_class_for_pods_with_gpus_whose_nodes_are_their_own(register: Register) -> None:
    [request] = register(lambda: DwsProvisioning("dws", dws_args())).of(f"{KUEUE}:ProvisioningRequestConfig")

    assert request["metadata"] == {"name": "dws", "labels": {"flexspot.dev/owner": "ml-platform"}}
    assert request["spec"] == {
        "provisioningClassName": "queued-provisioning.gke.io",
        "managedResources": ["nvidia.com/gpu"],
        "retryStrategy": {"backoffLimitCount": 3, "backoffBaseSeconds": 60, "backoffMaxSeconds": 1800},
        "podSetUpdates": {
            "nodeSelector": [{"key": "autoscaling.gke.io/provisioning-request", "valueFromProvisioningClassDetail": "ResizeRequestName"}]
        },
        "podSetMergePolicy": "IdenticalWorkloadSchedulingRequirements",
    }


def test_the_check_belongs_to_kueues_controller_refers_to_the_request_and_its_name_is_an_output(
    register: Register, outputs: Outputs
) -> None:
    [check] = register(lambda: DwsProvisioning("dws", dws_args(name="later"))).of(f"{KUEUE}:AdmissionCheck")

    assert check["metadata"]["name"] == "later"
    assert check["spec"] == {
        "controllerName": "kueue.x-k8s.io/provisioning-request",
        "parameters": {"apiGroup": "kueue.x-k8s.io", "kind": "ProvisioningRequestConfig", "name": "later"},
    }
    assert outputs(lambda: DwsProvisioning("dws", dws_args(name="later"))) == {"admission_check": "later"}
