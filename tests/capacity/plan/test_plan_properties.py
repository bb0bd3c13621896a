"""Properties of all settings: they become a plan or a SettingsError, and the parts of a plan agree."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from settings_strategies import check_document, documents, nested
from valid_settings import valid_settings

from flexspot.capacity.catalog.accelerators import BY_RESOURCE
from flexspot.capacity.catalog.capacity_type import CapacityType, facts_of
from flexspot.capacity.catalog.node_labels import COMPUTE_CLASS_LABEL, FLAVOR_LABEL
from flexspot.capacity.catalog.platform import VOCABULARIES, Platform
from flexspot.capacity.plan.build import build_plan
from flexspot.capacity.plan.model import Amount, CohortPlan, plan_data
from flexspot.capacity.plan.resolve import machines_of_pool
from flexspot.capacity.settings.platform import EksSettings
from flexspot.capacity.settings.stack_file import parse_settings
from flexspot.capacity.values.quantities import quantity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexspot.capacity.plan.model import FlavorQuota, Plan, QueuePlan


def total(amounts: list[Amount]) -> Amount:
    return Amount(sum(each.gpus for each in amounts), sum(each.vcpu for each in amounts), sum(each.memory_mib for each in amounts))


def plan_of(value: dict[str, Any]) -> Plan:
    return build_plan(parse_settings(value, "valid"))


@pytest.mark.slow
@settings(deadline=None, database=None, derandomize=True)
@given(documents())
def test_any_document_becomes_a_plan_or_is_refused_with_paths_and_reasons(document: object) -> None:
    check_document(document)


@pytest.mark.parametrize(
    "written", [None, [], "local", {"cloud": ["local"]}, {"cloud": {}}, {1: 2}, {"cloud": "local", None: 1}, {"cloud": "local", "": 0}]
)
def test_documents_that_are_no_mapping_of_settings_are_refused(written: object) -> None:
    check_document(written)


@pytest.mark.parametrize("cloud", [10**5000, nested(5000)], ids=["digits", "lists"])
def test_an_absurd_platform_is_refused(cloud: object) -> None:
    check_document({"cloud": cloud})


@pytest.mark.slow
@given(valid_settings())
def test_equal_valid_settings_become_equal_plans(value: dict[str, Any]) -> None:
    assert json.dumps(plan_data(plan_of(value))) == json.dumps(plan_data(plan_of(value)))


@pytest.mark.slow
@given(valid_settings(), st.randoms(use_true_random=False))
def test_the_order_of_pools_teams_and_classes_does_not_change_the_plan(value: dict[str, Any], random: Any) -> None:
    def shuffled(items: list[Any]) -> list[Any]:
        return random.sample(items, len(items))

    other = dict(shuffled(list(value.items())))
    other |= {name: shuffled(value[name]) for name in ("pools", "teams", "cohorts")}
    other["pools"] = [pool | {"serves": shuffled(pool["serves"])} for pool in other["pools"]]
    other["classes"] = dict(shuffled(list(value["classes"].items())))
    one, two = plan_of(value), plan_of(other)

    # The path of a warning contains indexes, so it depends on the order.
    assert json.dumps(plan_data(replace(one, warnings=()))) == json.dumps(plan_data(replace(two, warnings=())))
    assert sorted((each.rule, each.path.partition(".")[0]) for each in one.warnings) == sorted(
        (each.rule, each.path.partition(".")[0]) for each in two.warnings
    )


@given(valid_settings())
def test_every_eks_cluster_pins_its_image_by_an_alias(value: dict[str, Any]) -> None:
    # facts/apis.md G3: Karpenter refuses a node class that names only an image family.
    parsed = parse_settings(value, "valid")

    assert not isinstance(parsed, EksSettings) or "@" in parsed.cluster.image


@given(valid_settings())
def test_every_label_of_a_flavor_is_on_the_nodes_of_its_pools_before_they_boot(value: dict[str, Any]) -> None:
    # facts/apis.md G4: a flavor's labels become a node selector. From zero, no node is launched for a label that appears after boot.
    plan = plan_of(value)
    words = VOCABULARIES[plan.cloud]
    devices = [gpu for pool in plan.pools if (gpu := machines_of_pool(plan, pool)[0].gpu)]
    before_boot = {words.pool_label, *(label for gpu in devices for label in words.device_labels(gpu)), COMPUTE_CLASS_LABEL, FLAVOR_LABEL}
    before_boot |= {label for facts in facts_of(words.facts).values() for label in facts.autoscaler_labels}
    pools = {pool.name: pool for pool in plan.pools}
    for flavor in plan.flavors:
        assert flavor.node_labels
        assert set(flavor.node_labels) <= before_boot
        assert not [label for label in flavor.node_labels if label.startswith("nvidia.com/")]
        assert all(flavor.node_labels.items() <= pools[name].selector.items() for name in flavor.pools)


@pytest.mark.slow
@given(valid_settings())
def test_every_namespace_quota_is_enforced_and_covers_the_teams_shares(value: dict[str, Any]) -> None:
    # facts/apis.md G14: a quota on limits.nvidia.com/gpu is accepted and never counted.
    plan = plan_of(value)
    queues = {queue.namespace: queue for queue in plan.queues}
    for team in plan.teams:
        assert "requests.nvidia.com/gpu" in team.hard
        assert not [key for key in team.hard if key.startswith("limits.")]
        own = queues[team.namespace].quotas if team.namespace in queues else ()
        assert team.max_gpus >= sum(quota.nominal.gpus for quota in own) + team.unqueued_gpus


@given(valid_settings())
def test_no_namespace_quota_rejects_admitted_work(value: dict[str, Any]) -> None:
    plan = plan_of(value)
    resource_of = {flavor.name: flavor.resource for flavor in plan.flavors}
    most: dict[tuple[str, str], int] = {}
    for queue in plan.queues:
        for quota in queue.quotas:
            key = (queue.namespace, resource_of[quota.flavor])
            most[key] = most.get(key, 0) + _admitted_at_most(plan, queue, quota.flavor)

    for team in plan.teams:
        devices = {resource: most.get((team.namespace, resource), 0) + team.most_unqueued(resource) for resource in BY_RESOURCE}
        quotas = {resource: int(quantity(team.hard.get(f"requests.{resource}", "0")) or 0) for resource in BY_RESOURCE}
        assert all(quotas[resource] >= devices[resource] for resource in BY_RESOURCE)
        assert "requests.nvidia.com/gpu" in team.hard
        gpus = sum(devices.values())
        assert sum(quotas.values()) == team.max_gpus >= gpus
        # Each GPU may be used by a separate pod.
        pods = quantity(team.hard["pods"])
        assert pods is not None
        assert pods >= gpus


@given(valid_settings())
def test_no_container_limit_is_below_the_node_of_a_pool(value: dict[str, Any]) -> None:
    plan = plan_of(value)
    nodes = [Amount(0, pool.ceiling.vcpu // pool.max_nodes, pool.ceiling.memory_mib // pool.max_nodes) for pool in plan.pools]
    for team in plan.teams:
        cpu, memory = quantity(team.container_limits["cpu"]), quantity(team.container_limits["memory"])
        assert cpu is not None
        assert memory is not None
        assert cpu >= max(node.vcpu for node in nodes)
        assert memory >= max(node.memory_mib for node in nodes) * 2**20


@given(valid_settings())
def test_queues_and_cohorts_together_own_each_flavor_exactly(value: dict[str, Any]) -> None:
    plan = plan_of(value)
    for flavor in plan.flavors:
        owned = total([quota.nominal for quota in _quotas(plan, flavor.name)])
        assert owned.gpus == flavor.ceiling.gpus, "unowned quota belongs to the root cohort"
        # Each share is rounded up separately, by less than a vCPU and a MiB.
        parts = len(list(_quotas(plan, flavor.name)))
        assert owned.vcpu < flavor.ceiling.vcpu + max(1, parts)
        assert owned.memory_mib < flavor.ceiling.memory_mib + max(1, parts)


@given(valid_settings())
def test_queues_and_unqueued_classes_together_stay_within_the_ceilings(value: dict[str, Any]) -> None:
    plan = plan_of(value)
    ceilings = {pool.name: pool.ceiling for pool in plan.pools}
    unqueued = dict.fromkeys(ceilings, 0)
    for team in value["teams"]:
        for name, gpus in team["unqueued"].items():
            unqueued[name] += gpus
    for flavor in plan.flavors:
        has = total([ceilings[name] for name in flavor.pools])
        assert flavor.ceiling.gpus + sum(unqueued[name] for name in flavor.pools) <= has.gpus
        if len(flavor.pools) == 1:
            # A class on different machines counts each GPU with the vCPU of the largest, so only its GPUs are limited.
            assert _covers(has, flavor.ceiling)


@given(valid_settings())
def test_the_pods_of_a_class_tolerate_every_taint_of_its_pools(value: dict[str, Any]) -> None:
    plan = plan_of(value)
    pools = {pool.name: pool for pool in plan.pools}
    for route in plan.routes:
        assert {pool.name for pool in plan.pools if route.workload_class in pool.serves} == {route_pool.pool for route_pool in route.pools}
        for route_pool in route.pools:
            assert set(pools[route_pool.pool].taints) <= set(route.tolerations)
            assert (route_pool.flavor is not None) == route.queued
    for flavor in plan.flavors:
        taints = {taint for name in flavor.pools for taint in pools[name].taints}
        assert taints == {*flavor.node_taints, *flavor.tolerated}


@given(valid_settings())
def test_queued_gke_pools_are_provisioned_on_request_with_a_run_time(value: dict[str, Any]) -> None:
    plan = plan_of(value)
    types = {pool.name: pool.capacity_type for pool in plan.pools}
    for flavor in plan.flavors:
        assert flavor.provisioned == all(types[name] is CapacityType.QUEUED for name in flavor.pools)
        assert not flavor.provisioned or plan.cloud is Platform.GKE
    for route in plan.routes:
        queued = any(route_pool.capacity_type is CapacityType.QUEUED for route_pool in route.pools)
        seconds = route.job_annotations.get("provreq.kueue.x-k8s.io/maxRunDurationSeconds")
        assert (seconds is not None) == queued
        # DWS provides nodes for at most seven days.
        assert seconds is None or 600 <= int(seconds) <= 604_800


def _covers(whole: Amount, part: Amount) -> bool:
    return part.gpus <= whole.gpus and part.vcpu <= whole.vcpu and part.memory_mib <= whole.memory_mib


def _quotas(plan: Plan, flavor: str) -> Iterator[FlavorQuota]:
    for owner in (*plan.cohorts, *plan.queues):
        yield from (quota for quota in owner.quotas if quota.flavor == flavor)


def _admitted_at_most(plan: Plan, queue: QueuePlan, flavor: str) -> int:
    """Return the most that a queue can ever have by Kueue's arithmetic: potentialAvailable in pkg/cache/scheduler of v0.19."""
    cohorts = {cohort.name: cohort for cohort in plan.cohorts}
    children: dict[str, list[QueuePlan | CohortPlan]] = {name: [] for name in cohorts}
    for each in plan.queues:
        children[each.cohort].append(each)
    for each in plan.cohorts:
        if each.parent is not None:
            children[each.parent].append(each)

    def quota_of(owner: QueuePlan | CohortPlan) -> FlavorQuota | None:
        return next((quota for quota in owner.quotas if quota.flavor == flavor), None)

    def in_subtree(owner: QueuePlan | CohortPlan) -> int:
        quota = quota_of(owner)
        inside = children[owner.name] if isinstance(owner, CohortPlan) else []
        return (quota.nominal.gpus if quota else 0) + sum(in_subtree(each) - kept(each) for each in inside)

    def kept(owner: QueuePlan | CohortPlan) -> int:
        quota = quota_of(owner)
        return max(0, in_subtree(owner) - quota.lending_limit.gpus) if quota and quota.lending_limit is not None else 0

    def potential(owner: QueuePlan | CohortPlan) -> int:
        above = owner.parent if isinstance(owner, CohortPlan) else owner.cohort
        if above is None:
            return in_subtree(owner)
        most = kept(owner) + potential(cohorts[above])
        quota = quota_of(owner)
        return min(most, in_subtree(owner) + quota.borrowing_limit.gpus) if quota and quota.borrowing_limit is not None else most

    return potential(queue)
