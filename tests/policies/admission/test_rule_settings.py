"""What an organisation sets of rules counts in the cluster as it does for lint: levels, parameters, locks, accepted violations."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from admission_parity import agree, namespace_object, told_by_rules, written
from cel_evaluator import judged
from manifests import idle_job
from program_declarations import plan_of

from flexspot.policies.admission.forms import all_forms
from flexspot.policies.admission.policy import AdmissionPolicy, admission_policies
from flexspot.policies.admission.scheduling_options import facts_of
from flexspot.policies.core import read_source
from flexspot.policies.inventory.reading.source import from_manifest
from flexspot.policies.judging import Settings, read_settings
from flexspot.policies.rules import all_rules

IDLE = "gpu-container-without-limit"


def settings(written_settings: dict[str, Any]) -> Settings:
    found = read_settings(written_settings, all_rules())
    assert not found.problems
    return found


def held(policies: tuple[AdmissionPolicy, ...]) -> dict[str, set[str]]:
    return {policy.name: {each.rule for each in policy.validations} for policy in policies}


def told(manifest: dict[str, Any], configured: Settings, facts: dict[str, str] | None = None) -> dict[str, list[str]]:
    return told_by(admission_policies(facts or {}, configured), manifest)


def told_by(policies: tuple[AdmissionPolicy, ...], manifest: dict[str, Any]) -> dict[str, list[str]]:
    return {rule: found for policy in policies for rule, found in (judged(policy, manifest) or {}).items()}


def test_a_rule_refuses_or_advises_by_its_level_and_one_that_is_disabled_is_not_there() -> None:
    shipped = held(admission_policies({}))
    changed = held(
        admission_policies({}, settings({"image-not-pinned": "mandatory", IDLE: "advisory", "grace-exceeds-notice": {"level": "disabled"}}))
    )

    assert {"image-not-pinned"} <= shipped["flexspot-advice"]
    assert {IDLE, "grace-exceeds-notice"} <= shipped["flexspot"]
    assert changed["flexspot"] == shipped["flexspot"] - {IDLE, "grace-exceeds-notice"} | {"image-not-pinned"}
    assert changed["flexspot-advice"] == shipped["flexspot-advice"] - {"image-not-pinned"} | {IDLE}


def test_where_nothing_is_set_the_policies_are_the_shipped_ones() -> None:
    facts = facts_of(plan_of("prod-gke"))
    as_shipped = {form.rule.name: {"level": form.rule.level.value, "locked": False} for form in all_forms()}

    assert admission_policies(facts, settings(as_shipped)) == admission_policies(facts)


def test_a_level_of_all_rules_leaves_a_policy_without_rules_out() -> None:
    every = {form.rule.name: "mandatory" for form in all_forms()}

    assert held(admission_policies({}, settings(every))).keys() == {"flexspot"}


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


def test_every_parameter_of_a_rule_in_the_cluster_is_tried_here() -> None:
    with_parameters = {form.rule.name: {each.name for each in form.rule.parameters} for form in all_forms() if form.rule.parameters}
    # What the plan says of EC2's notice stands in the facts.
    with_parameters["grace-exceeds-notice"] -= {"ec2-seconds"}

    assert with_parameters == {rule: set(values) for rule, values in PARAMETERS.items()}


@pytest.mark.slow
def test_every_fixture_gets_the_same_answer_from_lint_and_cluster_with_other_parameters() -> None:
    configured, moved = settings(PARAMETERS), set[str]()
    as_shipped, changed = admission_policies({}), admission_policies({}, configured)
    for each in written():
        namespace = [read_source(from_manifest(namespace_object(each.manifest, {})))]
        by_rules, by_forms = told_by_rules(each.manifest, namespace, configured), told_by(changed, each.manifest)

        assert agree(by_rules, by_forms), (each.name, by_rules, by_forms)
        before = told_by(as_shipped, each.manifest)
        moved |= {rule for rule in PARAMETERS if bool(by_forms.get(rule)) != bool(before.get(rule))}
    # Of these two no fixture tells by itself: see below.
    assert moved >= {*PARAMETERS} - {"job-without-queue", "job-dies-on-interruption"}


def test_how_many_interruptions_a_job_survives_and_which_kinds_wait_in_queues_is_the_organisations_too() -> None:
    job = idle_job()
    job["spec"]["backoffLimit"] = 2
    job["spec"]["template"]["spec"] = {
        "nodeSelector": {"karpenter.sh/capacity-type": "spot"},
        "containers": [{"name": "train", "resources": {"limits": {"nvidia.com/gpu": 1}}}],
    }
    facts = {"queue.team-a.gpus": ""}
    rules = {"job-dies-on-interruption", "job-without-queue"}

    def broken(changed: dict[str, Any]) -> set[str]:
        return {rule for rule, said in told(job, settings(changed), facts).items() if said} & rules

    assert broken({}) == rules
    assert broken({"job-dies-on-interruption": {"least-interruptions": 2}}) == {"job-without-queue"}
    assert broken({"job-without-queue": {"kinds": ["JobSet"]}}) == {"job-dies-on-interruption"}


def test_what_an_organisation_sets_goes_before_what_its_platform_has() -> None:
    facts = dict(facts_of(plan_of("prod-eks")))
    job = idle_job()
    job["spec"]["template"]["spec"]["containers"] = [{"name": "train", "resources": {"limits": {"nvidia.com/gpu": 4}}}]

    def broken(**parameters: int) -> bool:
        return bool(told(job, settings({"gpu-container-above-maximum": parameters}), facts)["gpu-container-above-maximum"])

    assert not broken()
    assert broken(**{"most-gpus": 3})
    assert not broken(**{"most-gpus": 4})


def test_a_locked_rule_is_not_suppressed_by_whom_it_binds() -> None:
    job = idle_job(annotations={f"flexspot.dev/ignore-{IDLE}": "we know"})
    suppression = {"rule": IDLE, "object": "*", "reason": "we know"}

    assert not told(job, settings({}))[IDLE]
    assert told(job, settings({IDLE: {"locked": True}}))[IDLE]
    assert told(idle_job(), settings({IDLE: {"locked": True}, "suppressions": [suppression]}))[IDLE]
    assert not told(idle_job(), settings({"suppressions": [suppression]}))[IDLE]


@pytest.mark.parametrize(
    "objects",
    [
        *("*", "job", "jo?", "Job/job", "Job/team-a/job", "batch/v1/Job/team-a/job", "Job/team-*", "J*/j*", "Job/[st]eam-a/job", "[!x]ob"),
        *("Job/team-b/job", "Deployment/*", "ob", "jo", "batch/v1/Job", "Job/team.a/job", "[x]ob", "job\\", "it's", "j[ob", ""),
    ],
)
def test_what_the_settings_accept_is_accepted_of_the_same_objects_as_by_lint(objects: str) -> None:
    written_one = {"rule": IDLE, "object": objects or "none", "reason": "we know"}
    configured = settings({"suppressions": [written_one]})

    assert bool(told(idle_job(), configured)[IDLE]) == bool(told_by_rules(idle_job(), [], configured)[IDLE])


@pytest.mark.parametrize("until,counts", [("2026-11-22", True), ("2026-11-21", False), ("2999-12-31", True)])
def test_what_the_settings_accept_ends_with_its_last_day(until: str, counts: bool) -> None:  # noqa: FBT001 -- a column of the table
    made = idle_job(creationTimestamp="2026-11-22T10:00:00Z")
    written_one = {"rule": IDLE, "object": "Job/team-a/*", "reason": "we know", "until": until}
    configured = settings({"suppressions": [written_one]})

    assert bool(told(made, configured)[IDLE]) is not counts
    on_that_day = Settings(suppressions=configured.suppressions, today=date(2026, 11, 22))
    assert bool(told_by_rules(made, [], on_that_day)[IDLE]) is not counts
