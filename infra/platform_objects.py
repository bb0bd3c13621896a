"""How a stack's cluster is reached, and what every platform has on it: priorities, namespaces, queues, admission policies, measurement."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi
from pulumi_kubernetes import Provider
from pulumi_kubernetes.core.v1 import Namespace
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from capacity.catalog.node_labels import TEAM_LABEL
from capacity.catalog.platform import MEASUREMENT_NAMESPACE, QUEUEING_NAMESPACE, endpoints_of
from capacity.catalog.versions import Chart
from capacity.plan.team_view import team_views
from capacity.settings.teams import AdmissionMode
from components.kueue.controller import KueueController
from components.kueue.jobset import JobSetController
from components.kueue.stock_outs import StockOutWatch
from components.measurement import KubeStateMetrics, RecordingRules
from components.tenancy.admission import AdmissionPolicies, OwnerLabels
from components.tenancy.priorities import Priorities, WorkloadPriorities
from components.tenancy.team import Team, restricted
from infra.exported import export
from infra.queue_objects import declare_queues
from policies.admission.guarantee import guarantee_of, guarantee_policies
from policies.admission.policy import KEYS, PATCHES, admission_policies, labelled
from policies.admission.scheduling_options import facts_of
from policies.judging import DEFAULTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from capacity.plan.model import Plan, PoolPlan, TeamPlan
    from capacity.settings.platform import EksSettings, GkeSettings
    from components.kueue.controller import KueueControllerArgs
    from components.kueue.jobset import JobSetControllerArgs
    from components.tenancy.admission import AdmissionPolicyArgs, ExpressionArgs, MatchedResourcesArgs
    from components.tenancy.priorities import PriorityArgs
    from components.tenancy.team import EndpointArgs, TeamArgs, UnqueuedArgs
    from policies.admission.policy import AdmissionPolicy, Expression, ResourceRule
    from policies.judging import Settings


def cluster_provider(
    name: str, kubeconfig: pulumi.Input[str], cluster: pulumi.Input[str] | None = None, opts: pulumi.ResourceOptions | None = None
) -> Provider:
    """The Kubernetes provider of a stack, for the cluster of `kubeconfig`: a path, or the text itself.

    - **Known by `cluster`**, a cloud's own name of it that waits for the cluster. Without one the provider takes another address of the
      API server for another cluster and replaces every object on it, teams' volumes among them: `control_plane.access` changes it on GKE.

    - **Server-side apply**, so that the API server knows which fields are the program's, and leaves alone what controllers add.
    - **Forced.** What the program says of a field holds: a ceiling that somebody raised is taken back by the next `up` that looks at it,
      whatever they raised it with. Without force a field manager of another name stops each later `up` with a conflict; a preview conflicts
      where its `up` would not; and an atomic field with a server's default in it, such as `matchResources` of a
      ValidatingAdmissionPolicyBinding, conflicts with whoever was given that default. What the program does not set stays as it is.
    - **No upsert.** An object that is there already was made by somebody else, and a program that takes it over would delete it one day.
      Worse, with upsert a renamed resource overwrites the object and then deletes it as its own old self. What an interrupted `up` made is
      read back by its id instead, by `flexspot up`. Said in so many words, because an environment variable would set it as well.
    - **ConfigMaps change in place.** The provider would delete each one whose data change and make it anew: who submits work in that moment
      finds no plan in the team's namespace (`flexspot-platform` changes with the plan), and Prometheus no rules.

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
    """The class of a pool that serves one alone; empty for a pool of several, which a bill cannot tell apart."""
    return {"workload-class": pool.serves[0]} if len(pool.serves) == 1 else {}


def declare_kueue(
    plan: Plan,
    opts: pulumi.ResourceOptions,
    settings: GkeSettings | EksSettings,
    *,
    node_selector: Mapping[str, str] | None = None,
    tolerations: Sequence[Mapping[str, str]] = (),
) -> KueueController:
    """Registers Kueue, with the times that the plan's capacity needs, on the nodes for controllers, unless the cluster has its own."""
    times, size = plan.pods_ready, settings.controllers.kueue
    args: KueueControllerArgs = {
        "existing": settings.queueing.existing_kueue,
        "version": plan.versions.charts.get(Chart.KUEUE),
        "pods_ready": {
            "timeout_seconds": times.timeout_seconds,
            "recovery_seconds": times.recovery_seconds,
            "requeues": times.requeues,
        },
        "replicas": size.replicas,
        "cpu_milli": size.cpu_milli,
        "memory_mib": size.memory_mib,
        "node_selector": dict(node_selector or {}),
        "tolerations": [dict(each) for each in tolerations],
    }
    return KueueController("kueue", args, opts)


def declare_jobset(
    plan: Plan,
    opts: pulumi.ResourceOptions,
    settings: GkeSettings | EksSettings,
    *,
    node_selector: Mapping[str, str] | None = None,
    tolerations: Sequence[Mapping[str, str]] = (),
) -> None:
    """Registers JobSet's controller, on the nodes for controllers, where the settings ask for it."""
    wanted = settings.controllers.jobset
    if not wanted.install:
        return
    args: JobSetControllerArgs = {
        "version": plan.versions.charts[Chart.JOBSET],
        "replicas": wanted.replicas,
        "cpu_milli": wanted.cpu_milli,
        "memory_mib": wanted.memory_mib,
        "node_selector": dict(node_selector or {}),
        "tolerations": [dict(each) for each in tolerations],
    }
    JobSetController("jobset", args, opts)


def declare_stock_out_watch(
    plan: Plan,
    settings: GkeSettings | EksSettings,
    opts: pulumi.ResourceOptions,
    *,
    node_selector: Mapping[str, str] | None = None,
    tolerations: Sequence[Mapping[str, str]] = (),
) -> None:
    """Registers what closes flavors at a stock-out, on the nodes for controllers, where the settings ask for it.

    `opts` says which cluster, and after what: Kueue's definitions.
    """
    wanted = settings.queueing.stock_outs
    if not wanted.watch:
        return
    namespace = Namespace(
        "queueing-namespace", metadata=ObjectMetaArgs(name=QUEUEING_NAMESPACE, labels={**plan.labels, **restricted()}), opts=opts
    )
    StockOutWatch(
        "stock-out-watch",
        {
            "namespace": QUEUEING_NAMESPACE,
            "labels": plan.labels,
            "cohort": settings.cohort,
            "image": wanted.image,
            "hold_minutes": wanted.hold_minutes,
            "node_selector": dict(node_selector or {}),
            "tolerations": [dict(each) for each in tolerations],
        },
        pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=[namespace])),
    )


def declare_measurement(
    plan: Plan,
    settings: GkeSettings | EksSettings,
    opts: pulumi.ResourceOptions,
    *,
    node_selector: Mapping[str, str] | None = None,
    tolerations: Sequence[Mapping[str, str]] = (),
) -> None:
    """Registers kube-state-metrics, on the nodes for controllers, unless the cluster has its own; and the recording rules.

    `opts` says which cluster, and after what.
    """
    namespace = Namespace(
        "measurement-namespace",
        metadata=ObjectMetaArgs(name=MEASUREMENT_NAMESPACE, labels={**plan.labels, **restricted()}),
        opts=opts,
    )
    inside = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=[namespace]))
    wanted, size = settings.measurement, settings.controllers.kube_state_metrics
    read_by = wanted.prometheus.value
    if wanted.kube_state_metrics:
        KubeStateMetrics(
            "kube-state-metrics",
            {
                "namespace": MEASUREMENT_NAMESPACE,
                "prometheus": read_by,
                "labels": plan.labels,
                "monitor_labels": wanted.monitor_labels,
                "cpu_milli": size.cpu_milli,
                "memory": size.memory,
                "node_selector": dict(node_selector or {}),
                "tolerations": [dict(each) for each in tolerations],
            },
            inside,
        )
    rules = RecordingRules(
        "recording-rules",
        {"namespace": MEASUREMENT_NAMESPACE, "prometheus": read_by, "labels": plan.labels, "monitor_labels": wanted.monitor_labels},
        inside,
    )
    export("recorded_series", rules.series)


def declare_priorities(plan: Plan, provider: Provider, controllers: Sequence[pulumi.Resource]) -> None:
    """Registers the classes' priorities: those of pods at once, those of queued work after Kueue, which brings their kind."""
    classes: list[PriorityArgs] = [
        {"name": each.name, "value": each.value, "preempts": each.preempts, "description": each.description} for each in plan.priorities
    ]
    Priorities("priorities", {"classes": classes, "labels": plan.labels}, pulumi.ResourceOptions(provider=provider))
    WorkloadPriorities(
        "workload-priorities",
        {"classes": classes, "labels": plan.labels},
        pulumi.ResourceOptions(provider=provider, depends_on=list(controllers)),
    )


def declare_teams(
    plan: Plan, provider: Provider, annotations: Mapping[str, Mapping[str, pulumi.Input[str]]], outlived_by: Sequence[pulumi.Resource] = ()
) -> dict[str, Team]:
    """Registers each team's namespace and what holds in it, and returns the teams by name.

    `annotations` are those of a team's service account, by name of the team; none for a team that is not in it. `outlived_by` takes
    finalizers off what is in the namespaces, which could not end without it.
    """
    endpoints: list[EndpointArgs] = [
        {"cidr": each.cidr, "protocols": list(each.protocols), "ports": list(each.ports)} for each in endpoints_of(plan.cloud)
    ]
    on_cluster = pulumi.ResourceOptions(provider=provider, depends_on=list(outlived_by))
    views = team_views(plan)
    return {
        team.name: Team(
            team.name, {**_team(plan, team, endpoints, annotations.get(team.name, {})), "platform": views[team.name]}, on_cluster
        )
        for team in plan.teams
    }


def _team(plan: Plan, team: TeamPlan, endpoints: list[EndpointArgs], annotations: Mapping[str, pulumi.Input[str]]) -> TeamArgs:
    unqueued: UnqueuedArgs = {"gpus": team.unqueued_gpus, "priority_classes": list(team.unqueued_priority_classes)}
    if team.unqueued_of:
        unqueued["devices"] = team.unqueued_of
    return {
        "namespace": team.namespace,
        "labels": {**plan.labels, TEAM_LABEL: team.name},
        "hard": team.hard,
        "unqueued": unqueued if team.unqueued_priority_classes else None,
        "container_limits": {"cpu": team.container_limits["cpu"], "memory": team.container_limits["memory"]},
        "submitters": list(team.submitters),
        "viewers": list(team.viewers),
        # Where claims of others are refused and not only warned of.
        "own_claims": plan.admission.mode is AdmissionMode.ENFORCE,
        "cluster_queues": list(team.cluster_queues),
        "endpoints": endpoints,
        "service_account_annotations": dict(annotations),
    }


def declare_admission(plan: Plan, provider: Provider, rules: Settings = DEFAULTS) -> None:
    """Registers the policies that the plan asks for; they know its pools and queues, and `rules` as an organisation has set them."""
    on_cluster = pulumi.ResourceOptions(provider=provider)
    if plan.admission.mode is not AdmissionMode.NONE:
        held = (*admission_policies(facts_of(plan), rules), *guarantee_policies(guarantee_of(plan)))
        AdmissionPolicies(
            "admission",
            {
                "policies": [_policy(each) for each in held],
                "team_label": TEAM_LABEL,
                "enforce": plan.admission.mode is AdmissionMode.ENFORCE,
                "labels": plan.labels,
            },
            on_cluster,
        )
    if plan.admission.owner_labels:
        OwnerLabels(
            "owner-labels",
            {
                "keys": list(KEYS),
                "matches": _matches(labelled()),
                "expression": PATCHES,
                "team_label": TEAM_LABEL,
                "labels": plan.labels,
            },
            on_cluster,
        )


def _policy(policy: AdmissionPolicy) -> AdmissionPolicyArgs:
    return {
        "name": policy.name,
        "stops": policy.stops,
        "guards": policy.guards,
        "matches": _matches(policy.resource_rules),
        "conditions": _expressions(policy.conditions),
        "variables": _expressions(policy.variables),
        "validations": [
            {"expression": each.expression, "message": each.message, "message_expression": each.message_expression}
            for each in policy.validations
        ],
    }


def _matches(rules: Iterable[ResourceRule]) -> list[MatchedResourcesArgs]:
    return [{"group": each.group, "resources": list(each.resources), "operations": list(each.operations)} for each in rules]


def _expressions(expressions: Iterable[Expression]) -> list[ExpressionArgs]:
    return [{"name": each.name, "expression": each.expression} for each in expressions]


def declare_platform_objects(  # noqa: PLR0913 -- what the clouds make before the objects, each by itself
    plan: Plan,
    provider: Provider,
    controllers: Sequence[pulumi.Resource] = (),
    service_accounts: Mapping[str, Mapping[str, pulumi.Input[str]]] | None = None,
    outlived_by: Sequence[pulumi.Resource] = (),
    *,
    rules: Settings = DEFAULTS,
) -> dict[str, Team]:
    """Registers the plan's Kubernetes objects that do not depend on who makes the nodes, and exports the queues' names.

    `controllers` bring the definitions of the queues' kinds, so they come before them. `service_accounts` are the annotations of the
    service account of a team's workloads, by name of the team; default: none. `outlived_by` is there until the teams' namespaces are gone.
    `rules` are an organisation's own settings of the rules that the API server holds; default: as shipped.
    Returns the teams by name.
    """
    declare_priorities(plan, provider, controllers)
    declare_admission(plan, provider, rules)
    teams = declare_teams(plan, provider, service_accounts or {}, outlived_by)
    declare_queues(plan, pulumi.ResourceOptions(provider=provider, depends_on=[*teams.values(), *controllers]))
    return teams
