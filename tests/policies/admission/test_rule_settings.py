"""An organisation's settings of rules have the same effect in the cluster as in lint: levels, parameters, locks and suppressions."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from admission_parity import agree, namespace_object, rule_messages, written
from cel_evaluator import judged
from manifests import idle_job
from program_declarations import plan_of

from flexspot.policies.admission.forms import all_forms
from flexspot.policies.admission.policy import AdmissionPolicy, admission_policies
from flexspot.policies.admission.scheduling_options import QUEUED, facts_of
from flexspot.policies.core import read_source
from flexspot.policies.inventory.reading.source import from_manifest
from flexspot.policies.judging import Settings, read_settings
from flexspot.policies.rules import all_rules

IDLE = "gpu-container-without-limit"


def settings(written_settings: dict[str, Any]) -> Settings:
    found = read_settings(written_settings, all_rules())
    assert not found.problems
    return found


def rules_by_policy(policies: tuple[AdmissionPolicy, ...]) -> dict[str, set[str]]:
    return {policy.name: {each.rule for each in policy.validations} for policy in policies}


def problems_of(manifest: dict[str, Any], configured: Settings, facts: dict[str, str] | None = None) -> dict[str, list[str]]:
    return problems_by(admission_policies(facts or {}, configured), manifest)


def problems_by(policies: tuple[AdmissionPolicy, ...], manifest: dict[str, Any]) -> dict[str, list[str]]:
    return {rule: found for policy in policies for rule, found in (judged(policy, manifest) or {}).items()}


def test_a_rule_refuses_or_warns_by_its_level_and_a_disabled_rule_is_absent() -> None:
    shipped = rules_by_policy(admission_policies({}))
    changed = rules_by_policy(
        admission_policies({}, settings({"image-not-pinned": "mandatory", IDLE: "advisory", "grace-exceeds-notice": {"level": "disabled"}}))
    )

    assert {"image-not-pinned"} <= shipped["flexspot-advice"]
    assert {IDLE, "grace-exceeds-notice"} <= shipped["flexspot"]
    assert changed["flexspot"] == shipped["flexspot"] - {IDLE, "grace-exceeds-notice"} | {"image-not-pinned"}
    assert changed["flexspot-advice"] == shipped["flexspot-advice"] - {"image-not-pinned"} | {IDLE}


def test_default_settings_give_the_shipped_policies() -> None:
    facts = facts_of(plan_of("prod-gke"))
    as_shipped = {form.rule.name: {"level": form.rule.level.value, "locked": False} for form in all_forms()}

    assert admission_policies(facts, settings(as_shipped)) == admission_policies(facts)


def test_a_policy_without_rules_is_omitted() -> None:
    every = {form.rule.name: "mandatory" for form in all_forms()}

    assert rules_by_policy(admission_policies({}, settings(every))).keys() == {"flexspot"}


PARAMETERS: dict[str, Any] = {
    "grace-exceeds-notice": {"gke-seconds": 20, "longest-seconds": 25, "kubernetes-default-seconds": 26},
    "job-dies-on-interruption": {"least-interruptions": 1},
    "job-without-queue": {"kinds": ["Pod"]},
    "missing-owner-labels": {"label-keys": ["app", "acme.com/owner"]},
    "image-not-pinned": {"moving-tags": ["1.0", "24.04-py3"], "allowed-registries": ["docker.io/"]},
    "compute-class-with-extra-selector": {"labels": ["acme.com/zone", "cloud.google.com/gke-spot"], "built-in-classes": ["ladder"]},
    "flex-job-over-seven-days": {"most-seconds": 3600},
    "gpu-container-above-maximum": {"most-gpus": 1},
    "checkpoint-on-ephemeral-volume": {"path-words": ["data", "it's"], "names": ["output-dir"], "kinds": ["Job", "Pod"]},
}


def test_every_parameter_of_a_rule_in_the_cluster_is_tested_here() -> None:
    with_parameters = {form.rule.name: {each.name for each in form.rule.parameters} for form in all_forms() if form.rule.parameters}
    # The facts contain the plan's notice of EC2.
    with_parameters["grace-exceeds-notice"] -= {"ec2-seconds"}

    assert with_parameters == {rule: set(values) for rule, values in PARAMETERS.items()}


@pytest.mark.slow
def test_every_fixture_gets_the_same_answer_from_lint_and_cluster_with_other_parameters() -> None:
    configured, moved = settings(PARAMETERS), set[str]()
    as_shipped, changed = admission_policies({}), admission_policies({}, configured)
    for each in written():
        namespace = [read_source(from_manifest(namespace_object(each.manifest, {})))]
        by_rules, by_forms = rule_messages(each.manifest, namespace, configured), problems_by(changed, each.manifest)

        assert agree(by_rules, by_forms), (each.name, by_rules, by_forms)
        before = problems_by(as_shipped, each.manifest)
        moved |= {rule for rule in PARAMETERS if bool(by_forms.get(rule)) != bool(before.get(rule))}
    # No single fixture shows an effect of these two. See the next test.
    assert moved >= {*PARAMETERS} - {"job-without-queue", "job-dies-on-interruption"}


def test_survived_interruptions_and_queued_kinds_can_be_configured() -> None:
    job = idle_job()
    job["spec"]["backoffLimit"] = 2
    job["spec"]["template"]["spec"] = {
        "nodeSelector": {"karpenter.sh/capacity-type": "spot"},
        "containers": [{"name": "train", "resources": {"limits": {"nvidia.com/gpu": 1}}}],
    }
    facts = {QUEUED: "true"}
    rules = {"job-dies-on-interruption", "job-without-queue"}

    def broken(changed: dict[str, Any]) -> set[str]:
        return {rule for rule, problems in problems_of(job, settings(changed), facts).items() if problems} & rules

    assert broken({}) == rules
    assert broken({"job-dies-on-interruption": {"least-interruptions": 2}}) == {"job-without-queue"}
    assert broken({"job-without-queue": {"kinds": ["JobSet"]}}) == {"job-dies-on-interruption"}


def test_settings_take_precedence_over_facts_of_the_platform() -> None:
    facts = dict(facts_of(plan_of("prod-eks")))
    job = idle_job()
    job["spec"]["template"]["spec"]["containers"] = [{"name": "train", "resources": {"limits": {"nvidia.com/gpu": 4}}}]

    def broken(**parameters: int) -> bool:
        return bool(problems_of(job, settings({"gpu-container-above-maximum": parameters}), facts)["gpu-container-above-maximum"])

    assert not broken()
    assert broken(**{"most-gpus": 3})
    assert not broken(**{"most-gpus": 4})


def test_a_locked_rule_cannot_be_suppressed_by_annotation_or_settings() -> None:
    job = idle_job(annotations={f"flexspot.dev/ignore-{IDLE}": "we know"})
    suppression = {"rule": IDLE, "object": "*", "reason": "we know"}

    assert not problems_of(job, settings({}))[IDLE]
    assert problems_of(job, settings({IDLE: {"locked": True}}))[IDLE]
    assert problems_of(idle_job(), settings({IDLE: {"locked": True}, "suppressions": [suppression]}))[IDLE]
    assert not problems_of(idle_job(), settings({"suppressions": [suppression]}))[IDLE]


@pytest.mark.parametrize(
    "objects",
    [
        *("*", "job", "jo?", "Job/job", "Job/team-a/job", "batch/v1/Job/team-a/job", "Job/team-*", "J*/j*", "Job/[st]eam-a/job", "[!x]ob"),
        *("Job/team-b/job", "Deployment/*", "ob", "jo", "batch/v1/Job", "Job/team.a/job", "[x]ob", "job\\", "it's", "j[ob", ""),
    ],
)
def test_suppressions_in_settings_cover_the_same_objects_as_in_lint(objects: str) -> None:
    written_one = {"rule": IDLE, "object": objects or "none", "reason": "we know"}
    configured = settings({"suppressions": [written_one]})

    assert bool(problems_of(idle_job(), configured)[IDLE]) == bool(rule_messages(idle_job(), [], configured)[IDLE])


@pytest.mark.parametrize("until,counts", [("2026-11-22", True), ("2026-11-21", False), ("2999-12-31", True)])
def test_a_suppression_in_settings_ends_with_its_last_day(until: str, counts: bool) -> None:  # noqa: FBT001 -- a column of the table
    made = idle_job(creationTimestamp="2026-11-22T10:00:00Z")
    written_one = {"rule": IDLE, "object": "Job/team-a/*", "reason": "we know", "until": until}
    configured = settings({"suppressions": [written_one]})

    assert bool(problems_of(made, configured)[IDLE]) is not counts
    on_that_day = Settings(suppressions=configured.suppressions, today=date(2026, 11, 22))
    assert bool(rule_messages(made, [], on_that_day)[IDLE]) is not counts
