"""The stand-in Kubernetes provider on a control plane, where no recorded call shows the official one's behaviour.

The official one is pulumi-kubernetes 4.34.2. All recorded calls are in test_recorded_calls.py; tests that need no server are in
test_kubernetes_provider_pure.py.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from provider_driver import Driver, config_map, connected, definition_of, deployment, driving, fake_node, pod_spec, refusal
from pulumi.runtime.proto import provider_pb2

from flexspot.lab.exercise.play import run_time_of_pods
from flexspot.lab.processes import running_parts
from flexspot.lab.progress import Silence
from flexspot.lab.providers.kubernetes import KubernetesStandIn
from flexspot.lab.providers.serving import serve
from flexspot.lab.providers.values import UNKNOWN, encode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexspot.lab.cluster import Cluster, KubeObject
    from flexspot.lab.control_plane import LabControlPlane
    from flexspot.lab.tools.build import Tools

pytestmark = pytest.mark.lab

_MAP = "v1/ConfigMap"
_DEPLOYMENT = "apps/v1/Deployment"
_NOWHERE = "no-such-node"


@pytest.fixture
def driver(lab: LabControlPlane) -> Iterator[Driver]:
    with driving(lab.home.kubeconfig) as found:
        yield found


@pytest.fixture
def node(cluster: Cluster, namespace: str) -> Iterator[str]:
    with fake_node(cluster, namespace) as name:
        yield name


def _annotated(each: KubeObject, **annotations: str) -> KubeObject:
    return {**each, "metadata": {**each["metadata"], "annotations": {f"pulumi.com/{key}": value for key, value in annotations.items()}}}


def test_connections_of_one_provider_have_their_own_settings_and_end_their_own_waits(
    lab: LabControlPlane, cluster: Cluster, namespace: str
) -> None:
    """During a run, the engine cancels a provider of the program that it does not need any more."""
    elsewhere = yaml.safe_load(lab.home.kubeconfig.read_text(encoding="utf-8"))
    elsewhere["clusters"][0]["cluster"]["server"] = "https://10.0.0.1:6443"
    unnamed = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    with (
        serve(KubernetesStandIn(lab.home.kubeconfig)) as port,
        connected(port) as ours,
        connected(port) as theirs,
        ThreadPoolExecutor() as aside,
    ):
        ours.configure(namespace=namespace)
        with refusal() as refused:
            theirs.stub.Configure(provider_pb2.ConfigureRequest(args=encode({"kubeconfig": yaml.safe_dump(elsewhere)})))
        assert "serves the lab" in refused.text
        assert [each.check(unnamed)["metadata"]["namespace"] for each in (ours, theirs)] == [namespace, "default"]

        waiting = aside.submit(ours.create, deployment(namespace, _NOWHERE), timeout=60)
        cluster.wait_for(_DEPLOYMENT, bool, "the Deployment", namespace=namespace)
        theirs.stub.Cancel(provider_pb2.GetSchemaRequest())
        with pytest.raises(TimeoutError):
            waiting.result(0.5)
        ours.stub.Cancel(provider_pb2.GetSchemaRequest())
        with refusal() as refused:
            waiting.result(10)
    assert 'Resource operation was cancelled for "web"' in refused.text
    assert refused.kept


def test_a_proxy_of_the_environment_is_not_used(lab: LabControlPlane, namespace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
        monkeypatch.setenv(name.lower(), "http://127.0.0.1:1")
    with driving(lab.home.kubeconfig) as driver:
        assert driver.create(config_map(namespace, a="1")).identity == f"{namespace}/settings"


def test_a_definition_is_created_replaced_and_deleted_with_its_objects(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Definitions are updated by PUT, so that a property removed from the schema is gone. The SDK spells hyphens as underscores."""
    group = f"{namespace}.flexspot.dev"
    sketch = {"type": "object", "x_kubernetes_preserve_unknown_fields": True}
    schema: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}, "b": sketch}}
    definition = definition_of("plans", group, schema)
    resource = driver.create(definition)
    each = {"apiVersion": f"{group}/v1", "kind": "Plan", "metadata": {"name": "x", "namespace": namespace}, "b": {"any": "1"}}
    plan = driver.create(each)
    assert driver.changes(resource, definition) == {}
    live = cluster.get("apiextensions.k8s.io/v1/CustomResourceDefinition", resource.name)
    assert live
    [version] = live["spec"]["versions"]
    assert version["schema"]["openAPIV3Schema"]["properties"]["b"]["x-kubernetes-preserve-unknown-fields"] is True

    del schema["properties"]["a"]
    changed = driver.update(resource, definition)

    assert changed.outputs["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"] == {"b": sketch}
    assert cluster.get(f"{group}/v1/Plan", "x", namespace)
    driver.delete(changed)
    assert driver.read(plan).identity == ""
    driver.delete(plan)


def test_a_creation_waits_for_its_namespace(driver: Driver, cluster: Cluster, namespace: str) -> None:
    late: KubeObject = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"{namespace}-late"}}
    threading.Timer(0.5, cluster.apply, (late,)).start()
    resource = driver.create(config_map(f"{namespace}-late", a="1"))
    cluster.delete("v1/Namespace", f"{namespace}-late")
    assert resource.identity == f"{namespace}-late/settings"


def test_a_chosen_field_manager_gives_its_fields_up_to_the_next(driver: Driver, cluster: Cluster, namespace: str) -> None:
    driver.configure(upsertExistingObjects="true")
    resource = driver.create(_annotated(config_map(namespace, a="1"), patchFieldManager="first"))
    assert resource.outputs["__fieldManager"] == "first"
    changed = driver.update(resource, _annotated(config_map(namespace, a="1"), patchFieldManager="second", patchForce="true"))
    assert changed.outputs["__fieldManager"] == "second"
    live = cluster.get(_MAP, "settings", namespace)
    assert live
    assert {entry["manager"] for entry in live["metadata"]["managedFields"]} == {"second"}


def test_an_object_with_a_generated_name_is_found_again_by_its_id(driver: Driver, namespace: str) -> None:
    each = config_map(namespace, a="1")
    each["metadata"] = {"generateName": "settings-", "namespace": namespace}
    resource = driver.create(each)
    assert resource.name.startswith("settings-")
    assert driver.update(resource, {**each, "data": {"b": "1"}}).outputs["metadata"]["name"] == resource.name


def test_a_preview_with_an_unknown_value_returns_its_inputs(driver: Driver, namespace: str) -> None:
    unknown = {**config_map(namespace), "data": {"a": UNKNOWN}}
    created = driver.create(unknown, preview=True)
    updated = driver.update(driver.create(config_map(namespace, a="1")), unknown, preview=True)
    assert created.outputs == updated.outputs == created.inputs


def test_with_upsert_a_replacement_under_the_same_name_can_be_previewed(driver: Driver, namespace: str) -> None:
    """The dry run uses another name, as the old object still exists."""
    driver.configure(upsertExistingObjects="true")

    def job(**container: str) -> KubeObject:
        pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "registry.k8s.io/pause:3.10", **container}]}
        return _annotated(_object("batch/v1/Job", namespace, {"template": {"spec": pod}, "suspend": True}), skipAwait="true")

    driver.create(job())
    resource = driver.create(job(image="registry.k8s.io/pause:3.9"), preview=True)
    assert resource.outputs["spec"]["template"]["spec"]["containers"][0]["image"] == "registry.k8s.io/pause:3.9"


def test_an_ignored_field_stays_with_its_manager(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """An ignored field of another manager is not sent, so that there is no conflict. One of its own is sent unchanged."""
    resource = driver.create(config_map(namespace, ours="1"))
    cluster.apply({**config_map(namespace), "data": {"theirs": "1"}})
    changed = driver.update(resource, config_map(namespace, ours="2", theirs="2", new="1"), ignored=["data.theirs", "data.ours"])
    assert changed.outputs["data"] == {"ours": "1", "theirs": "1", "new": "1"}


def _object(kind: str, namespace: str, spec: dict[str, Any]) -> KubeObject:
    api_version, _, name = kind.rpartition("/")
    return {"apiVersion": api_version, "kind": name, "metadata": {"name": "it", "namespace": namespace}, "spec": spec}


def _job(namespace: str, node: str, **spec: Any) -> KubeObject:
    template = {"metadata": {"annotations": run_time_of_pods("1s")}, "spec": {"restartPolicy": "Never", **pod_spec(node)}}
    return _object("batch/v1/Job", namespace, {"template": template, **spec})


def test_an_update_waits_until_new_replicas_are_there_and_a_service_until_it_has_pods(driver: Driver, namespace: str, node: str) -> None:
    resource = driver.create(deployment(namespace, node))
    assert resource.outputs["status"]["availableReplicas"] == 1
    assert driver.update(resource, deployment(namespace, node, replicas=2)).outputs["status"]["availableReplicas"] == 2
    driver.create(_object("v1/Service", namespace, {"selector": {"app": "web"}, "ports": [{"port": 80}]}), timeout=20)
    for name, spec in (("headless", {"clusterIP": "None", "ports": [{"port": 80}]}), ("outside", {"externalName": "example.com"})):
        service = _object("v1/Service", namespace, {"type": "ClusterIP" if "clusterIP" in spec else "ExternalName", **spec})
        service["metadata"]["name"] = name
        assert driver.create(service, timeout=1).identity == f"{namespace}/{name}", "without pods of its own it is ready"


def test_a_pod_is_waited_for_until_it_runs_and_a_job_until_it_is_complete(driver: Driver, namespace: str, node: str) -> None:
    pod = driver.create(_object("v1/Pod", namespace, pod_spec(node)), timeout=30)
    assert pod.outputs["status"]["phase"] == "Running"
    assert driver.create(_job(namespace, node), timeout=30).outputs["status"]["succeeded"] == 1


@pytest.mark.parametrize(
    "kind,spec,annotations,expected",
    [
        ("batch/v1/Job", {"activeDeadlineSeconds": 1}, {}, "[DeadlineExceeded]"),
        ("batch/v1/Job", {"suspend": True}, {"timeoutSeconds": "1"}, "pulumi.com/skipAwait"),
        (
            "v1/Service",
            {"type": "LoadBalancer", "selector": {"app": "web"}, "ports": [{"port": 80}]},
            {"timeoutSeconds": "1"},
            "Service was not allocated an IP address; does your cloud provider support this?",
        ),
    ],
)
def test_missing_conditions_are_reported_and_kept_in_the_state(  # noqa: PLR0913, PLR0917 -- fixtures and what is varied
    kind: str, spec: dict[str, Any], annotations: dict[str, str], expected: str, driver: Driver, namespace: str
) -> None:
    each = _job(namespace, _NOWHERE, **spec) if kind == "batch/v1/Job" else _object(kind, namespace, spec)
    with refusal() as refused:
        driver.create(_annotated(each, **annotations))
    assert expected in refused.reasons[1]
    assert refused.kept


@pytest.mark.parametrize("mode,phase", [("WaitForFirstConsumer", "Pending"), ("Immediate", None)])
def test_a_claim_waits_to_be_bound_unless_its_class_waits_for_a_pod(
    mode: str, phase: str | None, driver: Driver, cluster: Cluster, namespace: str
) -> None:
    metadata = {"name": namespace}
    storage: KubeObject = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": metadata, "volumeBindingMode": mode}
    cluster.apply({**storage, "provisioner": "example.com/none"})
    spec = {"storageClassName": namespace, "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = _object("v1/PersistentVolumeClaim", namespace, spec)
    if phase:
        assert driver.create(claim).outputs["status"]["phase"] == phase
    else:
        with refusal() as refused:
            driver.create(claim, timeout=1)
        assert "the claim is Pending, not Bound" in refused.reasons[1]
    cluster.delete("storage.k8s.io/v1/StorageClass", namespace)


def test_wait_for_accepts_conditions_and_values_and_names_invalid_ones(driver: Driver, namespace: str) -> None:
    queue = _object("kueue.x-k8s.io/v1beta1/LocalQueue", namespace, {"clusterQueue": "not-there"})
    met, unmet = '"condition=Active=False", "jsonpath={.spec.clusterQueue}=not-there"', '"jsonpath={.spec.clusterQueue}=other"'
    driver.delete(driver.create(_annotated(queue, waitFor=f"[{met}]")))
    for wish, expected in ((f"[{met}, {unmet}]", "timed out waiting for the condition"), ("sunshine", "'sunshine'")):
        with refusal() as refused:
            driver.create(_annotated(queue, waitFor=wish), timeout=1)
        assert expected in refused.text
        assert refused.kept
        driver.delete(refused.kept)


def test_a_deletion_during_the_wait_is_an_error(driver: Driver, cluster: Cluster, namespace: str) -> None:
    with ThreadPoolExecutor() as aside, refusal() as refused:
        waiting = aside.submit(driver.create, deployment(namespace, _NOWHERE), timeout=30)
        cluster.wait_for(_DEPLOYMENT, bool, "the Deployment", namespace=namespace)
        cluster.delete(_DEPLOYMENT, "web", namespace)
        waiting.result()
    assert "was deleted while it was waited for" in refused.reasons[1]


def test_a_deletion_waits_for_dependents_unless_skip_await_is_set(driver: Driver, cluster: Cluster, namespace: str, node: str) -> None:
    driver.delete(driver.create(deployment(namespace, node)))
    assert [*cluster.list("apps/v1/ReplicaSet", namespace), *cluster.list("v1/Pod", namespace)] == []
    held = _annotated(deployment(namespace, _NOWHERE), skipAwait="true", timeoutSeconds="1")
    held["metadata"]["finalizers"] = ["flexspot.dev/held"]
    driver.delete(driver.create(held))
    assert cluster.get(_DEPLOYMENT, "web", namespace)
    cluster.patch(_DEPLOYMENT, "web", {"metadata": {"finalizers": None}}, namespace)


def test_an_object_recreated_under_the_same_name_counts_as_deleted(driver: Driver, cluster: Cluster, namespace: str) -> None:
    stuck = config_map(namespace, a="1")
    stuck["metadata"]["finalizers"] = ["flexspot.dev/held"]
    resource = driver.create(stuck)
    with ThreadPoolExecutor() as aside:
        deleting = aside.submit(driver.delete, resource, timeout=20)
        cluster.wait_for(_MAP, lambda found: any("deletionTimestamp" in each["metadata"] for each in found), "its end", namespace=namespace)
        cluster.patch(_MAP, "settings", {"metadata": {"finalizers": None}}, namespace)
        cluster.apply(config_map(namespace, a="new"))
        deleting.result()
    live = cluster.get(_MAP, "settings", namespace)
    assert live
    assert live["data"] == {"a": "new"}


def test_calls_wait_for_a_restart_of_the_api_server(lab: LabControlPlane, tools: Tools, cluster: Cluster, namespace: str) -> None:
    with driving(lab.home.kubeconfig) as hasty, driving(lab.home.kubeconfig, patience_seconds=30) as patient:
        resource = hasty.create(config_map(namespace, a="1"))
        server = running_parts(lab.home)["kube-apiserver"].process
        server.kill()
        server.wait(10)
        with refusal() as refused:
            hasty.read(resource)
        assert "does not answer" in refused.text
        with ThreadPoolExecutor() as aside:
            starting = aside.submit(lab.start, tools, Silence())
            changed = patient.update(resource, config_map(namespace, a="2"))
            starting.result()
    assert changed.outputs["data"] == {"a": "2"}
    assert cluster.get(_MAP, "settings", namespace)
