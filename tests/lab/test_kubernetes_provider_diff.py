"""The stand-in Kubernetes provider comparing objects.

Each test says in its first line what the official provider (pulumi-kubernetes 4.34.2) does, and in which recorded scenario that is seen
(tests/lab/recordings); "source" means that only its code says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from provider_driver import Driver, Made, config_map, deployment, driving, refusal, urn_of

from lab.providers.values import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Cluster, KubeObject
    from lab.control_plane import ControlPlane

pytestmark = pytest.mark.lab

_NO_WAIT = {"pulumi.com/skipAwait": "true"}


@pytest.fixture
def driver(lab: ControlPlane) -> Iterator[Driver]:
    with driving(lab.home.kubeconfig) as found:
        yield found


def _unawaited(each: KubeObject) -> KubeObject:
    each["metadata"]["annotations"] = _NO_WAIT
    return each


def _job(namespace: str, **spec: Any) -> KubeObject:
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "registry.k8s.io/pause:3.10"}]}
    metadata = {"name": "work", "namespace": namespace}
    return _unawaited(
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": {"spec": pod}, "suspend": True, **spec}}
    )


def _secret(namespace: str, **data: str) -> KubeObject:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key", "namespace": namespace}, "stringData": data}


def test_the_same_inputs_are_no_difference(driver: Driver, namespace: str) -> None:
    """Official: compares inputs with inputs, so what the server defaulted is not seen (02, 08)."""
    each = _unawaited(deployment(namespace, "none"))
    assert driver.changes(driver.create(each), each) == {}


def test_a_difference_is_shown_at_its_path(driver: Driver, namespace: str) -> None:
    """Official: full paths, keys that have dots in brackets; a removed property is shown with its input (02, 03)."""
    each = _unawaited(deployment(namespace, "none"))
    made = driver.create(each)
    changed = _unawaited(deployment(namespace, "none", replicas=2))
    changed["metadata"]["labels"] = {"app.kubernetes.io/name": "web"}
    changed["spec"]["template"]["spec"]["containers"][0]["image"] = "registry.k8s.io/pause:3.9"
    del changed["spec"]["template"]["spec"]["tolerations"]
    assert driver.changes(made, changed) == {
        "metadata.labels": "ADD",
        "spec.replicas": "UPDATE",
        "spec.template.spec.containers[0].image": "UPDATE",
        "spec.template.spec.tolerations": "DELETE",
    }
    changed["metadata"]["annotations"] = {**_NO_WAIT, "example.com/why": "x"}
    verdict = driver.diff(made, changed)
    assert verdict.detailedDiff['metadata.annotations["example.com/why"]'].kind == verdict.detailedDiff["metadata.labels"].kind == 0
    assert [path for path, each in verdict.detailedDiff.items() if each.inputDiff] == ["spec.template.spec.tolerations"]
    assert list(verdict.diffs) == []


def test_a_value_that_is_not_known_yet_is_a_difference(driver: Driver, namespace: str) -> None:
    """Official: computed values count as changed (source)."""
    made = driver.create(config_map(namespace, a="1"))
    driver.configure(enableConfigMapMutable=True)
    assert driver.changes(made, {**config_map(namespace), "data": {"a": UNKNOWN}}) == {"data.a": "UPDATE"}


def test_the_default_namespace_named_or_not_is_no_difference(driver: Driver, namespace: str) -> None:
    """Official: Check writes `default` down (09); state without it is the same (source)."""
    each = config_map("default", f"of-{namespace}", a="1")
    made = driver.create(each)
    unnamed = config_map("default", f"of-{namespace}", a="1")
    del unnamed["metadata"]["namespace"]
    assert driver.changes(made, unnamed) == {}
    driver.delete(made)


def test_a_quantity_written_otherwise_is_no_difference_in_a_built_in_kind(driver: Driver, namespace: str) -> None:
    """Official: Check writes quantities of built-in kinds in one way (08)."""
    quota: KubeObject = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "quota", "namespace": namespace},
        "spec": {"hard": {"cpu": "1000m"}},
    }
    made = driver.create(quota)
    assert driver.changes(made, quota) == {}
    quota["spec"]["hard"] = {"cpu": "2000m"}
    assert driver.changes(made, quota) == {"spec.hard.cpu": "UPDATE"}


def test_a_quantity_written_otherwise_is_a_difference_in_a_custom_resource(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Official: compares custom resources as the program writes them; that Kueue's webhook rewrites quantities is not seen (source)."""
    quota = {"name": "cpu", "nominalQuota": "1000m"}
    queue: KubeObject = {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "ClusterQueue",
        "metadata": {"name": namespace},
        "spec": {"resourceGroups": [{"coveredResources": ["cpu"], "flavors": [{"name": "any", "resources": [quota]}]}]},
    }
    made = driver.create(queue)
    live = cluster.get("kueue.x-k8s.io/v1beta1/ClusterQueue", namespace)
    assert live
    assert live["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"] == "1"
    assert driver.changes(made, queue) == {}
    quota["nominalQuota"] = "1"
    assert driver.changes(made, queue) == {"spec.resourceGroups[0].flavors[0].resources[0].nominalQuota": "UPDATE"}
    driver.delete(made)


def test_an_ignored_change_is_no_difference(driver: Driver, namespace: str) -> None:
    """Official: the option ignore_changes takes a path and what is in it (source)."""
    made = driver.create(config_map(namespace, a="1"))
    assert driver.changes(made, config_map(namespace, a="2"), ignored=["data"]) == {}
    assert driver.changes(made, config_map(namespace, a="2"), ignored=["dat"]) == {"data.a": "UPDATE_REPLACE"}


@pytest.mark.parametrize("field", ["name", "namespace"])
def test_another_name_or_namespace_is_another_object(driver: Driver, namespace: str, field: str) -> None:
    """Official: replaced, the new one first (03)."""
    made = driver.create(config_map(namespace, a="1"))
    moved = config_map(namespace, a="1")
    moved["metadata"][field] = "other"
    verdict = driver.diff(made, moved)
    assert list(verdict.replaces) == [f"metadata.{field}"]
    assert not verdict.deleteBeforeReplace


def test_the_data_of_a_config_map_is_replaced(driver: Driver, namespace: str) -> None:
    """Official: replaced unless enableConfigMapMutable; deleted first if the name is the program's (03, 04)."""
    made = driver.create(config_map(namespace, a="1"))
    verdict = driver.diff(made, config_map(namespace, a="2"))
    assert list(verdict.replaces) == ["data.a"]
    assert verdict.deleteBeforeReplace


def test_an_autonamed_object_is_replaced_before_it_is_deleted(driver: Driver, namespace: str) -> None:
    """Official: a new automatic name makes both possible at once (03)."""
    each = config_map(namespace, a="1")
    del each["metadata"]["name"]
    made = driver.create(each)
    each["data"] = {"a": "2"}
    verdict = driver.diff(made, each)
    assert list(verdict.replaces) == ["data.a"]
    assert not verdict.deleteBeforeReplace
    driver.delete(made)


def test_config_maps_and_secrets_may_be_declared_mutable(driver: Driver, namespace: str) -> None:
    """Official: enableConfigMapMutable and enableSecretMutable change data in place (04), but not where `immutable` is set (source)."""
    driver.configure(enableConfigMapMutable="true", enableSecretMutable="true")
    made = driver.create(config_map(namespace, a="1"))
    assert driver.changes(made, config_map(namespace, a="2")) == {"data.a": "UPDATE"}
    fixed = {**config_map(namespace, a="2"), "immutable": True}
    assert driver.changes(made, fixed) == {"data.a": "UPDATE_REPLACE", "immutable": "ADD"}
    secret = driver.create(_secret(namespace, k="1"))
    assert driver.changes(secret, _secret(namespace, k="2")) == {"data.k": "UPDATE"}


def test_the_data_of_a_secret_is_replaced(driver: Driver, namespace: str) -> None:
    """Official: replaced unless enableSecretMutable (03)."""
    made = driver.create(_secret(namespace, k="1"))
    assert driver.changes(made, _secret(namespace, k="1")) == {}
    assert driver.changes(made, _secret(namespace, k="2")) == {"data.k": "UPDATE_REPLACE"}


def test_the_template_of_a_job_is_replaced(driver: Driver, namespace: str) -> None:
    """Official: spec.template is in its list; the backoff limit is not (08)."""
    made = driver.create(_job(namespace))
    changed = _job(namespace, backoffLimit=1)
    changed["spec"]["template"]["spec"]["containers"][0]["image"] = "registry.k8s.io/pause:3.9"
    assert driver.changes(made, changed) == {"spec.backoffLimit": "ADD", "spec.template.spec.containers[0].image": "UPDATE_REPLACE"}


def test_the_selector_of_a_deployment_is_replaced(driver: Driver, namespace: str) -> None:
    """Official: spec.selector is in its list (source)."""
    made = driver.create(_unawaited(deployment(namespace, "none")))
    changed = _unawaited(deployment(namespace, "none"))
    changed["spec"]["selector"]["matchLabels"] = {"app": "other"}
    changed["spec"]["template"]["metadata"]["labels"] = {"app": "other"}
    assert list(driver.diff(made, changed).replaces) == ["spec.selector.matchLabels.app"]


def test_the_role_of_a_binding_is_replaced(driver: Driver, namespace: str) -> None:
    """Official: roleRef is in its list (03)."""
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"}
    metadata = {"name": "readers", "namespace": namespace}
    binding: KubeObject = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": metadata, "roleRef": role}
    made = driver.create(binding)
    assert driver.changes(made, {**binding, "roleRef": {**role, "name": "writer"}}) == {"roleRef.name": "UPDATE_REPLACE"}


def test_the_provisioner_of_a_storage_class_is_replaced(driver: Driver, namespace: str) -> None:
    """Official: provisioner and parameters are in its list; whether volumes may grow is not (source)."""
    metadata = {"name": namespace}
    storage: KubeObject = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": metadata, "provisioner": "example.com/a"}
    made = driver.create(storage)
    changed = {**storage, "provisioner": "example.com/b", "parameters": {"tier": "fast"}, "allowVolumeExpansion": True}
    assert driver.changes(made, changed) == {
        "allowVolumeExpansion": "ADD",
        "parameters": "ADD_REPLACE",
        "provisioner": "UPDATE_REPLACE",
    }
    driver.delete(made)


def test_a_fixed_field_outside_the_list_fails_at_the_server(driver: Driver, namespace: str) -> None:
    """Official: decides by its list; any other immutable field is an update, which fails in the preview and in the `up` (03)."""
    made = driver.create(_job(namespace, completionMode="NonIndexed"))
    indexed = _job(namespace, completionMode="Indexed")
    assert driver.changes(made, indexed) == {"spec.completionMode": "UPDATE"}
    with refusal() as refused:
        driver.update(made, indexed, preview=True)
    assert "spec.completionMode" in refused.text
    assert "field is immutable" in refused.text


def test_with_upsert_a_replacement_under_the_same_name_can_be_previewed(driver: Driver, namespace: str) -> None:
    """Official: the dry run is made under another name, as the old object is still there (source)."""
    driver.configure(upsertExistingObjects="true")
    driver.create(_job(namespace))
    changed = _job(namespace)
    changed["spec"]["template"]["spec"]["containers"][0]["image"] = "registry.k8s.io/pause:3.9"
    made = driver.create(changed, preview=True)
    assert made.outputs["spec"]["template"]["spec"]["containers"][0]["image"] == "registry.k8s.io/pause:3.9"


def test_replace_unready_replaces_a_job_that_has_not_completed(driver: Driver, namespace: str) -> None:
    """Official: with the annotation pulumi.com/replaceUnready, for Jobs alone (source)."""
    each = _job(namespace)
    each["metadata"]["annotations"] = {**_NO_WAIT, "pulumi.com/replaceUnready": "true"}
    assert "replaceUnready" in driver.diff(driver.create(each), each).replaces[0]


def test_state_that_the_stand_in_wrote_before_it_kept_inputs_is_no_difference(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Official: its own state always has them; without them the engine's old inputs say the same (all)."""
    for each in (config_map(namespace, a="1"), _secret(namespace, k="1"), _unawaited(deployment(namespace, "none"))):
        cluster.apply(each)
        live = cluster.get(f"{each['apiVersion']}/{each['kind']}", each["metadata"]["name"], namespace)
        assert live
        old = Made(
            urn_of(each),
            f"{namespace}/{live['metadata']['name']}",
            each,
            {**live, "__initialApiVersion": each["apiVersion"], "__fieldManager": "flexspot-lab"},
        )
        assert driver.changes(old, each) == {}
        read = driver.read(old)
        assert driver.changes(read, each) == {}
        each["metadata"]["labels"] = {"new": "1"}
        updated = driver.update(old, each)
        assert updated.outputs["metadata"]["labels"] == {"new": "1"}
        driver.delete(updated)
