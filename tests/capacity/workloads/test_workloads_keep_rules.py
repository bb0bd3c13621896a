"""Every rule holds for everything that is rendered, beside all that the program declares for the stack that it is rendered for."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from cel_evaluator import judged
from planted_defects import resources_of
from workload_plans import IMAGE, STACKS, plan_of, pod_specs

from capacity.catalog.node_labels import TEAM_LABEL
from capacity.catalog.work_labels import QUEUE_LABEL
from capacity.values.verdict import Verdict
from capacity.workloads.kinds import objects_of
from capacity.workloads.requests import SERVICE_ACCOUNT, WorkloadError
from policies.admission.guarantee import guarantee_of, guarantee_policies
from policies.core import judge_all
from policies.inventory.reading.source import from_manifest, from_pulumi
from policies.judging import DEFAULTS
from policies.rules import all_rules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from capacity.workloads.pods import KubeObject

KINDS_ASKED = {"Job", "JobSet"}

OWN_INPUTS: dict[str, Any] = {
    "secrets": {"WANDB_API_KEY": {"secret": "wandb", "key": "token"}},
    "config_maps": {"LEVEL": {"config_map": "logging", "key": "level"}},
    "env_from": [{"config_map": "tuning", "prefix": "TUNE_"}, {"secret": "hub", "prefix": "HF_"}],
    "volumes": {"/data": {"claim": "corpus", "read_only": True}, "/etc/tuning": {"config_map": "tuning"}, "/keys": {"secret": "hub"}},
    "image_pull_secrets": ["registry"],
    "resources": {"ephemeral-storage": "200Gi"},
}

SHAPES: tuple[dict[str, Any], ...] = (
    {},
    {"pods": 2},
    {"pods": 2, "jobset": True},
    {"capacity": ["spot"], "grace_seconds": 10},
    {"gpu_memory_gb": 24},
    OWN_INPUTS,
)


def rendered(stack: str) -> Iterator[KubeObject]:
    """The jobs of each kind that each team of the stack can have of each class, in several shapes."""
    plan = plan_of(stack)
    kinds = ("checkpointed-job", "queued-job", "flex-start-job")
    for team, route, kind, (number, shape) in product(plan.teams, plan.routes, kinds, enumerate(SHAPES)):
        largest = max(pool.gpus_per_node for pool in plan.pools if any(route_pool.pool == pool.name for route_pool in route.pools))
        for gpus in sorted({0, 1, largest}):
            name = f"{kind.partition('-')[0]}-{route.workload_class}-{gpus}-{number}"
            fields = {"name": name, "team": team.name, "workload_class": route.workload_class, "image": IMAGE, "gpus": gpus, **shape}
            try:
                yield from objects_of(plan, kind, fields)
            except WorkloadError:
                continue


@pytest.mark.slow
@pytest.mark.parametrize("stack", STACKS)
def test_everything_that_can_be_rendered_keeps_every_rule_and_nothing_is_undecided(stack: str) -> None:
    made = list(rendered(stack))
    platform = [from_pulumi(kind, name, inputs) for name, (kind, inputs) in resources_of(stack).items()]

    found_of = judge_all([*platform, *map(from_manifest, made)], all_rules(), DEFAULTS, closed=True)[len(platform) :]

    broken = {(each.rule, each.message) for found in found_of for each in found if each.verdict in {Verdict.FAIL, Verdict.UNKNOWN}}
    assert broken == set()
    assert len(made) >= 16
    held = {each.rule for found in found_of for each in found if each.verdict is Verdict.PASS}
    assert held >= {"job-without-queue", "job-dies-on-interruption", "missing-owner-labels", "image-not-pinned", "unknown-field"}
    assert held >= {"restart-policy-forbids-failure-policy", "grace-exceeds-notice", "gpu-container-without-limit"}


@pytest.mark.slow
@pytest.mark.parametrize("stack", STACKS)
def test_a_member_may_submit_everything_that_can_be_rendered(stack: str) -> None:
    """The guarantee refuses none of it, whoever sends it."""
    comes, *_ = guarantee_policies(guarantee_of(plan_of(stack)))
    answers = [
        (each, judged(comes, each, namespace_labels={TEAM_LABEL: each["metadata"]["labels"][TEAM_LABEL]})) for each in rendered(stack)
    ]

    asked = [(each, found) for each, found in answers if found is not None]
    assert {each["metadata"]["labels"][QUEUE_LABEL] for each, _ in asked} == {"cpu", "default"}
    assert {each["kind"] for each, _ in asked} >= KINDS_ASKED
    assert [(each["kind"], each["metadata"]["name"], found) for each, found in asked if any(found.values())] == []


@pytest.mark.parametrize("stack", STACKS)
def test_every_pod_that_can_be_rendered_acts_as_the_teams_own_account_and_asks_for_no_kubernetes_token(stack: str) -> None:
    pods = [pod for made in rendered(stack) for pod in pod_specs(made)]

    assert pods
    assert {(pod.get("serviceAccountName"), pod.get("automountServiceAccountToken")) for pod in pods} == {(SERVICE_ACCOUNT, False)}
