"""The stand-in Kubernetes provider changing objects, and previewing it.

Each test says in its first line what the real provider (pulumi-kubernetes 4.34.2) does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from provider_driver import Driver, config_map, deployment, driving, refusal

from lab.providers.values import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Cluster, KubeObject
    from lab.control_plane import ControlPlane

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
    """Real: what the program does not set any more is removed, as its manager owned it; what others set stays."""
    made = driver.create(config_map(namespace, a="1", b="1"))
    cluster.apply({**config_map(namespace), "data": {"theirs": "1"}})
    changed = driver.update(made, config_map(namespace, a="2"))
    live = cluster.get(_MAP, "settings", namespace)
    assert live
    assert live["data"] == {"a": "2", "theirs": "1"}
    assert changed.outputs["__fieldManager"] == made.outputs["__fieldManager"]


def test_a_preview_of_an_update_changes_nothing(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Real: a server-side dry run."""
    made = driver.create(config_map(namespace, a="1"))
    assert driver.update(made, config_map(namespace, a="2"), preview=True).outputs["data"] == {"a": "2"}
    live = cluster.get(_MAP, "settings", namespace)
    assert live
    assert live["data"] == {"a": "1"}


def test_a_conflict_fails_the_preview_and_keeps_the_state(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Real: an update that the server refuses is reported like an unready object, so that the next run comes back to it."""
    made = driver.create(config_map(namespace, a="1"))
    cluster.apply(config_map(namespace, a="theirs"))
    for preview in (True, False):
        with refusal(made.urn) as refused:
            driver.update(made, config_map(namespace, a="2"), preview=preview)
        assert "flexspot-lab" in refused.text
        assert bool(refused.kept) is not preview
        if refused.kept:
            assert refused.kept.identity == made.identity
            assert refused.kept.outputs["data"] == {"a": "theirs"}


def test_an_ignored_field_stays_with_who_set_it(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Real: an ignored field of another manager is not sent, so there is no conflict; one of its own is sent as it is."""
    made = driver.create(config_map(namespace, ours="1"))
    cluster.apply({**config_map(namespace), "data": {"theirs": "1"}})
    changed = driver.update(made, config_map(namespace, ours="2", theirs="2", new="1"), ignored=["data.theirs", "data.ours"])
    assert changed.outputs["data"] == {"ours": "1", "theirs": "1", "new": "1"}


@pytest.mark.parametrize("preview", [True, False])
def test_an_object_that_is_gone_cannot_be_updated(driver: Driver, cluster: Cluster, namespace: str, *, preview: bool) -> None:
    """Real: fails; a refresh makes the state know."""
    made = driver.create(config_map(namespace, a="1"))
    cluster.delete(_MAP, "settings", namespace)
    with refusal() as refused:
        driver.update(made, config_map(namespace, a="2"), preview=preview)
    assert "pulumi refresh" in refused.text
    assert refused.kept is None


def test_an_invalid_update_is_refused_in_the_preview(driver: Driver, namespace: str) -> None:
    """Real: the dry run fails."""
    made = driver.create(_unawaited(deployment(namespace, "none")))
    with refusal() as refused:
        driver.update(made, _unawaited(deployment(namespace, "none", replicas=-1)), preview=True)
    assert "spec.replicas" in refused.text


def test_an_update_with_an_unknown_value_is_previewed_as_its_inputs(driver: Driver, namespace: str) -> None:
    """Real: no dry run of what is not known yet."""
    made = driver.create(config_map(namespace, a="1"))
    changed = driver.update(made, {**config_map(namespace), "data": {"a": UNKNOWN}}, preview=True)
    assert changed.outputs == changed.inputs


def test_a_definition_is_replaced_whole_without_losing_its_objects(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Real: definitions are updated by PUT, so a property that is gone from the schema is gone."""
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
