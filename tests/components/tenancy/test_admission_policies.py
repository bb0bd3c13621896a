"""AdmissionPolicies and OwnerLabels: what they register, whom it binds, and what both refuse."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from components.tenancy.admission import AdmissionPolicies, OwnerLabels

Register = Callable[[Callable[[], object]], Any]

API = "kubernetes:admissionregistration.k8s.io/v1"
POLICY, BINDING = f"{API}:ValidatingAdmissionPolicy", f"{API}:ValidatingAdmissionPolicyBinding"
MUTATING, MUTATING_BINDING = f"{API}:MutatingAdmissionPolicy", f"{API}:MutatingAdmissionPolicyBinding"

MATCHES = [{"group": "batch", "resources": ["jobs"], "operations": ["CREATE", "UPDATE"]}]
LABELS = {"flexspot.dev/environment": "test"}


def policy(name: str = "rules", *, stops: bool = True, **changes: Any) -> dict[str, Any]:
    return {
        "name": name,
        "stops": stops,
        "matches": MATCHES,
        "conditions": [{"name": "new", "expression": "request.operation == 'CREATE'"}],
        "variables": [{"name": "problems", "expression": "[]"}],
        "validations": [{"expression": "size(variables.problems) == 0", "message": "no", "message_expression": "variables.problems[0]"}],
        **changes,
    }


def args(*policies: dict[str, Any], **changes: Any) -> Any:
    return {"policies": list(policies or [policy()]), "team_label": "flexspot.dev/team", "labels": LABELS, **changes}


def owner_args(**changes: Any) -> Any:
    wanted = {"keys": ["flexspot.dev/owner"], "matches": MATCHES, "expression": "[]", "team_label": "flexspot.dev/team", "labels": LABELS}
    return wanted | changes


def bound(made: Any) -> dict[str, tuple[list[str], list[tuple[str, str]]]]:
    """Actions and namespaces of each binding, by name."""
    found: dict[str, tuple[list[str], list[tuple[str, str]]]] = {}
    for each in made.of(BINDING):
        selector = each["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"]
        found[each["metadata"]["name"]] = each["spec"]["validationActions"], [(part["key"], part["operator"]) for part in selector]
    return found


def test_a_policy_says_of_objects_and_of_no_subresource_what_it_is_given_and_fails_open(register: Register) -> None:
    [made] = register(lambda: AdmissionPolicies("admission", args())).of(POLICY)

    assert made["metadata"] == {"name": "rules", "labels": LABELS}
    assert made["spec"] == {
        "failurePolicy": "Ignore",
        "matchConstraints": {
            "matchPolicy": "Equivalent",
            "resourceRules": [{"apiGroups": ["batch"], "apiVersions": ["*"], "resources": ["jobs"], "operations": ["CREATE", "UPDATE"]}],
        },
        "matchConditions": [{"name": "new", "expression": "request.operation == 'CREATE'"}],
        "variables": [{"name": "problems", "expression": "[]"}],
        "validations": [{"expression": "size(variables.problems) == 0", "message": "no", "messageExpression": "variables.problems[0]"}],
    }


def test_what_stops_refuses_in_team_namespaces_and_warns_in_all_others_but_the_clusters_own(register: Register) -> None:
    made = register(lambda: AdmissionPolicies("admission", args()))

    assert bound(made) == {
        "rules-teams": (["Deny", "Audit"], [("flexspot.dev/team", "Exists")]),
        "rules-elsewhere": (["Warn", "Audit"], [("flexspot.dev/team", "DoesNotExist"), ("kubernetes.io/metadata.name", "NotIn")]),
    }


@pytest.mark.parametrize("given", [args(policy(stops=False)), args(enforce=False)])
def test_what_only_tells_and_what_is_not_enforced_warns_everywhere(given: Any, register: Register) -> None:
    made = register(lambda: AdmissionPolicies("admission", given))

    assert bound(made) == {"rules-all": (["Warn", "Audit"], [("kubernetes.io/metadata.name", "NotIn")])}


@pytest.mark.parametrize("enforce,actions", [(True, ["Deny", "Audit"]), (False, ["Warn", "Audit"])])
def test_what_guards_a_guarantee_is_of_team_namespaces_alone_and_fails_closed(
    actions: list[str], register: Register, *, enforce: bool
) -> None:
    made = register(lambda: AdmissionPolicies("admission", args(policy(guards=True), enforce=enforce)))

    assert bound(made) == {"rules-teams": (actions, [("flexspot.dev/team", "Exists")])}
    assert [each["spec"]["failurePolicy"] for each in made.of(POLICY)] == ["Fail"]


def test_everything_is_the_components_and_the_cel_is_not_told_twice(register: Register) -> None:
    made = register(lambda: AdmissionPolicies("admission", args()))

    [inputs] = made.of("flexspot:index:AdmissionPolicies")
    assert inputs["policies"] == ["rules"]
    assert [name for token, name, _ in made.resources if token.startswith("kubernetes:")] == [
        "admission-rules",
        "admission-rules-teams",
        "admission-rules-elsewhere",
    ]


@pytest.mark.parametrize(
    "given,told",
    [
        (args() | {"policies": []}, "policies is empty; give at least one"),
        (args(policy(matches=[])), "policy rules matches nothing; name the resources"),
        (args(policy(validations=[])), "policy rules has no validations; give at least one"),
    ],
)
def test_policies_without_a_meaning_are_refused_before_anything_is_registered(given: Any, told: str, register: Register) -> None:
    def declare() -> None:
        with pytest.raises(ValueError, match=re.escape(f"AdmissionPolicies admission: {told}")):
            AdmissionPolicies("admission", given)

    assert register(declare).resources == []


def test_owner_labels_are_patched_into_what_is_made_in_team_namespaces_alone(register: Register) -> None:
    made = register(lambda: OwnerLabels("owner-labels", owner_args()))

    [mutating], [binding] = made.of(MUTATING), made.of(MUTATING_BINDING)
    assert (mutating["spec"]["failurePolicy"], mutating["spec"]["reinvocationPolicy"]) == ("Ignore", "Never")
    assert mutating["spec"]["mutations"] == [{"patchType": "JSONPatch", "jsonPatch": {"expression": "[]"}}]
    assert binding["spec"]["policyName"] == mutating["metadata"]["name"] == "flexspot-owner-labels"
    selector = binding["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"]
    assert selector == [{"key": "flexspot.dev/team", "operator": "Exists"}]


@pytest.mark.parametrize("argument", ["keys", "matches"])
def test_owner_labels_of_nothing_or_on_nothing_are_refused(argument: str, register: Register) -> None:
    def declare() -> None:
        with pytest.raises(ValueError, match=f"OwnerLabels owner-labels: {argument} is empty; give at least one"):
            OwnerLabels("owner-labels", owner_args(**{argument: []}))

    assert register(declare).resources == []
