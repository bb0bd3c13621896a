"""The rules in Python and CEL give the same verdicts and messages, for incomplete objects and all platforms."""

from __future__ import annotations

import copy
import itertools
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from admission_parity import (
    Manifest,
    agree,
    namespace_object,
    namespace_of,
    rule_messages,
    rule_messages_of_each,
    without_one_field,
    written,
)
from cel_evaluator import judged
from manifests import job, manifest, queues
from program_declarations import as_shipped, plan_of
from stack_readings import readings_of

from flexspot.capacity.catalog.platform import Platform
from flexspot.policies.admission.policy import admission_policies
from flexspot.policies.admission.scheduling_options import LABEL, MOST_GPUS, POD_SIZES, QUEUED, QUEUES, VIA, WAY, facts_of, team_annotations
from flexspot.policies.core import read_source
from flexspot.policies.inventory.pod_gpus import SYSTEM_NAMESPACE
from flexspot.policies.inventory.reading.source import from_manifest
from flexspot.policies.judging import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from flexspot.capacity.plan.model import Plan, RoutePlan
    from flexspot.policies.admission.policy import AdmissionPolicy
    from flexspot.policies.core import Reading

pytestmark = pytest.mark.slow

LOCAL = pytest.mark.nightly(tested_by="test_work_of_a_team_gets_the_verdicts_of_lint_with_all_objects_of_the_stack")
STACKS = (pytest.param("local", marks=LOCAL), "prod-gke", "prod-eks")


WITHOUT_FACTS = admission_policies({})
"""Policies without facts about pools and queues."""


def problems_by_forms(manifest: Manifest, policies: Sequence[AdmissionPolicy] = WITHOUT_FACTS, **known: Any) -> dict[str, list[str]]:
    return {rule: found for policy in policies for rule, found in (judged(policy, manifest, **known) or {}).items()}


def namespace_labels(stack: str, namespace: str) -> dict[str, str]:
    made = [each["metadata"] for each in as_shipped(stack).inputs_of("kubernetes:core/v1:Namespace")]
    return next(each["labels"] for each in made if each["name"] == namespace)


ONE_BY_ONE = (
    "checkpoint-on-ephemeral-volume",
    "compute-class-with-extra-selector",
    "gpu-container-above-maximum",
    "gpu-container-without-limit",
    "grace-exceeds-notice",
    "image-not-pinned",
    "job-dies-on-interruption",
    "missing-owner-labels",
    "quota-key-never-enforced",
)
"""Rules whose fixtures together contain every kind and every field that forms read."""

OFTEN = pytest.mark.nightly(tested_by="test_an_object_gets_the_same_verdicts_with_and_without_each_field")
OTHERS = [pytest.param(rule, marks=OFTEN) for rule in sorted({each.rule for each in written()} - {*ONE_BY_ONE})]


@pytest.mark.parametrize("rule", [*ONE_BY_ONE, *OTHERS])
def test_an_object_gets_the_same_verdicts_with_and_without_each_field(rule: str) -> None:
    for each in written():
        if each.rule == rule:
            namespace = [read_source(from_manifest(namespace_object(each.manifest, {})))]
            judged_at_all = bool(problems_by_forms(each.manifest))
            for missing, manifest in [("", each.manifest), *(without_one_field(each.manifest) if judged_at_all else ())]:
                among = namespace if namespace_of(manifest) == namespace_of(each.manifest) else default_namespace()

                by_rules, by_forms = rule_messages(manifest, among), problems_by_forms(manifest)

                assert agree(by_rules, by_forms), (each.name, missing, by_rules, by_forms)


@cache
def default_namespace() -> list[Reading]:
    return [read_source(from_manifest(namespace_object({"metadata": {}}, {})))]


def jobs_of(plan: Plan) -> Iterator[Manifest]:
    """Yield Jobs of every class of a plan, and Jobs that name Spot themselves, with numbers on both sides of each limit."""
    spot = {"cloud.google.com/gke-spot": "true"} if plan.cloud is Platform.GKE else {"karpenter.sh/capacity-type": "spot"}
    placed = [(route.priority_class, placement(route)) for route in plan.routes]
    placed += [("", {"nodeSelector": spot}), ("", {"nodeSelector": {**spot, "example.com/unheard-of": "yes"}}), ("", {})]
    numbers = itertools.product((15, 16, 90, 91, 105, 106, 121, None), (2, 3))
    for (priority, where), queue, (grace, limit) in itertools.product(placed, ("default", "none-such", None), numbers):
        spec = {"backoffLimit": limit, "template": {"spec": {**where, "terminationGracePeriodSeconds": grace}}}
        yield planned_job(plan, spec, priority=priority, queue=queue, gpus=1)
    for (priority, where), queue, seconds in itertools.product(placed, ("default", None), (604_800, 604_801)):
        yield planned_job(plan, {"activeDeadlineSeconds": seconds, "template": {"spec": where}}, priority=priority, queue=queue, gpus=1)
    for (priority, where), gpus in itertools.product(placed, (1, 2, 3, 8, 9, 16, 17)):
        yield planned_job(plan, {"template": {"spec": where}}, priority=priority, queue="default", gpus=gpus)


def placement(route: RoutePlan) -> Manifest:
    pod: Manifest = {
        "nodeSelector": route.node_selector,
        "tolerations": [{"key": each.key, "value": each.value, "effect": each.effect.value} for each in route.tolerations],
    }
    if route.node_affinity is not None:
        key, values = route.node_affinity
        terms = [{"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}]
        pod["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    return pod


def planned_job(plan: Plan, spec: Manifest, *, priority: str, queue: str | None, gpus: int) -> Manifest:
    container = {"name": "train", "resources": {"limits": {"nvidia.com/gpu": gpus}}}
    pod = {**spec["template"]["spec"], "containers": [container], **({"priorityClassName": priority} if priority else {})}
    labels = {} if queue is None else {"kueue.x-k8s.io/queue-name": queue}
    whole = {**spec, "template": {"spec": {key: value for key, value in pod.items() if value is not None}}}
    known = {key: value for key, value in whole.items() if value is not None}
    return manifest("batch/v1", "Job", known, namespace=plan.teams[0].namespace, labels=labels)


def in_namespace(manifest: Manifest, namespace: str) -> Manifest:
    moved = copy.deepcopy(manifest)
    if moved["metadata"].get("namespace") != SYSTEM_NAMESPACE:
        moved["metadata"]["namespace"] = namespace
    return moved


@pytest.mark.parametrize("stack", STACKS)
def test_work_of_a_team_gets_the_verdicts_of_lint_with_all_objects_of_the_stack(stack: str) -> None:
    plan, among = plan_of(stack), readings_of(stack)
    facts, team = facts_of(plan), plan.teams[0].namespace
    policies = admission_policies(facts)
    broken: set[str] = set()
    sent = [*jobs_of(plan), *(in_namespace(each.manifest, team) for each in written())]
    labels, read = namespace_labels(stack, team), team_annotations(plan, plan.teams[0])
    for most, manifests in by_most_gpus(sent, facts).items():
        settings = Settings(values={"gpu-container-above-maximum": {MOST_GPUS: most}})
        for each, by_rules in zip(manifests, rule_messages_of_each(manifests, among, settings), strict=True):
            by_forms = problems_by_forms(each, policies, namespace_labels=labels, namespace_annotations=read)

            assert agree(by_rules, by_forms), (each, by_rules, by_forms)
            broken |= {name for name, problems in by_rules.items() if problems}
    assert {"grace-exceeds-notice", "job-dies-on-interruption", "gpu-container-above-maximum", "flex-job-over-seven-days"} <= broken


def by_most_gpus(manifests: Sequence[Manifest], facts: Mapping[str, str]) -> dict[int, list[Manifest]]:
    """Return the objects by the number of GPUs that a container of their class may have."""
    found: dict[int, list[Manifest]] = {}
    for each in manifests:
        found.setdefault(int(facts.get(f"{MOST_GPUS}.{pod_priority(each)}", facts[MOST_GPUS])), []).append(each)
    return found


def through_a_flavor(labels: dict[str, str], pod: Manifest, **spec: Any) -> tuple[Manifest, list[Reading], dict[str, str]]:
    """Return a Job whose queue gives it a flavor with these labels, the other objects, and the policies' facts about these."""
    sent = job(labels={"kueue.x-k8s.io/queue-name": "gpus"}, spec=spec, **pod)
    objects = queues("nvidia.com/gpu", nodeLabels=labels)
    lines = ["NodePool rung", "flavor ladder", "0", "", *(f"{word}{key}={each}" for word in (LABEL, VIA) for key, each in labels.items())]
    facts = {f"{WAY}ladder.rung": "\n".join(lines), QUEUED: "true"}
    return sent, [read_source(from_manifest(each)) for each in objects], facts


COMPUTE_CLASS = {"cloud.google.com/compute-class": "ladder"}
OF_FAMILY, FLEX_START = {**COMPUTE_CLASS, "cloud.google.com/machine-family": "a3"}, {"cloud.google.com/gke-flex-start": "true"}


@pytest.mark.parametrize(
    "rule,labels,pod,spec",
    [
        ("compute-class-with-extra-selector", COMPUTE_CLASS, {"nodeSelector": {"cloud.google.com/gke-spot": "true"}}, {}),
        ("compute-class-with-extra-selector", OF_FAMILY, {}, {}),
        ("flex-job-over-seven-days", FLEX_START, {}, {"activeDeadlineSeconds": 700_000}),
    ],
)
def test_additions_of_a_queue_are_judged_in_the_same_words(rule: str, labels: dict[str, str], pod: Manifest, spec: dict[str, Any]) -> None:
    sent, among, facts = through_a_flavor(labels, pod, **spec)

    problems = rule_messages(sent, among)[rule]

    assert len(problems) == 1
    assert "flavor ladder" in problems[0]
    read = {QUEUES: "gpus=ladder.rung"}
    assert problems_by_forms(sent, admission_policies(facts), namespace_annotations=read)[rule] == problems


def pod_priority(manifest: Manifest) -> str:
    return str(manifest.get("spec", {}).get("template", {}).get("spec", {}).get("priorityClassName", ""))


def test_each_rule_has_an_object_that_breaks_it() -> None:
    broken = {name for each in written() for name, problems in problems_by_forms(each.manifest).items() if problems}

    # Without the facts of a platform no queue is known.
    assert {validation.rule for policy in WITHOUT_FACTS for validation in policy.validations} - broken == {"job-without-queue"}


def test_a_teams_namespace_has_the_numbers_of_gpus_that_its_queued_pods_may_have() -> None:
    plan = plan_of("prod-gke")

    sizes = {team.name: team_annotations(plan, team)[POD_SIZES] for team in plan.teams}
    assert sizes == {"ads": "1", "nlp": "1 whole-4 whole-8", "search": "1 whole-8", "vision": "1 whole-4 whole-8"}
