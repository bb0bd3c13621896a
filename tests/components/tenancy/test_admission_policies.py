"""AdmissionPolicies and OwnerLabels: their resources and bindings, and invalid arguments of both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from flexspot.components.tenancy.admission import AdmissionPolicies, OwnerLabels

if TYPE_CHECKING:
    from component_types import Refusal, Register

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
    """Return the actions and namespaces of each binding, by name."""
    found: dict[str, tuple[list[str], list[tuple[str, str]]]] = {}
    for each in made.of(BINDING):
        selector = each["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"]
        found[each["metadata"]["name"]] = each["spec"]["validationActions"], [(part["key"], part["operator"]) for part in selector]
    return found


def test_a_policy_has_its_rules_for_objects_and_no_subresource_and_fails_open(register: Register) -> None:
    registered = register(lambda: AdmissionPolicies("admission", args()))

    # The CEL is not also among the component's inputs.
    assert [each["policies"] for each in registered.of("flexspot:index:AdmissionPolicies")] == [["rules"]]
    [made] = registered.of(POLICY)
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


def test_a_stopping_policy_denies_in_team_namespaces_and_warns_in_all_others_but_the_clusters_own(register: Register) -> None:
    made = register(lambda: AdmissionPolicies("admission", args()))

    assert bound(made) == {
        "rules-teams": (["Deny", "Audit"], [("flexspot.dev/team", "Exists")]),
        "rules-elsewhere": (["Warn", "Audit"], [("flexspot.dev/team", "DoesNotExist"), ("kubernetes.io/metadata.name", "NotIn")]),
    }


@pytest.mark.parametrize("given", [args(policy(stops=False)), args(enforce=False)])
def test_warnings_and_policies_that_are_not_enforced_warn_everywhere(given: Any, register: Register) -> None:
    made = register(lambda: AdmissionPolicies("admission", given))

    assert bound(made) == {"rules-all": (["Warn", "Audit"], [("kubernetes.io/metadata.name", "NotIn")])}


@pytest.mark.parametrize("enforce,actions", [(True, ["Deny", "Audit"]), (False, ["Warn", "Audit"])])
def test_a_guarding_policy_only_applies_to_team_namespaces_and_fails_closed(
    actions: list[str], register: Register, *, enforce: bool
) -> None:
    made = register(lambda: AdmissionPolicies("admission", args(policy(guards=True), enforce=enforce)))

    assert bound(made) == {"rules-teams": (actions, [("flexspot.dev/team", "Exists")])}
    assert [each["spec"]["failurePolicy"] for each in made.of(POLICY)] == ["Fail"]


def test_owner_labels_are_only_added_to_objects_in_team_namespaces(register: Register) -> None:
    made = register(lambda: OwnerLabels("owner-labels", owner_args()))

    [mutating], [binding] = made.of(MUTATING), made.of(MUTATING_BINDING)
    assert (mutating["spec"]["failurePolicy"], mutating["spec"]["reinvocationPolicy"]) == ("Ignore", "Never")
    assert mutating["spec"]["mutations"] == [{"patchType": "JSONPatch", "jsonPatch": {"expression": "[]"}}]
    assert binding["spec"]["policyName"] == mutating["metadata"]["name"] == "flexspot-owner-labels"
    selector = binding["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"]
    assert selector == [{"key": "flexspot.dev/team", "operator": "Exists"}]


@pytest.mark.parametrize(
    "component,given,problem",
    [
        (AdmissionPolicies, args() | {"policies": []}, "policies: is empty; give at least one"),
        (AdmissionPolicies, args(policy(matches=[])), "policies.rules.matches: is empty; name the resources"),
        (AdmissionPolicies, args(policy(validations=[])), "policies.rules.validations: is empty; give at least one"),
        (OwnerLabels, owner_args(keys=[]), "keys: is empty; give at least one"),
        (OwnerLabels, owner_args(matches=[]), "matches: is empty; give at least one"),
    ],
)
def test_empty_arguments_are_refused_before_anything_is_registered(component: Any, given: Any, problem: str, refusal: Refusal) -> None:
    assert problem in refusal(component, "admission", given)
