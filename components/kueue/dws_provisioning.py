"""Google's Dynamic Workload Scheduler before a queue: nodes are asked for, all of a job at once, before the job starts."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types.
from typing import NotRequired, TypedDict

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from capacity.catalog.node_labels import GPU_RESOURCE
from components.kueue.queues import API_VERSION

PROVISIONING_CLASS = "queued-provisioning.gke.io"
"""GKE's own class of ProvisioningRequest. https://docs.cloud.google.com/kubernetes-engine/docs/how-to/provisioningrequest"""

REQUEST_LABEL = "autoscaling.gke.io/provisioning-request"
"""On the nodes of a request, with the name of its resize request (AI-Hypercomputer/xpk selects by it)."""


class DwsProvisioningArgs(TypedDict):
    """Arguments of DwsProvisioning."""

    name: str
    """Name of the AdmissionCheck, which queues name on the flavors of queued pools, and of its ProvisioningRequestConfig."""

    labels: dict[str, str]
    """Labels of every object."""

    retries: NotRequired[int]
    """How often a refused or expired request is made anew before the Workload is deactivated; 0 or more. Default: 3."""

    first_retry_seconds: NotRequired[int]
    """The wait before the first retry, doubled for each one after it; 1 or more. Default: 60."""

    longest_retry_seconds: NotRequired[int]
    """The longest wait between two; at least as long as the first. Default: 1800."""


class DwsProvisioning(pulumi.ComponentResource):
    """The AdmissionCheck of queued capacity on GKE, with what Kueue asks GKE for.

    For GKE alone: where the ProvisioningRequest kind is not served the check is inactive, and with it every queue that names it. A job's
    run time is in its annotation provreq.kueue.x-k8s.io/maxRunDurationSeconds. After the last retry its Workload is deactivated, and the
    Job stays suspended. Raises ValueError for times and counts out of bounds.
    """

    admission_check: pulumi.Output[str]
    """Name of the AdmissionCheck, known once it exists."""

    def __init__(self, name: str, args: DwsProvisioningArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        strategy = _retry_strategy(name, args)
        super().__init__("flexspot:index:DwsProvisioning", name, {**args}, opts)
        request = CustomResource(
            f"{name}-request",
            api_version=API_VERSION,
            kind="ProvisioningRequestConfig",
            metadata=ObjectMetaArgs(name=args["name"], labels=args["labels"]),
            spec={
                "provisioningClassName": PROVISIONING_CLASS,
                # A launcher pod without GPUs is not asked for: it runs on other nodes.
                "managedResources": [GPU_RESOURCE],
                "retryStrategy": strategy,
                # Without it the pods of two jobs would take each other's nodes.
                "podSetUpdates": {"nodeSelector": [{"key": REQUEST_LABEL, "valueFromProvisioningClassDetail": "ResizeRequestName"}]},
                # Pod sets that differ in their command alone (a leader and its workers) are one request, which DWS gives or refuses whole.
                "podSetMergePolicy": "IdenticalWorkloadSchedulingRequirements",
            },
            opts=pulumi.ResourceOptions(parent=self),
        )
        check = CustomResource(
            f"{name}-check",
            api_version=API_VERSION,
            kind="AdmissionCheck",
            metadata=ObjectMetaArgs(name=args["name"], labels=args["labels"]),
            spec={
                "controllerName": "kueue.x-k8s.io/provisioning-request",
                "parameters": {"apiGroup": "kueue.x-k8s.io", "kind": "ProvisioningRequestConfig", "name": args["name"]},
            },
            opts=pulumi.ResourceOptions(parent=self, depends_on=[request]),
        )
        self.admission_check = check.id.apply(lambda _: args["name"])
        self.register_outputs({"admission_check": self.admission_check})


def _retry_strategy(name: str, args: DwsProvisioningArgs) -> dict[str, int]:
    retries, first = args.get("retries", 3), args.get("first_retry_seconds", 60)
    longest = args.get("longest_retry_seconds", max(1800, first))
    if retries < 0:
        raise ValueError(f"DwsProvisioning {name}: retries is {retries}; use 0 for none, or more")
    if first < 1:
        raise ValueError(f"DwsProvisioning {name}: first_retry_seconds is {first}; use 1 or more")
    if longest < first:
        raise ValueError(
            f"DwsProvisioning {name}: longest_retry_seconds is {longest}, below first_retry_seconds {first}; raise it, or lower the other"
        )
    return {"backoffLimitCount": retries, "backoffBaseSeconds": first, "backoffMaxSeconds": longest}
