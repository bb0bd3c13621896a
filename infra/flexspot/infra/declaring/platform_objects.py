"""Access to a stack's cluster, and objects of every platform: priorities, namespaces, queues, admission policies, measurement."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pulumi
from pulumi_kubernetes import Provider
from pulumi_kubernetes.core.v1 import Namespace
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from flexspot.capacity.catalog.node_labels import TEAM_LABEL
from flexspot.capacity.catalog.platform import MEASUREMENT_NAMESPACE, QUEUEING_NAMESPACE, endpoints_of
from flexspot.capacity.catalog.versions import Chart
from flexspot.capacity.catalog.workload_classes import Removal
from flexspot.capacity.plan.cpu_work import OTHER_WORK
from flexspot.capacity.plan.teams import team_views
from flexspot.capacity.settings.teams import AdmissionMode
from flexspot.capacity.values.quantities import count_quantity, mib_quantity
from flexspot.components.karpenter.node_pools import CpuNodePoolArgs, GpuNodePoolArgs
from flexspot.components.kueue.controller import (
    DwsProvisioning,
    JobSetController,
    JobSetControllerArgs,
    KueueController,
    KueueControllerArgs,
)
from flexspot.components.kueue.queues import CohortArgs, FlavorArgs, QueueArgs, Queues, Topology, TopologyArgs
from flexspot.components.kueue.stock_outs import StockOutWatch, StockOutWatchArgs
from flexspot.components.measurement import KubeStateMetrics, KubeStateMetricsArgs, RecordingRules, RecordingRulesArgs
from flexspot.components.shared_args import arguments
from flexspot.components.tenancy.admission import (
    AdmissionPolicies,
    AdmissionPoliciesArgs,
    AdmissionPolicyArgs,
    OwnerLabels,
    OwnerLabelsArgs,
)
from flexspot.components.tenancy.priorities import Priorities, PrioritiesArgs, WorkloadPriorities, WorkloadPrioritiesArgs
from flexspot.components.tenancy.team import Team, TeamArgs, restricted
from flexspot.policies.admission.guarantee import guarantee_of, guarantee_policies
from flexspot.policies.admission.policy import KEYS, PATCHES, admission_policies, labelled
from flexspot.policies.admission.scheduling_options import facts_of, team_annotations
from flexspot.policies.judging import DEFAULTS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from flexspot.capacity.plan.model import Amount, CohortPlan, FlavorPlan, FlavorQuota, Plan, PoolPlan, QueuePlan, TeamPlan
    from flexspot.capacity.settings.cluster import OtherWork
    from flexspot.capacity.settings.platform import EksSettings, GkeSettings
    from flexspot.components.karpenter.node_pools import NodeClassRef
    from flexspot.components.kueue.queues import AmountArgs, QuotaArgs
    from flexspot.components.tenancy.team import UnqueuedArgs
    from flexspot.policies.judging import Settings


Outputs = dict[str, pulumi.Input[Any]]
"""Outputs of a stack or a platform for the next tool, by name."""


def cluster_provider(
    name: str, opts: pulumi.ResourceOptions | None, kubeconfig: pulumi.Input[str], cluster: pulumi.Input[str] | None = None
) -> Provider:
    """Return the Kubernetes provider of a stack, for the cluster of `kubeconfig`: a path, or the text itself.

    - **`cluster` identifies it.** It is the cloud's own name of the cluster, known once the cluster exists. Without it, the provider treats
      another address of the API server as another cluster and replaces every object on it, teams' volumes among them. On GKE,
      `control_plane.access` changes the address.
    - **Server-side apply**, so that the API server knows which fields belong to the program. Fields that controllers add stay unchanged.
    - **Forced.** The program's value of a field wins: if someone raises a ceiling by any means, the next `up` that looks at it lowers it
      again. Without force, a field manager of another name stops each later `up` with a conflict, and a preview reports conflicts where its
      `up` would not. An atomic field with a server's default in it, such as `matchResources` of a ValidatingAdmissionPolicyBinding,
      conflicts with the manager that got the default. Fields that the program does not set stay as they are.
    - **No upsert.** An existing object belongs to another owner, and a program that adopts it would delete it one day. Worse, with upsert a
      renamed resource overwrites the object and then deletes it as its own predecessor. `flexspot up` finds the objects of an interrupted
      `up` by their ids instead. Set explicitly, because an environment variable would set it as well.
    - **ConfigMaps change in place.** By default, the provider deletes each one whose data change and creates it again. A job submitted in
      that moment would find no plan in the team's namespace (`flexspot-platform` changes with the plan), and Prometheus no rules.

    docs/decisions/0019-who-owns-a-field.md has the alternatives.
    """
    return Provider(
        name,
        kubeconfig=kubeconfig,
        cluster_identifier=cluster,
        enable_server_side_apply=True,
        enable_patch_force=True,
        upsert_existing_objects=False,
        enable_config_map_mutable=True,
        opts=opts,
    )


def billing_label(pool: PoolPlan) -> dict[str, str]:
    """Return the billing label of a pool that serves one workload class. Empty for a pool of several, which a bill cannot distinguish."""
    return {"workload-class": pool.serves[0]} if len(pool.serves) == 1 else {}


@dataclass(frozen=True)
class ControllerNodes:
    """Nodes for controllers: their labels, and tolerations of their taints."""

    node_selector: dict[str, str] = field(default_factory=dict[str, str])
    tolerations: list[dict[str, str]] = field(default_factory=list[dict[str, str]])


ANYWHERE = ControllerNodes()


def after(opts: pulumi.ResourceOptions, *first: pulumi.Resource) -> pulumi.ResourceOptions:
    """Return `opts` of a resource that also waits for `first`."""
    return pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=list(first)))


def declare_controllers(
    plan: Plan, settings: GkeSettings | EksSettings, opts: pulumi.ResourceOptions, nodes: ControllerNodes = ANYWHERE
) -> tuple[KueueController, Outputs]:
    """Register the controllers of queued work and the measurement of a cloud's cluster, on the nodes for controllers.

    `opts` names the cluster, and the resources to wait for. Returns the component that installs the definitions of the queues' kinds, and
    the outputs.
    """
    kueue = declare_kueue(plan, opts, settings, nodes)
    jobset, watch, charts = settings.controllers.jobset, settings.queueing.stock_outs, plan.versions.charts
    if jobset.install:
        JobSetController("jobset", arguments(JobSetControllerArgs, nodes, jobset, version=charts[Chart.JOBSET]), opts)
    if watch.watch:
        args = arguments(StockOutWatchArgs, watch, settings, plan, nodes, namespace=QUEUEING_NAMESPACE)
        StockOutWatch("stock-out-watch", args, _in_namespace(plan, "queueing-namespace", QUEUEING_NAMESPACE, after(opts, kueue)))
    inside = _in_namespace(plan, "measurement-namespace", MEASUREMENT_NAMESPACE, opts)
    wanted, size = settings.measurement, settings.controllers.kube_state_metrics
    if wanted.kube_state_metrics:
        state_metrics = arguments(KubeStateMetricsArgs, wanted, size, plan, nodes, namespace=MEASUREMENT_NAMESPACE)
        KubeStateMetrics("kube-state-metrics", state_metrics, inside)
    rules = RecordingRules("recording-rules", arguments(RecordingRulesArgs, wanted, plan, namespace=MEASUREMENT_NAMESPACE), inside)
    return kueue, {"recorded_series": rules.series}


def declare_kueue(
    plan: Plan, opts: pulumi.ResourceOptions, settings: GkeSettings | EksSettings, nodes: ControllerNodes = ANYWHERE
) -> KueueController:
    """Register Kueue on the nodes for controllers, with timeouts for the plan's capacity, unless the cluster has its own Kueue."""
    args = arguments(
        KueueControllerArgs,
        plan,
        settings.controllers.kueue,
        nodes,
        existing=settings.queueing.existing_kueue,
        version=plan.versions.charts.get(Chart.KUEUE),
    )
    return KueueController("kueue", args, opts)


def _in_namespace(plan: Plan, name: str, namespace: str, opts: pulumi.ResourceOptions) -> pulumi.ResourceOptions:
    """Register a namespace of the platform, and return the options of resources in it."""
    metadata = ObjectMetaArgs(name=namespace, labels={**plan.labels, **restricted()})
    return after(opts, Namespace(name, metadata=metadata, opts=opts))


def declare_platform_objects(  # noqa: PLR0913 -- what the clouds make before the objects, each by itself
    plan: Plan,
    on_cluster: pulumi.ResourceOptions,
    controllers: Sequence[pulumi.Resource] = (),
    service_accounts: Mapping[str, Mapping[str, pulumi.Input[str]]] | None = None,
    outlived_by: Sequence[pulumi.Resource] = (),
    *,
    rules: Settings = DEFAULTS,
) -> tuple[dict[str, Team], Outputs]:
    """Register the Kubernetes objects of the plan that do not depend on how nodes are created. Return the teams by name, and the outputs.

    `controllers` install the definitions of the queues' kinds, so they come first. `service_accounts` are the annotations of the service
    account of a team's workloads, by team; default: none. `outlived_by` is deleted after the teams' namespaces, because it removes
    finalizers from objects in them. `rules` are an organisation's settings of the rules in the API server; default: as shipped.
    """
    priorities = arguments(PrioritiesArgs, plan, classes=plan.priorities)
    Priorities("priorities", priorities, on_cluster)
    # Kueue installs the kind of the priorities of queued work.
    WorkloadPriorities(
        "workload-priorities", arguments(WorkloadPrioritiesArgs, plan, classes=plan.priorities), after(on_cluster, *controllers)
    )
    declare_admission(plan, on_cluster, rules)
    views, annotations = team_views(plan), service_accounts or {}
    teams = {
        team.name: Team(
            team.name,
            {**_team(plan, team, annotations.get(team.name, {})), "platform": views[team.name]},
            after(on_cluster, *outlived_by),
        )
        for team in plan.teams
    }
    return teams, declare_queues(plan, after(on_cluster, *teams.values(), *controllers))


def _team(plan: Plan, team: TeamPlan, annotations: Mapping[str, pulumi.Input[str]]) -> TeamArgs:
    unqueued: UnqueuedArgs = {"gpus": team.unqueued_gpus, "priority_classes": list(team.unqueued_priority_classes)}
    if team.unqueued_of:
        unqueued["devices"] = team.unqueued_of
    return arguments(
        TeamArgs,
        team,
        labels={**plan.labels, TEAM_LABEL: team.name},
        annotations=team_annotations(plan, team),
        unqueued=unqueued if team.unqueued_priority_classes else None,
        # True where claims of other owners are rejected rather than warned about.
        own_claims=plan.admission.mode is AdmissionMode.ENFORCE,
        endpoints=list(endpoints_of(plan.cloud)),
        service_account_annotations=dict(annotations),
    )


def declare_admission(plan: Plan, on_cluster: pulumi.ResourceOptions, rules: Settings = DEFAULTS) -> None:
    """Register the admission policies of the plan. They contain its pools and queues, and the organisation's settings in `rules`."""
    if plan.admission.mode is not AdmissionMode.NONE:
        held = (*admission_policies(facts_of(plan), rules), *guarantee_policies(guarantee_of(plan)))
        args = arguments(
            AdmissionPoliciesArgs,
            plan,
            policies=[arguments(AdmissionPolicyArgs, each, matches=each.resource_rules) for each in held],
            team_label=TEAM_LABEL,
            enforce=plan.admission.mode is AdmissionMode.ENFORCE,
        )
        AdmissionPolicies("admission", args, on_cluster)
    if plan.admission.owner_labels:
        filled = arguments(OwnerLabelsArgs, plan, keys=KEYS, matches=labelled(), expression=PATCHES, team_label=TEAM_LABEL)
        OwnerLabels("owner-labels", filled, on_cluster)


DWS = "dws"
"""Name of the AdmissionCheck of queued pools."""


def declare_queues(plan: Plan, opts: pulumi.ResourceOptions) -> Outputs:
    """Register the plan's flavors, cohorts and queues, and return the queues' names as outputs.

    `opts` names the cluster, and the resources to wait for: Kueue's definitions and the teams' namespaces. GKE's admission check and
    topology come first, because Kueue keeps a queue inactive until the objects that it names exist.
    """
    first: list[pulumi.Resource] = [
        Topology(f"topology-{each.name}", arguments(TopologyArgs, each, plan), opts) for each in plan.topologies
    ]
    if any(flavor.provisioned for flavor in plan.flavors):
        first.append(DwsProvisioning(DWS, {"name": DWS, "labels": plan.labels}, opts))
    queues = Queues(
        "queues",
        {
            "cohorts": [_cohort(plan, cohort) for cohort in plan.every_cohort],
            "flavors": [_flavor(flavor) for flavor in plan.every_flavor],
            "queues": [_queue(plan, queue) for queue in plan.every_queue],
            "labels": plan.labels,
        },
        after(opts, *first),
    )
    return {"queues": {queue.namespace: queue.local_queue for queue in plan.queues}, "cluster_queues": queues.cluster_queues}


def _flavor(flavor: FlavorPlan) -> FlavorArgs:
    tolerations = [{"key": each.key, "operator": "Equal", "value": each.value, "effect": each.effect} for each in flavor.tolerated]
    return arguments(FlavorArgs, flavor, tolerations=tolerations, resource=flavor.resource if flavor.pools else None)


def _cohort(plan: Plan, cohort: CohortPlan) -> CohortArgs:
    return arguments(CohortArgs, cohort, quotas=[_quota(quota) for quota in cohort.quotas], of_cpu_work=_of_cpu_work(plan, cohort.name))


def _queue(plan: Plan, queue: QueuePlan) -> QueueArgs:
    provisioned = {flavor.name for flavor in plan.flavors if flavor.provisioned}
    checked = [quota.flavor for quota in queue.quotas if quota.flavor in provisioned]
    return arguments(
        QueueArgs,
        queue,
        name=queue.cluster_queue,
        labels={TEAM_LABEL: queue.namespace},
        quotas=[_quota(quota) for quota in queue.quotas],
        of_cpu_work=_of_cpu_work(plan, queue.cohort),
        admission_checks=[{"name": DWS, "flavors": checked}] if checked else [],
    )


def _of_cpu_work(plan: Plan, cohort: str) -> bool | None:
    """Return True for the cohort of work without GPUs, and None for any other, which omits the argument."""
    return True if plan.cpu_work is not None and cohort == plan.cpu_work.cohort else None


def _quota(quota: FlavorQuota) -> QuotaArgs:
    return {
        "flavor": quota.flavor,
        "nominal": _amount(quota.nominal),
        "borrowing_limit": None if quota.borrowing_limit is None else _amount(quota.borrowing_limit),
        "lending_limit": None if quota.lending_limit is None else _amount(quota.lending_limit),
    }


def _amount(amount: Amount) -> AmountArgs:
    return {"gpus": amount.gpus, "cpu": count_quantity(amount.vcpu), "memory": mib_quantity(amount.memory_mib)}


SERVICE_DRAIN_SECONDS = 3600
"""Seconds that a drain of a service's node waits for its pods. A drain waits for jobs until they end."""


def node_pool_args(plan: Plan, pool: PoolPlan, node_class: NodeClassRef) -> GpuNodePoolArgs:
    """Return the arguments of the NodePool for one pool of the plan, for Flexspot's own Karpenter."""
    consolidates = pool.removal is Removal.UNDERUTILIZED
    return arguments(
        GpuNodePoolArgs,
        pool,
        plan,
        pool=pool.name,
        instance_families=sorted({machine.partition(".")[0] for machine in pool.machines}),
        capacity_types=[pool.capacity_type],
        node_labels=pool.labels,
        labels=plan.labels,
        max_vcpu=pool.ceiling.vcpu,
        max_memory_mib=pool.ceiling.memory_mib,
        consolidates=consolidates,
        termination_grace_seconds=SERVICE_DRAIN_SECONDS if consolidates else None,
        node_class=node_class,
    )


def other_work_args(plan: Plan, room: OtherWork, node_class: NodeClassRef) -> CpuNodePoolArgs:
    """Return the arguments of the NodePool for pods without GPUs."""
    return arguments(CpuNodePoolArgs, room, plan, pool=OTHER_WORK, owner_labels=plan.labels, node_class=node_class)
