"""Kueue and its objects, as the plan says: flavors, cohorts, queues, and what stands before some of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi

from capacity.catalog.node_labels import TEAM_LABEL
from capacity.values.quantities import count_quantity, mib_quantity
from components.kueue.controller import KueueController
from components.kueue.dws_provisioning import DwsProvisioning
from components.kueue.queues import Queues
from components.kueue.topology import Topology
from infra.pool_marks import node_taint, toleration

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from capacity.plan.model import Amount, CohortPlan, FlavorPlan, FlavorQuota, Plan, QueuePlan
    from components.kueue.controller import KueueControllerArgs
    from components.kueue.queues import AmountArgs, CohortArgs, FlavorArgs, QueueArgs, QuotaArgs

DWS = "dws"
"""Name of the AdmissionCheck before queued pools."""


def declare_kueue(
    plan: Plan,
    opts: pulumi.ResourceOptions,
    *,
    existing: bool,
    node_selector: Mapping[str, str] | None = None,
    tolerations: Sequence[Mapping[str, str]] = (),
) -> KueueController:
    """Registers Kueue, with the times that the plan's capacity needs, on the nodes for controllers; none where one is `existing`."""
    times = plan.pods_ready
    args: KueueControllerArgs = {
        "existing": existing,
        "pods_ready": {
            "timeout_seconds": times.timeout_seconds,
            "recovery_seconds": times.recovery_seconds,
            "requeues": times.requeues,
        },
        "node_selector": dict(node_selector or {}),
        "tolerations": [dict(each) for each in tolerations],
    }
    return KueueController("kueue", args, opts)


def declare_queues(plan: Plan, opts: pulumi.ResourceOptions) -> None:
    """Registers the plan's flavors, cohorts and queues, and exports the queues' names.

    `opts` says which cluster, and after what: Kueue's definitions and the teams' namespaces. GKE's admission check and topology come first,
    because Kueue holds a queue inactive until what it names is there.
    """
    first: list[pulumi.Resource] = [
        Topology(f"topology-{each.name}", {"name": each.name, "levels": list(each.levels), "labels": plan.labels}, opts)
        for each in plan.topologies
    ]
    if any(flavor.provisioned for flavor in plan.flavors):
        first.append(DwsProvisioning(DWS, {"name": DWS, "labels": plan.labels}, opts))
    queues = Queues(
        "queues",
        {
            "cohorts": [_cohort(cohort) for cohort in plan.cohorts],
            "flavors": [_flavor(flavor) for flavor in plan.flavors],
            "queues": [_queue(plan, queue) for queue in plan.queues],
            "labels": plan.labels,
        },
        pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=first)),
    )
    pulumi.export("queues", {queue.namespace: queue.local_queue for queue in plan.queues})
    pulumi.export("cluster_queues", queues.cluster_queues)


def _flavor(flavor: FlavorPlan) -> FlavorArgs:
    return {
        "name": flavor.name,
        "node_labels": flavor.node_labels,
        "node_taints": [node_taint(taint) for taint in flavor.node_taints],
        "tolerations": [toleration(taint) for taint in flavor.tolerated],
        "topology": flavor.topology,
    }


def _cohort(cohort: CohortPlan) -> CohortArgs:
    return {
        "name": cohort.name,
        "parent": cohort.parent,
        "quotas": [_quota(quota) for quota in cohort.quotas],
        "weight": cohort.weight,
    }


def _queue(plan: Plan, queue: QueuePlan) -> QueueArgs:
    provisioned = {flavor.name for flavor in plan.flavors if flavor.provisioned}
    checked = [quota.flavor for quota in queue.quotas if quota.flavor in provisioned]
    return {
        "name": queue.cluster_queue,
        "cohort": queue.cohort,
        "namespace": queue.namespace,
        "local_queue": queue.local_queue,
        "labels": {TEAM_LABEL: queue.namespace},
        "quotas": [_quota(quota) for quota in queue.quotas],
        "weight": queue.weight,
        "moves_on": queue.moves_on,
        "stop": queue.stop.value,
        "admission_checks": [{"name": DWS, "flavors": checked}] if checked else [],
    }


def _quota(quota: FlavorQuota) -> QuotaArgs:
    return {
        "flavor": quota.flavor,
        "nominal": _amount(quota.nominal),
        "borrowing_limit": None if quota.borrowing_limit is None else _amount(quota.borrowing_limit),
        "lending_limit": None if quota.lending_limit is None else _amount(quota.lending_limit),
    }


def _amount(amount: Amount) -> AmountArgs:
    return {"gpus": amount.gpus, "cpu": count_quantity(amount.vcpu), "memory": mib_quantity(amount.memory_mib)}
