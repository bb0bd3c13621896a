"""What the stand-in Kubernetes provider does with objects that are refused, and with those that need a second look.

As in test_kubernetes_provider_create.py, each test says in its first line what the official provider does, and in which recorded scenario.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from provider_driver import Driver, config_map, definition_of, driving, kueue_priority, refusal

from lab.providers.values import Secret

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Cluster, KubeObject
    from lab.control_plane import ControlPlane

pytestmark = pytest.mark.lab


@pytest.fixture
def driver(lab: ControlPlane) -> Iterator[Driver]:
    with driving(lab.home.kubeconfig) as found:
        yield found


@pytest.mark.parametrize("preview", [True, False])
def test_an_invalid_object_is_refused_with_the_servers_words(driver: Driver, namespace: str, *, preview: bool) -> None:
    """Official: fails in the preview already (09)."""
    with refusal() as refused:
        driver.create(config_map(namespace, "Not_A_Name", a="1"), preview=preview)
    assert 'was not successfully created by the Kubernetes API server: ConfigMap "Not_A_Name" is invalid: metadata.name' in refused.text


def test_a_field_that_the_kind_does_not_have_is_dropped(driver: Driver, namespace: str) -> None:
    """Official: Check drops it of built-in kinds, without a word (09)."""
    assert "dat" not in driver.create({**config_map(namespace), "dat": {"a": "1"}}).outputs


def test_a_preview_passes_what_a_webhook_denies(driver: Driver, namespace: str) -> None:
    """Official: a denial is Forbidden, as is what the account of a preview may not do, so a preview answers its inputs (09)."""
    group = {"coveredResources": ["memory"], "flavors": [{"name": "any", "resources": [{"name": "cpu", "nominalQuota": "1"}]}]}
    queue: KubeObject = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ClusterQueue",
        "metadata": {"name": namespace},
        "spec": {"resourceGroups": [group]},
    }
    made = driver.create(queue, preview=True)
    assert made.outputs == made.inputs
    with refusal() as refused:
        driver.create(queue)
    assert 'admission webhook "vclusterqueue.kb.io" denied the request' in refused.text


def test_a_rule_of_a_definition_is_checked_in_the_preview(driver: Driver) -> None:
    """Official: schemas and CEL rules are checked in the dry run (09)."""
    pool: KubeObject = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "of-a-test"},
        "spec": {"template": {"spec": {"requirements": [{"key": "k", "operator": "In", "values": []}], "nodeClassRef": {}}}},
    }
    with refusal() as refused:
        driver.create(pool, preview=True)
    assert 'NodePool.karpenter.sh "of-a-test" is invalid' in refused.text


def test_a_kind_without_a_spec_works(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Official: a custom resource's own top-level fields are sent and compared like any other."""
    made = driver.create(kueue_priority(namespace, 5))
    assert made.outputs["value"] == 5
    assert driver.changes(made, kueue_priority(namespace, 5)) == {}
    assert driver.changes(made, kueue_priority(namespace, 6)) == {"value": "UPDATE"}
    cluster.delete("kueue.x-k8s.io/v1beta1/WorkloadPriorityClass", namespace)


def test_the_data_of_a_secret_is_secret(driver: Driver, namespace: str) -> None:
    """Official: stringData becomes data, and data is secret in inputs and outputs, whoever marked it (03)."""
    made = driver.create(
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key", "namespace": namespace}, "stringData": {"k": "v"}}
    )
    assert "stringData" not in made.inputs
    assert made.inputs["data"] == made.outputs["data"] == made.outputs["__inputs"]["data"] == Secret({"k": "dg=="})


def test_what_is_secret_in_the_inputs_is_secret_in_the_outputs(driver: Driver, namespace: str) -> None:
    """Official: secretness is copied field by field, so the rest stays readable."""
    made = driver.create({**config_map(namespace), "data": {"open": "1", "closed": Secret("2")}})
    assert made.outputs["data"] == {"open": "1", "closed": Secret("2")}


def test_a_definition_may_spell_its_schema_as_the_sdk_does(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Official: x_kubernetes_preserve_unknown_fields is sent with hyphens and recorded with underscores."""
    definition = definition_of("sketches", f"{namespace}.flexspot.dev")
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = {"type": "object", "x_kubernetes_preserve_unknown_fields": True}
    made = driver.create(definition)
    live = cluster.get("apiextensions.k8s.io/v1/CustomResourceDefinition", made.name)
    assert live
    assert live["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["x-kubernetes-preserve-unknown-fields"] is True
    assert made.outputs["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["x_kubernetes_preserve_unknown_fields"] is True
    assert driver.changes(made, definition) == {}
    driver.delete(made)
