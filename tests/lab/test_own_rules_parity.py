"""Own rules of `flexspot lint` get the same verdicts as the same expressions in a ValidatingAdmissionPolicy of a real API server."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
from admission_fixtures import wait_until
from kubernetes.client.exceptions import ApiException

from flexspot.capacity.values.verdict import Verdict
from flexspot.lab.cluster import status_of
from flexspot.policies.core import judge
from flexspot.policies.inventory.reading.source import from_manifest
from flexspot.policies.judging import DEFAULTS
from flexspot.policies.own_rules import read_own_rules
from flexspot.policies.own_rules.evaluation import other_than_truth

if TYPE_CHECKING:
    from flexspot.lab.cluster import Cluster, KubeObject
    from flexspot.policies.own_rules import OwnRule

pytestmark = [
    pytest.mark.lab,
    pytest.mark.nightly(
        tested_by="test_an_own_rule_judges_objects_of_its_kinds_that_meet_its_condition, "
        "test_an_object_on_which_the_check_cannot_be_evaluated_fails, test_quantities_are_compared_as_quantities, "
        "test_an_error_in_a_rule_is_reported_with_its_place"
    ),
]

MARK = "own-rules-parity"

REFUSED = 422

CHECKS: dict[str, dict[str, Any]] = {
    "all-of-a-registry": {"check": "object.data.images.split(',').all(i, i.startsWith('registry.acme.com/'))"},
    "an-optional-with-a-default": {"check": "object.?data.owner.orValue('') != ''"},
    "a-key-that-may-be-missing": {"check": "object.data.size == 'small'"},
    "a-quantity": {"check": "quantity(object.data.limit).compareTo(quantity('1Ki')) <= 0"},
    "a-quantity-by-name": {"check": "isQuantity(object.data.limit) && quantity(object.data.limit).isLessThan(quantity('2k'))"},
    "a-regular-expression": {"check": "object.metadata.name.matches('^[a-z]+-[0-9]+$')"},
    "found-in-a-text": {"check": "object.data.images.find('[0-9]+') != ''"},
    "a-condition": {"when": "object.metadata.name.startsWith('b')", "check": "false"},
    "variables": {"variables": {"all": "object.data.images.split(',')", "many": "size(variables.all)"}, "check": "variables.many < 2"},
    "an-error-behind-or": {"check": "has(object.data.size) || object.data.nothing == 'a'"},
    "labels-as-a-whole": {"check": "object.metadata.labels.all(k, object.metadata.labels[k] != 'bad')"},
    "a-number-of-a-text": {"check": "int(object.data.count) > 2"},
}

BAD = {"a": "bad"}

OBJECTS: list[dict[str, Any]] = [
    {"name": "a-1", "data": {"images": "registry.acme.com/a:1", "owner": "x", "size": "small", "limit": "1k", "count": "3"}},
    {"name": "b-2", "data": {"images": "docker.io/a,registry.acme.com/b:22", "limit": "1Ki", "count": "2"}},
    {
        "name": "plain",
        "data": {"images": "registry.acme.com/a", "size": "large", "limit": "3000m", "count": "many"},
        "labels": {"a": "bad"},
    },
    {"name": "empty", "data": {"limit": "much"}},
]


def rule_of(name: str) -> OwnRule:
    problems: list[str] = []
    [rule] = read_own_rules([{"name": name, "kinds": ["ConfigMap"], "message": name, **CHECKS[name]}], [], problems)
    assert not problems
    return rule


def objects_of(rule: OwnRule, namespace: str) -> list[KubeObject]:
    """Return a policy with the rule's own expressions, and its binding to the namespace."""
    expressions = rule.expressions
    matched = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [matched]},
        "matchConditions": [
            {"name": "when", "expression": expressions.when},
            {"name": "asked", "expression": f"object.metadata.?labels['{MARK}'].orValue('') == '{rule.name}'"},
        ],
        "variables": [{"name": name, "expression": each} for name, each in expressions.variables],
        "validations": [{"expression": expressions.check, "message": rule.name}],
    }
    group = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": f"own-{rule.name}"}}
    selector = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}
    binding = {"policyName": f"own-{rule.name}", "validationActions": ["Deny"], "matchResources": selector}
    return [
        {**group, "kind": "ValidatingAdmissionPolicy", "spec": spec},
        {**group, "kind": "ValidatingAdmissionPolicyBinding", "spec": binding},
    ]


def config_map(written: dict[str, Any], rule: str, namespace: str) -> KubeObject:
    labels = {**written.get("labels", {}), MARK: rule}
    metadata = {"name": written["name"], "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": written["data"]}


def taken(cluster: Cluster, each: KubeObject) -> bool:
    """Return whether the API server would accept an object. No policy but the test's may refuse it."""
    try:
        cluster.apply(each, dry_run=True)
    except ApiException as error:
        if status_of(error) != REFUSED or f"own-{each['metadata']['labels'][MARK]}" not in str(error.body):
            raise
        return False
    return True


def test_lint_and_the_api_server_agree_on_every_object(cluster: Cluster, namespace: str) -> None:
    rules = [rule_of(name) for name in CHECKS]
    # The last policy refuses every object that requests it: once it applies, those before it apply.
    last = rule_of("a-condition")
    cluster.apply(*(each for rule in rules for each in objects_of(rule, namespace)))
    probe = config_map({"name": "b", "data": {}}, last.name, namespace)

    try:
        wait_until(lambda: not taken(cluster, probe), "the last rule is not held")
        # The API server reloads all policies at once, some tenths of a second apart from their bindings.
        time.sleep(2)
        differing: list[tuple[str, str, str, bool]] = []
        refused: set[str] = set()
        for rule in rules:
            for written in OBJECTS:
                manifest = config_map(written, rule.name, namespace)
                [finding] = [each for each in judge(from_manifest(manifest), [rule], DEFAULTS) if each.rule == rule.name]
                answer = taken(cluster, manifest)
                refused |= set() if answer else {rule.name}
                if (finding.verdict is not Verdict.FAIL) is not answer:
                    differing.append((rule.name, written["name"], finding.message, answer))
        assert differing == []
        assert len(refused) >= len(rules) - 1
    finally:
        for rule in rules:
            for each in objects_of(rule, namespace):
                cluster.delete(f"{each['apiVersion']}/{each['kind']}", each["metadata"]["name"])


def test_lint_accepts_the_checks_that_the_api_server_accepts(cluster: Cluster, namespace: str) -> None:
    policy, _ = objects_of(rule_of("a-condition"), namespace)
    for check in (
        "true",
        "1 + 1",
        "'true'",
        "[true]",
        "object.data",
        "object.?data.a.orValue(false)",
        "object.?data.a.orValue(false) == true",
    ):
        policy["spec"]["validations"] = [{"expression": check, "message": "a"}]
        if other_than_truth(check):
            with pytest.raises(ApiException, match="must evaluate to bool"):
                cluster.apply(policy, dry_run=True)
        else:
            cluster.apply(policy, dry_run=True)
