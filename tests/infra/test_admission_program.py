"""Admission policies that the program declares for a stack, by its settings and its cluster's version."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from program_declarations import as_shipped, declared, plan_of, shipped

from flexspot.capacity.plan.build import build_plan
from flexspot.capacity.settings.stack_file import parse_settings
from flexspot.infra.declaring.rules import pack_configuration, rules_of
from flexspot.policies.admission.guarantee import NAME, guarantee_of, guarantee_policies
from flexspot.policies.admission.policy import admission_policies
from flexspot.policies.admission.scheduling_options import facts_of
from flexspot.policies.judging import read_settings
from flexspot.policies.rules import all_rules

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

API = "kubernetes:admissionregistration.k8s.io/v1"
POLICY, BINDING = f"{API}:ValidatingAdmissionPolicy", f"{API}:ValidatingAdmissionPolicyBinding"

STACKS = ("local", "dev-gke", "prod-gke", "dev-eks", "prod-eks")

LONGEST_EXPRESSION = 100_000
"""Most code points of one expression for the API server's CEL parser (cel-go, parser options)."""


def actions(declarations: Any) -> set[str]:
    return {action for each in declarations.inputs_of(BINDING) for action in each["spec"]["validationActions"]}


@pytest.mark.parametrize("stack", STACKS)
def test_every_stack_enforces_every_rule_that_has_an_admission_form(stack: str) -> None:
    policies = {each["metadata"]["name"]: each["spec"] for each in as_shipped(stack).inputs_of(POLICY)}

    wanted = (*admission_policies(facts_of(plan_of(stack))), *guarantee_policies(guarantee_of(plan_of(stack))))
    assert {name: len(spec["validations"]) for name, spec in policies.items()} == {each.name: len(each.validations) for each in wanted}
    assert "Deny" in actions(as_shipped(stack))


def test_mode_warn_refuses_nothing_and_mode_none_declares_nothing() -> None:
    warned = declared("local", shipped("local", admission={"mode": "warn"}))
    none = declared("local", shipped("local", admission={"mode": "none", "default_owner_labels": True}))

    assert actions(warned) == {"Warn", "Audit"}
    assert warned.of(POLICY)
    assert not [each for each in none.made.values() if each.type.startswith(API)]


def test_rules_of_an_organisations_file_are_declared(tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text(
        "flexspot: {image-not-pinned: {level: mandatory, locked: true}, grace-exceeds-notice: disabled,"
        " gpu-container-above-maximum: {most-gpus: 3}, gpu-pool-without-taint: advisory}"
    )

    made = {each["metadata"]["name"]: each["spec"] for each in named_by(file).inputs_of(POLICY)}

    stopping = {each["message"].split()[0] for each in made["flexspot"]["validations"]}
    assert "image-not-pinned" in stopping
    assert not stopping & {"grace-exceeds-notice"}
    variables = {each["name"]: each["expression"] for each in made["flexspot"]["variables"]}
    assert "ignore-image-not-pinned" not in variables["imageNotPinned"]
    assert ".orValue('3')" in variables["gpuContainerAboveMaximum"]
    # No rules file can change the policies that protect a team's guarantee.
    guarding = [each for each in as_shipped("local").inputs_of(POLICY) if each["metadata"]["name"] == NAME]
    assert [made[NAME]] == [each["spec"] for each in guarding]


def test_a_rules_file_with_the_shipped_values_changes_no_object(tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text("{fail-on: low, exclude: [tests/*]}")

    assert named_by(file).inputs_of(POLICY) == as_shipped("local").inputs_of(POLICY)
    assert named_by(file).inputs_of(BINDING) == as_shipped("local").inputs_of(BINDING)


def named_by(file: Path) -> Any:
    """Return the declarations of the local stack with this rules file."""
    return declared("local", shipped("local", admission={"rules_file": str(file)}))


def test_the_policy_pack_gets_the_stacks_rules_file(tmp_path: Path) -> None:
    stack = tmp_path / "Pulumi.mine.yaml"
    (tmp_path / "rules.yaml").write_text(
        "flexspot:\n  image-not-pinned: {level: mandatory, locked: true}\n  duplicate-key: advisory\n"
        "  suppressions:\n    - {rule: missing-owner-labels, object: job, reason: we know, until: 2999-12-31}\n"
        "    - {rule: duplicate-key, object: job, reason: we know}\n"
    )

    def given(**admission: str) -> Path | None:
        stack.write_text(yaml.safe_dump({"config": {"flexspot:platform": shipped("local", admission=admission)}}))
        return pack_configuration(stack, tmp_path)

    assert given() is None
    found = given(rules_file="rules.yaml")
    assert found is not None
    configured = json.loads(found.read_text())
    # Only lint has rules on the text of files.
    assert configured["flexspot"].keys() == {"image-not-pinned", "suppressions"}
    by_pack = read_settings(configured["flexspot"], all_rules())
    in_cluster = rules_of(parse_settings(shipped("local", admission={"rules_file": "rules.yaml"}), ""), tmp_path, "")
    assert not by_pack.problems
    assert by_pack.suppressions == in_cluster.suppressions[:1]
    assert [(by_pack.level(rule), by_pack.parameters(rule), by_pack.locks(rule)) for rule in all_rules()] == [
        (in_cluster.level(rule), in_cluster.parameters(rule), in_cluster.locks(rule)) for rule in all_rules()
    ]


@pytest.mark.parametrize(
    "stack,changes,filled_in",
    [
        ("local", {}, True),
        ("local", {"admission": {"default_owner_labels": False}}, False),
        ("dev-eks", {}, False),
        ("dev-eks", {"cluster": {"version": "1.36"}}, True),
        ("dev-eks", {"admission": {"default_owner_labels": True}}, True),
        ("dev-gke", {}, False),
        ("dev-gke", {"cluster": {"min_version": "1.36.0-gke.1000000"}}, True),
        ("dev-gke", {"cluster": {"min_version": None}}, False),
    ],
)
def test_owner_labels_are_added_if_the_clusters_version_supports_it(stack: str, changes: dict[str, Any], filled_in: bool) -> None:  # noqa: FBT001 -- a column of the table
    settings = shipped(stack)
    for key, value in changes.items():
        settings[key] = {**settings.get(key, {}), **value}

    # test_deployed_facts.py counts the stacks that declare a policy for it.
    assert build_plan(parse_settings(settings, stack)).admission.owner_labels == filled_in


def test_policies_do_not_grow_with_the_number_of_teams_and_projects() -> None:
    few, many = (with_teams(count) for count in (2, 200))

    assert many.inputs_of(POLICY) == few.inputs_of(POLICY)
    assert many.inputs_of(BINDING) == few.inputs_of(BINDING)
    assert (
        max(len(each["expression"]) for policy in many.inputs_of(POLICY) for each in policy["spec"]["variables"]) < LONGEST_EXPRESSION / 3
    )
    read = [each["metadata"]["annotations"] for each in many.inputs_of("kubernetes:core/v1:Namespace") if "annotations" in each["metadata"]]
    assert [each["flexspot.dev/projects"].count(" ") for each in read] == [49] * 200


def with_teams(count: int) -> Any:
    """Return the declarations of the local stack with this number of teams, of fifty projects each."""
    settings = shipped("local")
    first = {key: value for key, value in settings["teams"][0].items() if key in {"shares", "submitters", "viewers"}}
    projects = [f"project-{number}" for number in range(50)]
    settings["teams"] = [{**first, "name": f"team-{number:03}", "shares": {}, "projects": projects} for number in range(count)]
    settings["teams"][0]["shares"] = first["shares"]
    return declared("local", settings)
