"""What the API server lets CEL cost is enough for the largest objects: it judges them, where it would pass over a rule that costs more."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import pytest
from admission_ground import Asked, holding, passed_over, wait_until
from admission_parity import told_by_rules
from kubernetes.client.exceptions import ApiException
from largest_objects import job, losing_pod, of_every_kind, saving_pod
from program_declarations import as_shipped
from provider_driver import definition_of
from server_questions import DEFINITION

from capacity.catalog.node_labels import TEAM_LABEL
from lab.cluster import wait_until_established

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Cluster, KubeObject

pytestmark = pytest.mark.lab

TEAM, ELSEWHERE = "team-alpha", "without-a-team"
CHECKPOINT = "checkpoint-on-ephemeral-volume"
KINDS = {"RayJob": "ray.io", "Notebook": "kubeflow.org"}


@pytest.fixture
def asked(cluster: Cluster) -> Iterator[Asked]:
    """The shipped local stack's policies, those that guard a guarantee included, and kinds of frameworks that take every field."""
    for name, labels in ((TEAM, {TEAM_LABEL: TEAM}), (ELSEWHERE, {})):
        cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
    definitions = {f"{kind.lower()}s.{group}": definition_of(f"{kind.lower()}s", group, kind) for kind, group in KINDS.items()}
    cluster.apply(*definitions.values())
    wait_until_established(cluster, definitions)
    shipped = [each.inputs for each in as_shipped("local").made.values() if "admissionregistration.k8s.io" in each.type]
    with holding(cluster, shipped, TEAM) as found:
        yield found
    for name in definitions:
        cluster.delete(DEFINITION, name)

    def gone(found: list[KubeObject]) -> bool:
        return not definitions.keys() & {each["metadata"]["name"] for each in found}

    # Other tests ask for all that the server has.
    cluster.wait_for(DEFINITION, gone, "the end of the definitions")


def test_the_largest_objects_are_judged_and_no_policy_ends_in_an_error(asked: Asked) -> None:
    before = passed_over(asked)

    for each, namespace in product(of_every_kind(TEAM), (TEAM, ELSEWHERE)):
        refusal = asked.ask(each | {"metadata": each["metadata"] | {"namespace": namespace}}).refusal
        # A policy that fails by itself has no remedy to tell.
        assert "To fix it: " in refusal or "ValidatingAdmissionPolicy" not in refusal, refusal
        assert passed_over(asked) == before, (each["kind"], namespace, len(str(each)))

    for nested in (False, True):
        taken = asked.ask(job(TEAM, saving_pod(nested=nested)))
        assert taken.taken is not None, taken.refusal
        assert CHECKPOINT not in taken.warned

        lost = job(TEAM, losing_pod(nested=nested))
        [said] = told_by_rules(lost, [])[CHECKPOINT]
        assert asked.ask(lost).denied == {CHECKPOINT: said}

    # What changes is judged like what comes: both objects are looked at then.
    large = asked.create(job(TEAM, saving_pod()))
    with pytest.raises(ApiException) as refused:
        asked.patch("batch/v1/Job", large["metadata"]["name"], {"spec": {"activeDeadlineSeconds": 10**9}}, TEAM)
    assert "never-ends" in str(refused.value.body)
    asked.patch("batch/v1/Job", large["metadata"]["name"], {"spec": {"activeDeadlineSeconds": 1800}}, TEAM)
    asked.delete("batch/v1/Job", large["metadata"]["name"], TEAM)
    assert passed_over(asked) == before


def test_an_error_of_a_policy_is_seen(asked: Asked) -> None:
    """Or the test above would say nothing: what fails by itself is passed over without a word."""
    containers = "object.spec.template.spec.containers"
    broken = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "too-dear"},
        "spec": {
            "failurePolicy": "Ignore",
            "matchConstraints": {
                "resourceRules": [{"apiGroups": ["batch"], "apiVersions": ["*"], "resources": ["jobs"], "operations": ["CREATE"]}]
            },
            "validations": [
                {
                    "expression": f"{containers}.all(c, c.env.all(e, c.env.all(f, c.env.all(g, e == e && f == f))))",
                    "message": "never told",
                }
            ],
        },
    }
    binding = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "too-dear"},
        "spec": {"policyName": "too-dear", "validationActions": ["Deny"]},
    }
    before = passed_over(asked)
    asked.apply(broken, binding)
    try:
        wait_until(lambda: asked.ask(job(ELSEWHERE, saving_pod())).taken and passed_over(asked) != before, "nothing is passed over")
    finally:
        for each in (binding, broken):
            asked.delete(f"{each['apiVersion']}/{each['kind']}", "too-dear")
    assert {name for name, count in passed_over(asked).items() if count != before.get(name)} == {"too-dear"}
