"""From settings to plan: labels, taints, quotas and ceilings that agree, and the disagreements that are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from capacity.plan import FlavorQuota, Plan, Taint
from capacity.planning import build_plan
from capacity.settings import ClassSettings, PlatformSettings, PoolSettings, TeamSettings
from capacity.stack_file import SettingsError, read_stack_file

LOCAL = Path(__file__).resolve().parents[2] / "stacks" / "Pulumi.local.yaml"


@pytest.fixture
def local() -> PlatformSettings:
    return read_stack_file(LOCAL)


def changed(settings: PlatformSettings, **changes: object) -> PlatformSettings:
    return settings.model_copy(update=changes)


def pool(settings: PlatformSettings, number: int, **changes: object) -> tuple[PoolSettings, ...]:
    pools = list(settings.pools)
    pools[number] = pools[number].model_copy(update=changes)
    return tuple(pools)


def told(settings: PlatformSettings) -> list[str]:
    with pytest.raises(SettingsError) as refused:
        build_plan(settings)
    return [str(problem) for problem in refused.value.problems]


def plan_of(settings: PlatformSettings) -> Plan:
    return build_plan(settings)


def test_only_queued_pools_become_flavors_and_their_labels_are_the_pools_own(local: PlatformSettings) -> None:
    plan = plan_of(local)

    assert [flavor.name for flavor in plan.flavors] == ["l4-spot"]
    [spot] = [each for each in plan.pools if each.name == "l4-spot"]
    assert plan.flavors[0].node_labels == spot.labels == {"karpenter.sh/capacity-type": "spot", "karpenter.k8s.aws/instance-gpu-name": "l4"}
    assert plan.flavors[0].tolerated == spot.taints


def test_every_gpu_pool_is_tainted_and_one_that_serves_one_class_says_which(local: PlatformSettings) -> None:
    spot, on_demand = plan_of(local).pools

    assert spot.taints == (Taint("nvidia.com/gpu", "present"),), "classes that share a pool would keep each other out"
    assert on_demand.taints == (Taint("nvidia.com/gpu", "present"), Taint("flexspot.dev/class", "inference"))


def test_a_share_of_gpus_comes_with_the_machines_cpu_and_memory(local: PlatformSettings) -> None:
    alpha, _ = plan_of(local).queues

    assert alpha.quotas == (FlavorQuota("l4-spot", gpus=2, vcpu=8, memory_mib=32768),)


def test_a_teams_ceiling_counts_what_it_may_borrow_and_what_no_queue_gives_away(local: PlatformSettings) -> None:
    assert [team.max_gpus for team in plan_of(local).teams] == [4 + 2, 4 + 2]


def test_the_shares_of_a_flavor_never_exceed_its_pool(local: PlatformSettings) -> None:
    teams = (*local.teams, TeamSettings(name="team-gamma", shares={"l4-spot": 1}))

    assert told(changed(local, teams=teams)) == [
        "teams: the teams' shares of pool l4-spot add up to 5 GPUs, but its ceiling is 4; lower the shares, or raise max_nodes of the pool"
    ]


@pytest.mark.parametrize("kind", ["pools", "classes", "teams"])
def test_names_are_unique(kind: str, local: PlatformSettings) -> None:
    first = getattr(local, kind)[0]

    problems = told(changed(local, **{kind: (*getattr(local, kind), first)}))

    assert any(problem.startswith(f"{kind} (is '{first.name}'): stands twice") for problem in problems)


def test_a_machine_outside_the_catalog_is_refused_with_the_nearest(local: PlatformSettings) -> None:
    [problem] = told(changed(local, pools=pool(local, 0, machine="g6.xlrge")))

    assert problem.startswith("pools.0.machine (is 'g6.xlrge'): is not a machine of the catalog; did you mean g6.xlarge? allowed: ")


def test_a_pool_serves_classes_that_exist(local: PlatformSettings) -> None:
    [problem] = told(changed(local, pools=pool(local, 0, serves=("trainning",))))[:1]

    assert problem.startswith("pools.0.serves (is 'trainning'): is not a class of these settings; did you mean training?")


def test_a_pool_does_not_mix_queued_and_unqueued_classes(local: PlatformSettings) -> None:
    assert "pools.1.serves (is inference, training): mixes queued and unqueued classes; split the pool" in told(
        changed(local, pools=pool(local, 1, serves=("inference", "training")))
    )


def test_two_queued_pools_that_kueue_could_not_tell_apart_are_refused(local: PlatformSettings) -> None:
    twin = local.pools[0].model_copy(update={"name": "l4-spot-2"})

    [problem] = told(changed(local, pools=(*local.pools, twin)))

    assert "has the same labels (l4, spot) as queued pool l4-spot" in problem


def test_a_share_is_of_a_pool_that_serves_a_queue(local: PlatformSettings) -> None:
    teams = (TeamSettings(name="red", shares={"l4-on-demand": 1}),)

    assert told(changed(local, teams=teams)) == ["teams.0.shares.l4-on-demand: is not a pool that serves a queued class; allowed: l4-spot"]


def test_several_disagreements_are_told_at_once(local: PlatformSettings) -> None:
    classes = (*local.classes, ClassSettings(name="extra", priority_class="gpu-training", priority=1, queued=True, description="x"))

    assert len(told(changed(local, classes=classes, pools=pool(local, 0, machine="h100")))) == 2
