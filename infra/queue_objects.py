"""Every platform's queues: flavors, cohorts, ClusterQueues and LocalQueues, of GPUs and of work without GPUs, out of the plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi

from capacity.catalog.node_labels import TEAM_LABEL
from capacity.plan.model import Amount
from capacity.values.quantities import count_quantity, mib_quantity
from components.kueue.controller import DwsProvisioning
from components.kueue.queues import Queues
from components.kueue.topology import Topology
from infra.exported import export

if TYPE_CHECKING:
    from capacity.plan.cpu_work_model import CpuAmount, CpuWorkPlan
    from capacity.plan.model import CohortPlan, FlavorPlan, FlavorQuota, Plan, QueuePlan, Taint
    from components.kueue.queues import AmountArgs, CohortArgs, FlavorArgs, QueueArgs, QuotaArgs
    from components.shared_args import NodeTaint


def node_taint(taint: Taint) -> NodeTaint:
    """A taint of nodes."""
    return {"key": taint.key, "value": taint.value, "effect": taint.effect.value}


def toleration(taint: Taint) -> dict[str, str]:
    """The toleration of exactly this taint."""
    return {"key": taint.key, "operator": "Equal", "value": taint.value, "effect": taint.effect.value}


DWS = "dws"
"""Name of the AdmissionCheck before queued pools."""


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
            "cohorts": [*(_cohort(cohort) for cohort in plan.cohorts), *_cpu_cohorts(plan.cpu_work)],
            "flavors": [*(_flavor(flavor) for flavor in plan.flavors), *_cpu_flavors(plan.cpu_work)],
            "queues": [*(_queue(plan, queue) for queue in plan.queues), *_cpu_queues(plan.cpu_work)],
            "labels": plan.labels,
        },
        pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=first)),
    )
    export("queues", {queue.namespace: queue.local_queue for queue in plan.queues})
    export("cluster_queues", queues.cluster_queues)


def _flavor(flavor: FlavorPlan) -> FlavorArgs:
    return {
        "name": flavor.name,
        "node_labels": flavor.node_labels,
        "node_taints": [node_taint(taint) for taint in flavor.node_taints],
        "tolerations": [toleration(taint) for taint in flavor.tolerated],
        "topology": flavor.topology,
        "resource": flavor.resource,
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
        "quotas": [*_launchers(plan.cpu_work, queue), *(_quota(quota) for quota in queue.quotas)],
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


def _launchers(work: CpuWorkPlan | None, queue: QueuePlan) -> list[QuotaArgs]:
    """Before the flavors with GPUs, so that pods without any have nodes without any. Nobody preempts GPUs for a launcher's vCPU."""
    own = [each.launchers for each in work.queues if each.namespace == queue.namespace] if work else []
    alone = _amount(Amount(0, 0, 0))
    return [
        {"flavor": work.flavor, "nominal": _cpu_amount(each), "borrowing_limit": alone, "lending_limit": alone}
        for each in own
        if work is not None and each.vcpu and each.memory_mib
    ]


def _cpu_flavors(work: CpuWorkPlan | None) -> list[FlavorArgs]:
    return [{"name": work.flavor, "node_labels": work.node_labels, "node_taints": [], "tolerations": [], "resource": None}] if work else []


def _cpu_cohorts(work: CpuWorkPlan | None) -> list[CohortArgs]:
    if work is None:
        return []
    unowned = [_cpu_quota(work, work.unowned)] if work.unowned.vcpu or work.unowned.memory_mib else []
    return [{"name": work.cohort, "parent": None, "quotas": unowned, "of_cpu_work": True}]


def _cpu_queues(work: CpuWorkPlan | None) -> list[QueueArgs]:
    if work is None:
        return []
    return [
        {
            "name": queue.cluster_queue,
            "cohort": work.cohort,
            "namespace": queue.namespace,
            "local_queue": queue.local_queue,
            "labels": {TEAM_LABEL: queue.namespace},
            "quotas": [_cpu_quota(work, queue.nominal)],
            "weight": queue.weight,
            "stop": queue.stop.value,
            "of_cpu_work": True,
        }
        for queue in work.queues
    ]


def _cpu_amount(amount: CpuAmount) -> AmountArgs:
    return _amount(Amount(0, amount.vcpu, amount.memory_mib))


def _cpu_quota(work: CpuWorkPlan, nominal: CpuAmount) -> QuotaArgs:
    return {"flavor": work.flavor, "nominal": _cpu_amount(nominal), "borrowing_limit": None, "lending_limit": None}


def _amount(amount: Amount) -> AmountArgs:
    return {"gpus": amount.gpus, "cpu": count_quantity(amount.vcpu), "memory": mib_quantity(amount.memory_mib)}
