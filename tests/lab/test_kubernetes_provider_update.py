"""The stand-in Kubernetes provider changing objects, and previewing it.

Each test says in its first line what the official provider (pulumi-kubernetes 4.34.2) does, and in which recorded scenario that is seen
(tests/lab/recordings); "source" means that only its code says so.
"""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from provider_driver import Driver, config_map, deployment, driving, refusal

from lab.providers.values import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Cluster, KubeObject
    from lab.control_plane import ControlPlane
    from lab.tools.build import Tools

pytestmark = pytest.mark.lab

_MAP = "v1/ConfigMap"
_NO_WAIT = {"pulumi.com/skipAwait": "true"}


@pytest.fixture
def driver(lab: ControlPlane) -> Iterator[Driver]:
    with driving(lab.home.kubeconfig) as found:
        yield found


def _unawaited(each: KubeObject) -> KubeObject:
    each["metadata"]["annotations"] = _NO_WAIT
    return each


def test_an_update_changes_sets_and_removes(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Official: what the program does not set any more is removed, as its manager took over the fields of Create (03, 04)."""
    made = driver.create(config_map(namespace, a="1", b="1"))
    cluster.apply({**config_map(namespace), "data": {"theirs": "1"}})
    changed = driver.update(made, config_map(namespace, a="2"))
    live = cluster.get(_MAP, "settings", namespace)
    assert live
    assert live["data"] == {"a": "2", "theirs": "1"}
    manager = changed.outputs["__fieldManager"]
    assert manager == made.outputs["__fieldManager"]
    managers = {(each["manager"], each["operation"]) for each in live["metadata"]["managedFields"]}
    assert managers == {(manager, "Apply"), ("flexspot-lab", "Apply")}
    assert changed.outputs["__inputs"] == changed.inputs


@pytest.mark.parametrize(
    "arguments", [["patch", "--type=merge", "-p", '{"data":{"a":"hand"}}'], ["apply", "--server-side", "--force-conflicts"]]
)
def test_what_kubectl_set_is_taken_back(driver: Driver, cluster: Cluster, tools: Tools, namespace: str, arguments: list[str]) -> None:
    """Official: before a real update the fields of kubectl's managers are handed over, so there is no conflict (04, 05)."""
    made = driver.update(driver.create(config_map(namespace, a="1", b="1")), config_map(namespace, a="2", b="1"))
    command = [str(tools.binary("kubectl")), "--kubeconfig", str(cluster.kubeconfig), *arguments, "-f", "-"]
    subprocess.run(command, input=json.dumps(config_map(namespace, a="hand")), text=True, check=True, capture_output=True)
    with refusal() as refused:
        driver.update(made, config_map(namespace, a="3", b="1"), preview=True)
    assert 'conflict with "kubectl' in refused.text
    assert driver.update(made, config_map(namespace, a="3", b="1")).outputs["data"] == {"a": "3", "b": "1"}
    live = cluster.get(_MAP, "settings", namespace)
    assert live
    assert [each["manager"] for each in live["metadata"]["managedFields"]] == [made.outputs["__fieldManager"]]


def test_a_preview_of_an_update_changes_nothing(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Official: a dry run (03)."""
    made = driver.create(config_map(namespace, a="1"))
    assert driver.update(made, config_map(namespace, a="2"), preview=True).outputs["data"] == {"a": "2"}
    live = cluster.get(_MAP, "settings", namespace)
    assert live
    assert live["data"] == {"a": "1"}


def test_a_conflict_fails_the_preview_and_keeps_the_state(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Official: an update that the server refuses is reported like an unready object, so the next run comes back to it (03, 04, 05)."""
    made = driver.update(driver.create(config_map(namespace, a="1")), config_map(namespace, a="1", b="1"))
    cluster.apply(config_map(namespace, a="theirs"))
    for preview in (True, False):
        with refusal(made.urn) as refused:
            driver.update(made, config_map(namespace, a="2"), preview=preview)
        assert f'the Kubernetes API server reported that "{namespace}/settings" failed to fully initialize or become live' in refused.text
        assert 'conflict with "flexspot-lab"' in refused.text
        assert refused.kept
        assert refused.kept.identity == made.identity
        assert refused.kept.outputs["data"] == {"a": "theirs", "b": "1"}
        assert refused.kept.outputs["__inputs"]["data"] == {"a": "2"}


def test_the_preview_of_a_first_update_meets_no_conflict(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Official: is forced as long as the fields of Create stand, and says nothing of the conflict that `up` meets (04)."""
    made = driver.create(config_map(namespace, a="1", b="1"))
    cluster.apply(config_map(namespace, a="theirs"))
    assert driver.update(made, config_map(namespace, a="2", b="1"), preview=True).outputs["data"] == {"a": "2", "b": "1"}
    with refusal() as refused:
        driver.update(made, config_map(namespace, a="2", b="1"))
    assert 'conflict with "flexspot-lab"' in refused.text


def test_patch_force_takes_a_field_from_another_manager(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Official: by the annotation (04, 05) or the setting enablePatchForce (07)."""
    made = driver.update(driver.create(config_map(namespace, a="1")), config_map(namespace, a="2"))
    cluster.apply(config_map(namespace, a="theirs"))
    driver.configure(enablePatchForce="true")
    assert driver.update(made, config_map(namespace, a="3")).outputs["data"] == {"a": "3"}


def test_an_ignored_field_stays_with_who_set_it(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Official: an ignored field of another manager is not sent, so there is no conflict; one of its own is sent as it is (source)."""
    made = driver.create(config_map(namespace, ours="1"))
    cluster.apply({**config_map(namespace), "data": {"theirs": "1"}})
    changed = driver.update(made, config_map(namespace, ours="2", theirs="2", new="1"), ignored=["data.theirs", "data.ours"])
    assert changed.outputs["data"] == {"ours": "1", "theirs": "1", "new": "1"}


@pytest.mark.parametrize("preview", [True, False])
def test_an_object_that_is_gone_cannot_be_updated(driver: Driver, cluster: Cluster, namespace: str, *, preview: bool) -> None:
    """Official: fails, and the state stays as it is; a refresh makes it know (04, 05, 10)."""
    made = driver.create(config_map(namespace, a="1"))
    cluster.delete(_MAP, "settings", namespace)
    with refusal() as refused:
        driver.update(made, config_map(namespace, a="2"), preview=preview)
    assert refused.text == (
        f'update of resource "{made.urn}" failed: configmaps "settings" not found\n'
        'unable to get cluster state: configmaps "settings" not found'
    )
    assert refused.kept is None


def test_an_invalid_update_is_refused_in_the_preview(driver: Driver, namespace: str) -> None:
    """Official: the dry run fails (03, 09)."""
    made = driver.create(_unawaited(deployment(namespace, "none")))
    with refusal() as refused:
        driver.update(made, _unawaited(deployment(namespace, "none", replicas=-1)), preview=True)
    assert "spec.replicas" in refused.text


def test_an_update_with_an_unknown_value_is_previewed_as_its_inputs(driver: Driver, namespace: str) -> None:
    """Official: no dry run of what is not known yet (source)."""
    made = driver.create(config_map(namespace, a="1"))
    changed = driver.update(made, {**config_map(namespace), "data": {"a": UNKNOWN}}, preview=True)
    assert changed.outputs == changed.inputs


def test_a_definition_is_replaced_whole_without_losing_its_objects(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Official: definitions are updated by PUT, so a property that is gone from the schema is gone (source)."""
    group = f"{namespace}.flexspot.dev"
    schema: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"plans.{group}"},
        "spec": {
            "group": group,
            "names": {"plural": "plans", "kind": "Plan"},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }
    made = driver.create(definition)
    driver.create({"apiVersion": f"{group}/v1", "kind": "Plan", "metadata": {"name": "x", "namespace": namespace}, "a": "1"})
    del schema["properties"]["b"]
    changed = driver.update(made, definition)
    assert changed.outputs["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"].keys() == {"a"}
    assert cluster.get(f"{group}/v1/Plan", "x", namespace)
    driver.delete(changed)
