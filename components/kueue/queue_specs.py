"""The specs of Kueue's objects, as its webhooks would leave them: what is read back is then what was written.

Source of fields and rules: kueue.x-k8s.io/v1beta2 of Kueue 0.19.0. An empty list is left out: the server drops it, and would show it
as a change in every later preview.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.catalog.node_labels import GPU_RESOURCE
from capacity.values.quantities import count_quantity

if TYPE_CHECKING:
    from components.kueue.queue_args import AmountArgs, CohortArgs, FlavorArgs, QueueArgs, QuotaArgs

STOP_POLICIES = {"none": "None", "hold": "Hold", "drain": "HoldAndDrain"}

# One order for both lists: Kueue refuses a flavor whose resources stand in another order than coveredResources.
# Pods are counted by the namespace's quota, and ephemeral storage is the node's own: neither is anything that teams lend each other.
_COVERED = ("cpu", "memory", GPU_RESOURCE)


def flavor_spec(flavor: FlavorArgs) -> dict[str, object]:
    """Of a ResourceFlavor."""
    taints = {"nodeTaints": [dict(taint) for taint in flavor["node_taints"]]} if flavor["node_taints"] else {}
    tolerations = {"tolerations": flavor["tolerations"]} if flavor["tolerations"] else {}
    topology = {"topologyName": name} if (name := flavor.get("topology")) else {}
    return {"nodeLabels": flavor["node_labels"], **taints, **tolerations, **topology}


def cohort_spec(cohort: CohortArgs) -> dict[str, object]:
    """Of a Cohort. A root is shared out with nobody and has no weight."""
    parent = (
        {}
        if cohort["parent"] is None
        else {"parentName": cohort["parent"], "fairSharing": {"weight": count_quantity(cohort.get("weight", 1))}}
    )
    return {**parent, **({"resourceGroups": _resource_groups(cohort["quotas"])} if cohort["quotas"] else {})}


def cluster_queue_spec(queue: QueueArgs) -> dict[str, object]:
    """Of a ClusterQueue."""
    checks = [{"name": each["name"], "onFlavors": each["flavors"]} for each in queue.get("admission_checks", [])]
    return {
        "cohortName": queue["cohort"],
        # Null would admit no namespace at all, {} every one.
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": queue["namespace"]}},
        # A large job that does not fit yet does not keep smaller ones behind it from idle GPUs.
        "queueingStrategy": "BestEffortFIFO",
        "flavorFungibility": {
            # Capacity comes in the order of its cost: idle GPUs of others in an earlier flavor go before one's own in a later one, which
            # would have to be started, and paid for.
            "whenCanBorrow": "MayStopSearch",
            # Nobody is preempted for a flavor while the next one has room, where quota is what moves work on. Where a stock-out does, the
            # autoscaler has chosen already: the queue stays with the flavor that it can have.
            "whenCanPreempt": "TryNextFlavor" if queue.get("moves_on", True) else "MayStopSearch",
        },
        # What was borrowed is given back to its owner whatever its priority, and within a queue the higher priority goes first. Not with
        # borrowWithinCohort: fair sharing, which is on, ignores it.
        "preemption": {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"},
        "fairSharing": {"weight": count_quantity(queue.get("weight", 1))},
        "stopPolicy": STOP_POLICIES[queue.get("stop", "none")],
        **({"admissionChecksStrategy": {"admissionChecks": checks}} if checks else {}),
        "resourceGroups": _resource_groups(queue["quotas"]),
    }


def local_queue_spec(queue: QueueArgs) -> dict[str, object]:
    """Of a LocalQueue."""
    return {"clusterQueue": queue["name"]}


def _resource_groups(quotas: list[QuotaArgs]) -> list[dict[str, object]]:
    flavors = [{"name": quota["flavor"], "resources": _resources(quota)} for quota in quotas]
    return [{"coveredResources": list(_COVERED), "flavors": flavors}]


def _resources(quota: QuotaArgs) -> list[dict[str, str]]:
    amounts = {"nominalQuota": quota["nominal"], "borrowingLimit": quota["borrowing_limit"], "lendingLimit": quota["lending_limit"]}
    written = {field: _quantities(amount) for field, amount in amounts.items() if amount is not None}
    return [{"name": resource} | {field: quantities[resource] for field, quantities in written.items()} for resource in _COVERED]


def _quantities(amount: AmountArgs) -> dict[str, str]:
    return {"cpu": amount["cpu"], "memory": amount["memory"], GPU_RESOURCE: count_quantity(amount["gpus"])}
