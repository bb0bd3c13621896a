"""The stand-in Kubernetes provider creating objects, and previewing it.

Each test says in its first line what the official provider (pulumi-kubernetes 4.34.2) does, and in which recorded scenario that is seen
(tests/lab/recordings); "source" means that only its code says so.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from provider_driver import Driver, config_map, definition_of, driving, kueue_priority, refusal

from lab.providers.values import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Cluster
    from lab.control_plane import ControlPlane

pytestmark = pytest.mark.lab

_MAP = "v1/ConfigMap"


@pytest.fixture
def driver(lab: ControlPlane) -> Iterator[Driver]:
    with driving(lab.home.kubeconfig) as found:
        yield found


def test_a_new_object_is_posted_and_gets_a_manager_of_its_own_for_later(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Official: a POST by pulumi-kubernetes; pulumi-kubernetes-xxxxxxxx is drawn for the updates and noted with the inputs (03, 04)."""
    made = driver.create(config_map(namespace, a="1"))
    manager = made.outputs["__fieldManager"]
    live = cluster.get(_MAP, "settings", namespace)
    assert live
    assert [(each["manager"], each["operation"]) for each in live["metadata"]["managedFields"]] == [("pulumi-kubernetes", "Update")]
    assert made.outputs["metadata"] == live["metadata"]
    assert made.outputs["__inputs"] == made.inputs
    assert manager.startswith("pulumi-kubernetes-")
    assert len(manager) == len("pulumi-kubernetes-") + 8
    assert made.outputs["__initialApiVersion"] == "v1"
    assert made.outputs["metadata"]["uid"] == live["metadata"]["uid"]


def test_the_id_is_namespace_and_name_or_name_alone(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Official: namespace/name, name for cluster-scoped kinds (all)."""
    assert driver.create(config_map(namespace, a="1")).identity == f"{namespace}/settings"
    made = driver.create(kueue_priority(namespace, 5))
    assert made.identity == namespace
    cluster.delete("kueue.x-k8s.io/v1beta1/WorkloadPriorityClass", namespace)


def test_no_namespace_means_default(driver: Driver, namespace: str) -> None:
    """Official: the object goes to `default`, and the ID says so (09)."""
    each = config_map(namespace, f"of-{namespace}", a="1")
    del each["metadata"]["namespace"]
    made = driver.create(each)
    assert made.identity == f"default/of-{namespace}"
    driver.delete(made)


def test_an_object_that_exists_already_is_an_error(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Official: AlreadyExists, with advice, and nothing is changed (01, 06, 07); also for an account that Kubernetes makes (01)."""
    cluster.apply(config_map(namespace, theirs="kept"))
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": namespace}}
    for each, name in ((config_map(namespace, ours="new"), 'configmaps "settings"'), (account, 'serviceaccounts "default"')):
        with refusal() as refused:
            driver.create(each)
        assert f"was not successfully created by the Kubernetes API server: {name} already exists\n\n" in refused.text
        assert "upsertExistingObjects" in refused.text
        assert refused.kept is None


def test_a_preview_of_what_exists_already_is_its_inputs(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Official: says nothing of it, also not in the create half of a replacement (03, 07)."""
    cluster.apply(config_map(namespace, theirs="kept"))
    made = driver.create(config_map(namespace, ours="new"), preview=True)
    assert made.outputs == made.inputs


def test_with_upsert_an_object_that_exists_already_is_taken_over(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Official: server-side apply by the resource's own manager; what others set besides stays (07, 13)."""
    driver.configure(upsertExistingObjects="true")
    cluster.apply(config_map(namespace, theirs="kept"))
    made = driver.create(config_map(namespace, ours="new"))
    live = cluster.get(_MAP, "settings", namespace)
    assert live
    assert live["data"] == {"theirs": "kept", "ours": "new"}
    assert {each["manager"] for each in live["metadata"]["managedFields"]} == {"flexspot-lab", made.outputs["__fieldManager"]}


def test_with_upsert_a_field_of_another_manager_is_a_conflict(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Official: fails, and names the other manager and the field (07)."""
    driver.configure(upsertExistingObjects="true")
    cluster.apply(config_map(namespace, a="theirs"))
    with refusal() as refused:
        driver.create(config_map(namespace, a="ours"))
    assert refused.kept is None
    for said in ("server-side apply field conflict detected", 'conflict with "flexspot-lab"', ".data.a", "pulumi-kubernetes-"):
        assert said in refused.text


def test_with_upsert_a_preview_of_a_create_meets_no_conflict(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Official: forces the dry run of a create, and says nothing of the conflict (07)."""
    driver.configure(upsertExistingObjects="true")
    cluster.apply(config_map(namespace, a="theirs"))
    assert driver.create(config_map(namespace, a="ours"), preview=True).outputs["data"] == {"a": "ours"}
    live = cluster.get(_MAP, "settings", namespace)
    assert live
    assert live["data"] == {"a": "theirs"}


@pytest.mark.parametrize("by_setting", [True, False])
def test_patch_force_takes_a_field_over(driver: Driver, cluster: Cluster, namespace: str, *, by_setting: bool) -> None:
    """Official: the annotation pulumi.com/patchForce or the setting enablePatchForce makes the apply a forced one (07)."""
    driver.configure(upsertExistingObjects="true", enablePatchForce=str(by_setting).lower())
    cluster.apply(config_map(namespace, a="theirs"))
    forced = config_map(namespace, a="ours")
    if not by_setting:
        forced["metadata"]["annotations"] = {"pulumi.com/patchForce": "true"}
    assert driver.create(forced).outputs["data"] == {"a": "ours"}


def test_a_field_manager_may_be_chosen(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Official: the annotation pulumi.com/patchFieldManager. On a change the old manager gives its fields up (source)."""
    driver.configure(upsertExistingObjects="true")
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
    """Official: metadata.generateName is created, not applied, and an update finds the object by its ID."""
    each = config_map(namespace, a="1")
    each["metadata"] = {"generateName": "settings-", "namespace": namespace}
    made = driver.create(each)
    assert made.name.startswith("settings-")
    each["data"] = {"b": "1"}
    assert driver.update(made, each).outputs["metadata"]["name"] == made.name


def test_a_preview_shows_what_the_server_would_make_and_makes_nothing(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Official: a dry run; no ID, no status, the server's defaults (03, 08)."""
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
    """Official: no dry run of what is not known yet (source)."""
    made = driver.create({**config_map(namespace), "data": {"address": UNKNOWN}}, preview=True)
    assert made.outputs == made.inputs
    assert made.outputs["data"] == {"address": UNKNOWN}


def test_a_kind_that_is_not_there_yet_is_previewed_as_its_inputs(driver: Driver, namespace: str) -> None:
    """Official: the definition may be made by the same update (09)."""
    each = {"apiVersion": "test.flexspot.dev/v1", "kind": "Ghost", "metadata": {"name": "x", "namespace": namespace}}
    made = driver.create(each, preview=True)
    assert made.outputs == made.inputs


def test_a_kind_that_does_not_come_is_named(driver: Driver, namespace: str) -> None:
    """Official: tries again for 63 s, then says that the CRD may be missing (09)."""
    with refusal() as refused:
        driver.create({"apiVersion": "test.flexspot.dev/v1", "kind": "Ghost", "metadata": {"name": "x", "namespace": namespace}})
    assert 'no matches for kind "Ghost" in version "test.flexspot.dev/v1"' in refused.text
    assert "Verify that any required CRDs have been created" in refused.text


def test_an_object_may_come_right_after_itsdefinition(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Official: does not wait for the definition to be established, but retries the object."""
    group = f"{namespace}.flexspot.dev"
    definition = driver.create(definition_of("trials", group))
    made = driver.create(
        {"apiVersion": f"{group}/v1", "kind": "Trial", "metadata": {"name": "x", "namespace": namespace}, "spec": {"a": 1}}
    )
    assert made.outputs["spec"] == {"a": 1}
    assert cluster.get(f"{group}/v1/Trial", "x", namespace)
    driver.delete(definition)


def test_a_namespace_that_is_not_there_yet_is_previewed_as_inputs(driver: Driver) -> None:
    """Official: the namespace may be made by the same update (03, 09)."""
    made = driver.create(config_map("not-there", a="1"), preview=True)
    assert made.outputs == made.inputs


def test_a_namespace_that_does_not_come_is_named(driver: Driver) -> None:
    """Official: tries again for 63 s, then fails with the server's words (09)."""
    with refusal() as refused:
        driver.create(config_map("not-there", a="1"))
    assert refused.text.endswith('was not successfully created by the Kubernetes API server: namespaces "not-there" not found')


def test_a_namespace_that_comes_late_is_waited_for(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Official: retries."""
    late = f"{namespace}-late"
    making = threading.Thread(
        target=cluster.apply, args=({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": late}},), daemon=True
    )
    threading.Timer(0.5, making.start).start()
    assert driver.create(config_map(late, a="1")).identity == f"{late}/settings"
    cluster.delete("v1/Namespace", late)
