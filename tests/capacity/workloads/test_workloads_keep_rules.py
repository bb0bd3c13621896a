"""Everything that is rendered satisfies every rule, together with all objects that the program declares for its stack."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from autopilot_settings import autopilot_settings
from cel_evaluator import judged
from planted_defects import resources_of
from service_plans import JUPYTER, QUEUES, SERVER, standing_plan
from workload_plans import IMAGE, STACKS, plan_of, pod_specs

from flexspot.capacity.catalog.node_labels import QUEUE_LABEL, TEAM_LABEL
from flexspot.capacity.catalog.platform import Platform
from flexspot.capacity.plan.build import build_plan
from flexspot.capacity.settings.stack_file import parse_settings
from flexspot.capacity.values.verdict import Verdict
from flexspot.capacity.workloads.kinds import objects_of
from flexspot.capacity.workloads.requests import SERVICE_ACCOUNT, WorkloadError
from flexspot.policies.admission.guarantee import guarantee_of, guarantee_policies
from flexspot.policies.admission.scheduling_options import team_annotations
from flexspot.policies.core import judge_all
from flexspot.policies.inventory.reading.source import from_manifest, from_pulumi
from flexspot.policies.judging import DEFAULTS
from flexspot.policies.rules import all_rules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flexspot.capacity.plan.model import Plan
    from flexspot.capacity.workloads.pods import KubeObject

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


SERVICES: dict[str, list[dict[str, Any]]] = {
    "queue-workers": [{"image": SERVER}, {"image": SERVER, "keda": True}],
    "model-server": [
        {"image": SERVER, "replicas": 1},
        {"image": SERVER, "max_replicas": 3, "callers": ["gateway"], "model_cache": "weights"},
    ],
    "notebook": [{"image": JUPYTER}],
    "model-cache": [{"name": "weights", "bucket": "acme-models"}],
}


def jobs(plan: Plan) -> Iterator[KubeObject]:
    """Yield the jobs of each kind, in several shapes, that each team of the stack can have in each class."""
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


def services(plan: Plan) -> Iterator[KubeObject]:
    """Yield the services of each kind that a team with services, or else any team, can have in each class. A cache has no class."""
    team = max(plan.teams, key=lambda each: each.unqueued_gpus)
    for route, (kind, shapes) in product(plan.routes, SERVICES.items()):
        for number, shape in enumerate(shapes):
            fields = {"name": f"{kind.rpartition('-')[2]}-{route.workload_class}-{number}", "team": team.name, **shape}
            fields |= {} if kind == "model-cache" else {"workload_class": route.workload_class}
            if plan.cloud is Platform.LOCAL:
                fields.pop("model_cache", None)
            fields |= {"queue": QUEUES[plan.cloud.value]} if kind == "queue-workers" else {}
            try:
                made = objects_of(plan, kind, fields)
            except WorkloadError:
                continue
            yield from made
            # No rule reads KEDA's kind, so the objects that it will create are judged.
            scaled = [each for each in made if each["kind"] == "ScaledJob"]
            yield from ({**each, "apiVersion": "batch/v1", "kind": "Job", "spec": each["spec"]["jobTargetRef"]} for each in scaled)


def broken(made: list[KubeObject], stack: str | None) -> tuple[set[tuple[str, str]], set[str]]:
    """Return the failed or undecided findings, and the rules that passed."""
    platform = [from_pulumi(kind, name, inputs) for name, (kind, inputs) in resources_of(stack).items()] if stack else []
    found_of = judge_all([*platform, *map(from_manifest, made)], all_rules(), DEFAULTS, closed=True)[len(platform) :]
    found = [each for of_one in found_of for each in of_one]
    bad = {(each.rule, each.message) for each in found if each.verdict in {Verdict.FAIL, Verdict.UNKNOWN}}
    return bad, {each.rule for each in found if each.verdict is Verdict.PASS}


@pytest.mark.slow
@pytest.mark.parametrize("stack", STACKS)
def test_every_job_that_can_be_rendered_keeps_every_rule_and_nothing_is_undecided(stack: str) -> None:
    made = list(jobs(plan_of(stack)))

    bad, held = broken(made, stack)

    assert bad == set()
    assert len(made) >= 16
    assert held >= {"job-without-queue", "job-dies-on-interruption", "missing-owner-labels", "image-not-pinned", "unknown-field"}
    assert held >= {"restart-policy-forbids-failure-policy", "grace-exceeds-notice", "gpu-container-without-limit"}


@pytest.mark.slow
@pytest.mark.parametrize("stack", STACKS)
def test_every_service_of_a_shipped_stack_keeps_every_rule(stack: str) -> None:
    made = list(services(plan_of(stack)))

    bad, held = broken(made, stack)

    # No rule resolves the pools of a compute class, so the grace period of its pods remains undecided.
    assert {(rule, message) for rule, message in bad if (stack, rule) != ("prod-gke", "grace-exceeds-notice")} == set()
    assert all("where it runs is not known" in message for _, message in bad)
    assert held >= {"job-without-queue", "missing-owner-labels", "image-not-pinned", "unknown-field", "grace-exceeds-notice"}
    assert {each["kind"] for each in made} >= {"Job", "CronJob", "ScaledJob", "TriggerAuthentication", "PersistentVolumeClaim", "Service"}


def test_rules_recognize_the_idle_limit_and_the_single_pod_of_a_deployed_notebook() -> None:
    bad, held = broken([each for each in services(standing_plan()) if each["kind"] in {"Deployment", "PersistentVolumeClaim"}], None)

    assert bad == set()
    assert "interactive-gpu-without-idle-limit" in held


@pytest.mark.slow
@pytest.mark.parametrize("rendered,kinds", [(jobs, {"Job", "JobSet"}), (services, {"Job", "CronJob"})])
@pytest.mark.parametrize("stack", [*STACKS, "autopilot"])
def test_a_member_may_submit_everything_that_can_be_rendered(
    stack: str, rendered: Callable[[Plan], Iterator[KubeObject]], kinds: set[str]
) -> None:
    """Admission rejects none of it, whoever submits it."""
    plan = build_plan(parse_settings(autopilot_settings(), stack)) if stack == "autopilot" else plan_of(stack)
    comes, *_ = guarantee_policies(guarantee_of(plan))
    read = {team.name: team_annotations(plan, team) for team in plan.teams}

    def answer(each: KubeObject) -> dict[str, list[str]] | None:
        team = each["metadata"]["labels"][TEAM_LABEL]
        return judged(comes, each, namespace_labels={TEAM_LABEL: team}, namespace_annotations=read[team])

    answers = [(each, answer(each)) for each in rendered(plan)]

    asked = [(each, found) for each, found in answers if found is not None]
    assert {each["kind"] for each, _ in asked} >= kinds
    assert rendered is services or {each["metadata"]["labels"][QUEUE_LABEL] for each, _ in asked} == {"cpu", "default"}
    assert [(each["kind"], each["metadata"]["name"], found) for each, found in asked if any(found.values())] == []


@pytest.mark.parametrize("stack", STACKS)
def test_every_pod_that_can_be_rendered_acts_as_the_teams_own_account_and_asks_for_no_kubernetes_token(stack: str) -> None:
    plan = plan_of(stack)
    pods = [pod for made in (*jobs(plan), *services(plan)) for pod in pod_specs(made)]

    assert pods
    assert {(pod.get("serviceAccountName"), pod.get("automountServiceAccountToken")) for pod in pods} == {(SERVICE_ACCOUNT, False)}
