"""The stand-in Kubernetes provider creating objects, and previewing it.

Each test says in its first line what the real provider (pulumi-kubernetes 4.34.2) does.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from provider_driver import Driver, config_map, driving, refusal

from lab.providers.values import UNKNOWN, Secret

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Cluster, KubeObject
    from lab.control_plane import ControlPlane

pytestmark = pytest.mark.lab

_MAP = "v1/ConfigMap"


@pytest.fixture
def driver(lab: ControlPlane) -> Iterator[Driver]:
    with driving(lab.home.kubeconfig) as found:
        yield found


def _definition(plural: str, group: str) -> KubeObject:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "names": {"plural": plural, "singular": plural[:-1], "kind": plural[:-1].title()},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


def _kueue_priority(name: str, value: int) -> KubeObject:
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "WorkloadPriorityClass",
        "metadata": {"name": name},
        "value": value,
        "description": "of a test",
    }


def test_a_new_object_is_applied_by_a_manager_of_its_own(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Real: server-side apply by pulumi-kubernetes-xxxxxxxx, noted in the state as __fieldManager, with __initialApiVersion."""
    made = driver.create(config_map(namespace, a="1"))
    manager = made.outputs["__fieldManager"]
    live = cluster.get(_MAP, "settings", namespace)
    assert live
    assert [(each["manager"], each["operation"]) for each in live["metadata"]["managedFields"]] == [(manager, "Apply")]
    assert manager.startswith("pulumi-kubernetes-")
    assert len(manager) == len("pulumi-kubernetes-") + 8
    assert made.outputs["__initialApiVersion"] == "v1"
    assert made.outputs["metadata"]["uid"] == live["metadata"]["uid"]


def test_the_id_is_namespace_and_name_or_name_alone(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Real: namespace/name, name for cluster-scoped kinds."""
    assert driver.create(config_map(namespace, a="1")).identity == f"{namespace}/settings"
    made = driver.create(_kueue_priority(namespace, 5))
    assert made.identity == namespace
    cluster.delete("kueue.x-k8s.io/v1beta1/WorkloadPriorityClass", namespace)


def test_no_namespace_means_default(driver: Driver, namespace: str) -> None:
    """Real: the object goes to `default`, and the ID says so."""
    each = config_map(namespace, f"of-{namespace}", a="1")
    del each["metadata"]["namespace"]
    made = driver.create(each)
    assert made.identity == f"default/of-{namespace}"
    driver.delete(made)


def test_an_object_that_exists_already_is_taken_over(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Real: with server-side apply a create is an upsert; what others set besides stays."""
    cluster.apply(config_map(namespace, theirs="kept"))
    driver.create(config_map(namespace, ours="new"))
    live = cluster.get(_MAP, "settings", namespace)
    assert live
    assert live["data"] == {"theirs": "kept", "ours": "new"}


def test_a_field_of_another_manager_is_a_conflict(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Real: fails, names the other manager and the field, and points to patchForce."""
    cluster.apply(config_map(namespace, a="theirs"))
    with refusal() as refused:
        driver.create(config_map(namespace, a="ours"))
    assert refused.kept is None
    for said in ("409 Conflict", "flexspot-lab", ".data.a", "pulumi.com/patchForce"):
        assert said in refused.text


def test_a_preview_of_a_create_meets_no_conflict(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Real: forces the dry run of a create, as a replacement would conflict with the object that it replaces."""
    cluster.apply(config_map(namespace, a="theirs"))
    assert driver.create(config_map(namespace, a="ours"), preview=True).outputs["data"] == {"a": "ours"}
    live = cluster.get(_MAP, "settings", namespace)
    assert live
    assert live["data"] == {"a": "theirs"}


def test_patch_force_takes_a_field_over(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Real: the annotation pulumi.com/patchForce makes the apply a forced one."""
    cluster.apply(config_map(namespace, a="theirs"))
    forced = config_map(namespace, a="ours")
    forced["metadata"]["annotations"] = {"pulumi.com/patchForce": "true"}
    assert driver.create(forced).outputs["data"] == {"a": "ours"}


def test_a_field_manager_may_be_chosen(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Real: the annotation pulumi.com/patchFieldManager. On a change the old manager gives its fields up, but only by force."""
    each = config_map(namespace, a="1")
    each["metadata"]["annotations"] = {"pulumi.com/patchFieldManager": "first"}
    made = driver.create(each)
    assert made.outputs["__fieldManager"] == "first"
    each["metadata"]["annotations"] = {"pulumi.com/patchFieldManager": "second", "pulumi.com/patchForce": "true"}
    assert driver.update(made, each).outputs["__fieldManager"] == "second"
    live = cluster.get(_MAP, "settings", namespace)
    assert live
    assert {entry["manager"] for entry in live["metadata"]["managedFields"]} == {"second"}


def test_a_generated_name_is_the_servers(driver: Driver, namespace: str) -> None:
    """Real: metadata.generateName is created, not applied, and an update finds the object by its ID."""
    each = config_map(namespace, a="1")
    each["metadata"] = {"generateName": "settings-", "namespace": namespace}
    made = driver.create(each)
    assert made.name.startswith("settings-")
    each["data"] = {"b": "1"}
    assert driver.update(made, each).outputs["metadata"]["name"] == made.name


def test_a_preview_shows_what_the_server_would_make_and_makes_nothing(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Real: a server-side dry run; no ID, no status, the server's defaults."""
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": namespace},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    made = driver.create(claim, preview=True)
    assert made.identity == ""
    assert made.outputs["spec"]["volumeMode"] == "Filesystem"
    assert "status" not in made.outputs
    assert cluster.get("v1/PersistentVolumeClaim", "data", namespace) is None


def test_a_preview_with_an_unknown_value_is_its_inputs(driver: Driver, namespace: str) -> None:
    """Real: no dry run of what is not known yet."""
    made = driver.create({**config_map(namespace), "data": {"address": UNKNOWN}}, preview=True)
    assert made.outputs == made.inputs
    assert made.outputs["data"] == {"address": UNKNOWN}


def test_a_kind_that_is_not_there_yet_is_previewed_as_its_inputs(driver: Driver, namespace: str) -> None:
    """Real: the definition may be made by the same update."""
    each = {"apiVersion": "test.flexspot.dev/v1", "kind": "Ghost", "metadata": {"name": "x", "namespace": namespace}}
    made = driver.create(each, preview=True)
    assert made.outputs == made.inputs


def test_a_kind_that_does_not_come_is_named(driver: Driver, namespace: str) -> None:
    """Real: retries for half a minute, then says that the CRD may be missing."""
    with refusal() as refused:
        driver.create({"apiVersion": "test.flexspot.dev/v1", "kind": "Ghost", "metadata": {"name": "x", "namespace": namespace}})
    assert "test.flexspot.dev/v1/Ghost" in refused.text
    assert "CustomResourceDefinition" in refused.text


def test_an_object_may_come_right_after_its_definition(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Real: does not wait for the definition to be established, but retries the object."""
    group = f"{namespace}.flexspot.dev"
    definition = driver.create(_definition("trials", group))
    made = driver.create(
        {"apiVersion": f"{group}/v1", "kind": "Trial", "metadata": {"name": "x", "namespace": namespace}, "spec": {"a": 1}}
    )
    assert made.outputs["spec"] == {"a": 1}
    assert cluster.get(f"{group}/v1/Trial", "x", namespace)
    driver.delete(definition)


def test_a_namespace_that_is_not_there_yet_is_previewed_as_inputs(driver: Driver) -> None:
    """Real: the namespace may be made by the same update."""
    made = driver.create(config_map("not-there", a="1"), preview=True)
    assert made.outputs == made.inputs


def test_a_namespace_that_does_not_come_is_named(driver: Driver) -> None:
    """Real: retries for half a minute, then fails with the server's words."""
    with refusal() as refused:
        driver.create(config_map("not-there", a="1"))
    assert 'namespaces "not-there" not found' in refused.text
    assert "Create the namespace first" in refused.text


def test_a_namespace_that_comes_late_is_waited_for(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Real: retries."""
    late = f"{namespace}-late"
    making = threading.Thread(
        target=cluster.apply, args=({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": late}},), daemon=True
    )
    threading.Timer(0.5, making.start).start()
    assert driver.create(config_map(late, a="1")).identity == f"{late}/settings"
    cluster.delete("v1/Namespace", late)


@pytest.mark.parametrize("preview", [True, False])
def test_an_invalid_object_is_refused_with_the_servers_words(driver: Driver, namespace: str, *, preview: bool) -> None:
    """Real: fails in the preview already."""
    with refusal() as refused:
        driver.create(config_map(namespace, "Not_A_Name", a="1"), preview=preview)
    assert "422 Invalid" in refused.text
    assert "metadata.name" in refused.text
    assert f"{namespace}/Not_A_Name" in refused.text


def test_a_field_that_the_kind_does_not_have_is_refused(driver: Driver, namespace: str) -> None:
    """Real: server-side apply knows the schema, and fails."""
    with refusal() as refused:
        driver.create({**config_map(namespace), "dat": {"a": "1"}}, preview=True)
    assert ".dat" in refused.text
    assert "not declared in schema" in refused.text


def test_a_rule_of_a_definition_is_checked_in_the_preview(driver: Driver) -> None:
    """Real: CEL rules and webhooks run in the dry run."""
    pool: KubeObject = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "of-a-test"},
        "spec": {"template": {"spec": {"requirements": [{"key": "k", "operator": "In", "values": []}], "nodeClassRef": {}}}},
    }
    with refusal() as refused:
        driver.create(pool, preview=True)
    assert "karpenter.sh/v1/NodePool of-a-test" in refused.text
    assert "422 Invalid" in refused.text


def test_a_kind_without_a_spec_works(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Real: a custom resource's own top-level fields are sent and compared like any other."""
    made = driver.create(_kueue_priority(namespace, 5))
    assert made.outputs["value"] == 5
    assert driver.changes(made, _kueue_priority(namespace, 5)) == {}
    assert driver.changes(made, _kueue_priority(namespace, 6)) == {"value": "UPDATE"}
    cluster.delete("kueue.x-k8s.io/v1beta1/WorkloadPriorityClass", namespace)


def test_the_data_of_a_secret_is_secret(driver: Driver, namespace: str) -> None:
    """Real: data and stringData are secret in inputs and outputs, whoever marked them."""
    made = driver.create(
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key", "namespace": namespace}, "stringData": {"k": "v"}}
    )
    assert made.inputs["stringData"] == Secret({"k": "v"})
    assert made.outputs["data"] == Secret({"k": "dg=="})


def test_what_is_secret_in_the_inputs_is_secret_in_the_outputs(driver: Driver, namespace: str) -> None:
    """Real: secretness is copied field by field, so the rest stays readable."""
    made = driver.create({**config_map(namespace), "data": {"open": "1", "closed": Secret("2")}})
    assert made.outputs["data"] == {"open": "1", "closed": Secret("2")}


def test_a_definition_may_spell_its_schema_as_the_sdk_does(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Real: x_kubernetes_preserve_unknown_fields is sent with hyphens and recorded with underscores."""
    definition = _definition("sketches", f"{namespace}.flexspot.dev")
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = {"type": "object", "x_kubernetes_preserve_unknown_fields": True}
    made = driver.create(definition)
    live = cluster.get("apiextensions.k8s.io/v1/CustomResourceDefinition", made.name)
    assert live
    assert live["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["x-kubernetes-preserve-unknown-fields"] is True
    assert made.outputs["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["x_kubernetes_preserve_unknown_fields"] is True
    assert driver.changes(made, definition) == {}
    driver.delete(made)
