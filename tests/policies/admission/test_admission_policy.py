"""Requests for which policies are evaluated, and the resulting messages."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest
from cel_evaluator import judged
from manifests import Manifest, idle_job, manifest

from flexspot.policies.admission.cel import text
from flexspot.policies.admission.policy import KEYS, PATCHES, AdmissionPolicy, admission_policies, labelled
from flexspot.policies.admission.variables import MODULES, TEXT
from flexspot.policies.judging import Level
from flexspot.policies.own_rules.evaluation import CelError, evaluate
from flexspot.policies.rules import all_rules

STOPS, ADVISES = admission_policies({})


def owned_by(api_version: str, kind: str, *, controller: bool = True) -> Manifest:
    owner = {"apiVersion": api_version, "kind": kind, "name": "its-owner", "uid": "1", "controller": controller}
    return idle_job(ownerReferences=[owner])


def broken(policy: AdmissionPolicy, written: Manifest, old: Manifest | None = None) -> set[str] | None:
    found = judged(policy, written, old=old)
    return None if found is None else {rule for rule, problems in found.items() if problems}


def test_mandatory_and_advisory_rules_are_two_policies() -> None:
    levels = {rule.name: rule.level for rule in all_rules()}

    assert (STOPS.name, STOPS.stops, ADVISES.name, ADVISES.stops) == ("flexspot", True, "flexspot-advice", False)
    assert {levels[each.rule] for each in STOPS.validations} == {Level.MANDATORY}
    assert {levels[each.rule] for each in ADVISES.validations} == {Level.ADVISORY}


def test_a_message_is_of_one_line_and_names_rule_code_and_remedy() -> None:
    [validation] = [each for each in STOPS.validations if each.rule == "gpu-container-without-limit"]
    problem = "spec.template.spec: container a requests nvidia.com/gpu. To fix it: do not"

    message = evaluate(validation.message_expression, variables={validation.problems: [problem]})

    assert message == f"gpu-container-without-limit (FLX003): {problem}"
    assert all("\n" not in each.message for policy in (STOPS, ADVISES) for each in policy.validations)


@pytest.mark.parametrize("owner", [("batch/v1", "CronJob"), ("jobset.x-k8s.io/v1alpha2", "JobSet"), ("v1", "Node")])
def test_objects_created_by_a_judged_object_are_not_judged_again(owner: tuple[str, str]) -> None:
    assert broken(STOPS, owned_by(*owner)) is None


@pytest.mark.slow
def test_objects_of_unknown_or_merely_referring_owners_are_judged() -> None:
    assert broken(STOPS, owned_by("acme.com/v1", "Pipeline")) == {"gpu-container-without-limit"}
    assert broken(STOPS, owned_by("batch/v1", "Job", controller=False)) == {"gpu-container-without-limit"}


def test_kueue_starts_stops_and_places_a_job_without_being_judged() -> None:
    old = idle_job()
    new = copy.deepcopy(old)
    new["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "q"}
    new["spec"] |= {"suspend": False, "parallelism": 3}
    new["spec"]["template"]["metadata"] = {"annotations": {"kueue.x-k8s.io/workload": "w"}}
    new["spec"]["template"]["spec"] |= {
        "nodeSelector": {"karpenter.sh/capacity-type": "spot"},
        "tolerations": [{"operator": "Exists"}],
        "schedulingGates": [{"name": "kueue.x-k8s.io/topology"}],
    }

    assert broken(STOPS, new, old) is None


def test_a_person_who_changes_what_a_job_runs_is_judged() -> None:
    old, new = idle_job(), idle_job()
    new["spec"]["template"]["spec"]["containers"] = [{"name": "idle", "image": "busybox:2"}]

    assert broken(STOPS, new, old) == {"gpu-container-without-limit"}


@pytest.mark.parametrize(
    "changed", [{"backoffLimit": 0}, {"activeDeadlineSeconds": 864000}, {"runPolicy": {"activeDeadlineSeconds": 864000}}]
)
def test_a_person_who_changes_how_a_job_fails_or_ends_is_judged(changed: Manifest) -> None:
    old = idle_job()
    new = old | {"spec": old["spec"] | changed}

    assert broken(STOPS, new, old) == {"gpu-container-without-limit"}
    assert broken(STOPS, new, new) is None


def test_a_jobset_of_many_is_compared_member_by_member() -> None:
    def jobset(image: str, **more: Any) -> Manifest:
        pod = {"nodeSelector": {"nvidia.com/gpu.present": "true"}, "containers": [{"name": "drive", "image": image}], **more}
        members = [{"name": name, "template": {"spec": {"template": {"spec": each}}}} for name, each in {"a": {}, "b": pod}.items()]
        return manifest("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": members})

    assert broken(STOPS, jobset("a", tolerations=[{"operator": "Exists"}]), jobset("a")) is None
    assert broken(STOPS, jobset("b"), jobset("a")) == {"gpu-container-without-limit"}


def test_a_deployment_is_judged_when_its_template_changes_and_not_when_it_is_scaled_or_annotated() -> None:
    def deployment(replicas: int, **selector: str) -> Manifest:
        pod = {"nodeSelector": {"nvidia.com/gpu.present": "true", **selector}, "containers": [{"name": "serve"}]}
        return manifest("apps/v1", "Deployment", {"replicas": replicas, "template": {"spec": pod}})

    assert broken(STOPS, deployment(1)) == {"gpu-container-without-limit"}
    assert broken(STOPS, deployment(5), deployment(1)) is None
    assert broken(STOPS, deployment(1, zone="a"), deployment(1)) == {"gpu-container-without-limit"}


def test_a_quota_is_judged_when_it_changes() -> None:
    def quota(key: str) -> Manifest:
        return manifest("v1", "ResourceQuota", {"hard": {key: "1"}})

    assert broken(STOPS, quota("limits.nvidia.com/gpu"), quota("limits.nvidia.com/gpu")) is None
    assert broken(STOPS, quota("limits.nvidia.com/gpu"), quota("pods")) == {"quota-key-never-enforced"}


def test_policies_judge_no_subresources_and_no_daemon_sets() -> None:
    resources = {resource for policy in (STOPS, ADVISES) for rule in policy.resource_rules for resource in rule.resources}

    assert not [each for each in resources if "/" in each or "*" in each]
    assert "daemonsets" not in resources


@pytest.mark.parametrize(
    "reason,counts",
    [
        ("the trainer checkpoints every step", True),
        ("it does; until=2999-12-31; by=team-a", True),
        ("it does; until = 2026-12-31", True),
        ("it did; until=2026-11-21", False),
        ("it does; until=soon", False),
        ("", False),
        ("; until=2999-12-31", False),
    ],
)
def test_a_reason_accepts_a_violation_up_to_and_including_its_last_day(reason: str, counts: bool) -> None:  # noqa: FBT001 -- a column of the table
    annotations = {"flexspot.dev/ignore-gpu-container-without-limit": reason}
    made = idle_job(creationTimestamp="2026-11-22T10:00:00Z", annotations=annotations)

    assert broken(STOPS, made) == (set() if counts else {"gpu-container-without-limit"})


def test_a_reason_on_the_pod_template_counts_too_and_one_for_another_rule_does_not() -> None:
    def with_annotation(rule: str) -> Manifest:
        written = idle_job()
        written["spec"]["template"]["metadata"] = {"annotations": {f"flexspot.dev/ignore-{rule}": "we know"}}
        return written

    assert broken(STOPS, with_annotation("gpu-container-without-limit")) == set()
    assert broken(STOPS, with_annotation("grace-exceeds-notice")) == {"gpu-container-without-limit"}


def test_owner_labels_are_added_to_pods_and_their_owners_on_creation() -> None:
    resources = {resource for rule in labelled() for resource in rule.resources}

    assert {"pods", "jobs", "daemonsets", "jobsets", "rayclusters"} <= resources
    assert {rule.operations for rule in labelled()} == {("CREATE",)}
    assert all(key in PATCHES for key in KEYS)


@pytest.mark.parametrize("words", ["it's", "a\\b", "{braces}", 'say "no"', "two\nlines"])
def test_a_text_is_the_same_in_cel(words: str) -> None:
    assert evaluate(text(words)) == words


def test_an_expression_that_fails_raises_an_error() -> None:
    with pytest.raises(CelError):
        evaluate("object.missing", object={})


def test_a_constant_that_the_text_of_the_rules_names_has_one_meaning() -> None:
    named = set(re.findall(r"\$([A-Z][A-Z0-9_]+)", str(TEXT)))
    values = {name: [vars(module)[name] for module in MODULES if name in vars(module)] for name in named}

    assert len(named) > 30
    assert {name: found for name, found in values.items() if any(each != found[0] for each in found)} == {}
