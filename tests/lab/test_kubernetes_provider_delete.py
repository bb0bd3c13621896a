"""The stand-in Kubernetes provider reading, importing and deleting objects, and an API server that goes away meanwhile.

Each test says in its first line what the official provider (pulumi-kubernetes 4.34.2) does, and in which recorded scenario that is seen
(tests/lab/recordings); "source" means that only its code says so.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from provider_driver import Driver, Made, config_map, deployment, driving, fake_node, refusal, urn_of

from lab.processes import running_parts
from lab.progress import Silence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Cluster, KubeObject
    from lab.control_plane import ControlPlane
    from lab.tools.build import Tools

pytestmark = pytest.mark.lab

_MAP = "v1/ConfigMap"


@pytest.fixture
def driver(lab: ControlPlane) -> Iterator[Driver]:
    with driving(lab.home.kubeconfig) as found:
        yield found


def _stuck(namespace: str) -> KubeObject:
    each = config_map(namespace, a="1")
    each["metadata"]["finalizers"] = ["flexspot.dev/held"]
    return each


def test_a_refresh_shows_drift_and_the_next_update_mends_it(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Official: inputs and outputs come back with the live values of what the program set (02, 04)."""
    made = driver.create(config_map(namespace, a="1"))
    assert driver.changes(made, config_map(namespace, a="1")) == {}
    cluster.patch(_MAP, "settings", {"data": {"a": "drifted"}}, namespace)
    read = driver.read(made)
    assert read.inputs["data"] == {"a": "drifted"}
    assert read.outputs["data"] == {"a": "drifted"}
    assert read.outputs["__fieldManager"] == made.outputs["__fieldManager"]
    assert driver.changes(read, config_map(namespace, a="1")) == {"data.a": "UPDATE_REPLACE"}


def test_a_refresh_is_blind_to_what_others_set_besides(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Official: inputs are cut to the fields that the program set (04), and lists to their length (source)."""
    made = driver.create(config_map(namespace, a="1"))
    cluster.patch(_MAP, "settings", {"data": {"theirs": "1"}, "metadata": {"labels": {"theirs": "1"}}}, namespace)
    read = driver.read(made)
    assert read.inputs == made.inputs
    assert read.outputs["data"] == {"a": "1", "theirs": "1"}


def test_a_refresh_of_a_field_that_was_removed_shows_it(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Official: what is gone is gone from the inputs (04)."""
    made = driver.create(config_map(namespace, a="1", b="1"))
    cluster.patch(_MAP, "settings", {"data": {"b": None}}, namespace)
    assert driver.read(made).inputs["data"] == {"a": "1"}


def test_a_refresh_of_a_secret_sees_drift(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Official: stringData is data since Check, and data is compared (03)."""
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key", "namespace": namespace}, "stringData": {"k": "v"}}
    made = driver.read(driver.create(secret))
    assert driver.changes(made, secret) == {}
    cluster.patch("v1/Secret", "key", {"stringData": {"k": "drifted"}}, namespace)
    assert driver.changes(driver.read(made), secret) == {"data.k": "UPDATE_REPLACE"}


def test_an_object_that_is_gone_is_read_as_nothing(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Official: an empty answer, and the engine drops it from the state (04, 10, 11)."""
    made = driver.create(config_map(namespace, a="1"))
    cluster.delete(_MAP, "settings", namespace)
    assert driver.read(made).identity == ""


def test_an_object_whose_kind_is_gone_is_read_and_deleted_as_nothing(driver: Driver, namespace: str) -> None:
    """Official: with its definition a custom resource is gone (source)."""
    each = {"apiVersion": "gone.flexspot.dev/v1", "kind": "Ghost", "metadata": {"name": "x", "namespace": namespace}}
    made = Made(urn_of(each), f"{namespace}/x", each, each)
    assert driver.read(made).identity == ""
    driver.delete(made)


def test_an_object_is_imported_by_namespace_and_name(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Official: the inputs are the whole object, less its status and what only the server writes (10)."""
    each = config_map(namespace, a="1")
    cluster.apply(each)
    read = driver.read(Made(urn_of(each), f"{namespace}/settings", {}, {}))
    assert read.inputs == each
    assert driver.changes(read, each) == {}


def test_of_an_imported_custom_resource_the_name_is_known_alone(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Official: what its fields are is in no schema of the provider, so the import becomes an update (10)."""
    queue: KubeObject = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "LocalQueue",
        "metadata": {"name": "it", "namespace": namespace},
        "spec": {"clusterQueue": "not-there"},
    }
    cluster.apply(queue)
    read = driver.read(Made(urn_of(queue), f"{namespace}/it", {}, {}))
    assert read.inputs == {key: value for key, value in queue.items() if key != "spec"}
    assert read.outputs["spec"]["clusterQueue"] == "not-there"
    assert driver.changes(read, queue) == {"spec": "ADD"}


def test_a_cluster_scoped_object_is_imported_by_its_name(driver: Driver, namespace: str) -> None:
    """Official: no slash, no namespace (10)."""
    each = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    read = driver.read(Made(urn_of(each), namespace, {}, {}))
    assert read.identity == namespace
    assert "status" not in read.inputs
    assert read.outputs["status"]["phase"] == "Active"


def test_what_cannot_be_imported_is_read_as_nothing(driver: Driver, namespace: str) -> None:
    """Official: an empty answer, and the engine says that the resource does not exist (10)."""
    assert driver.read(Made(urn_of(config_map(namespace)), f"{namespace}/absent", {}, {})).identity == ""


def test_a_deletion_waits_until_the_object_and_what_it_owns_are_gone(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Official: foreground propagation, so the pods go first (source)."""
    with fake_node(cluster, namespace) as node:
        made = driver.create(deployment(namespace, node))
        driver.delete(made)
        assert cluster.get("apps/v1/Deployment", "web", namespace) is None
        assert cluster.list("apps/v1/ReplicaSet", namespace) == []
        assert cluster.list("v1/Pod", namespace) == []


def test_a_namespace_is_waited_for_until_all_in_it_is_gone(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Official: waits for the namespace controller (11)."""
    name = f"{namespace}-own"
    made = driver.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    driver.create(config_map(name, a="1"))
    driver.delete(made)
    assert cluster.get("v1/Namespace", name) is None


def test_what_is_gone_already_is_deleted(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Official: fine (11)."""
    made = driver.create(config_map(namespace, a="1"))
    cluster.delete(_MAP, "settings", namespace)
    driver.delete(made)


def test_a_deletion_that_a_finalizer_holds_is_an_error(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Official: times out, and the state keeps the object as it was (11)."""
    made = driver.create(_stuck(namespace))
    with refusal(made.urn, made.inputs) as refused:
        driver.delete(made, timeout=1)
    assert refused.text == "timed out waiting for the condition"
    assert refused.kept is None
    cluster.patch(_MAP, "settings", {"metadata": {"finalizers": None}}, namespace)
    driver.delete(made)


def test_skip_await_means_no_wait_for_some_deletions_alone(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Official: skipAwait is followed in the deletion of Deployments, Pods, Namespaces and the like (source), and of nothing else (11)."""
    each = _stuck(namespace)
    each["metadata"]["annotations"] = {"pulumi.com/skipAwait": "true", "pulumi.com/timeoutSeconds": "1"}
    with refusal():
        driver.delete(driver.create(each))
    workload = deployment(namespace, "no-such-node")
    workload["metadata"] |= {"annotations": each["metadata"]["annotations"], "finalizers": ["flexspot.dev/held"]}
    driver.delete(driver.create(workload))
    for kind, name in ((_MAP, "settings"), ("apps/v1/Deployment", "web")):
        assert cluster.get(kind, name, namespace)
        cluster.patch(kind, name, {"metadata": {"finalizers": None}}, namespace)


def test_what_an_object_owns_may_be_left(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Official: the annotation pulumi.com/deletionPropagationPolicy, foreground unless it says background or orphan (11)."""
    each = deployment(namespace, "no-such-node", replicas=0)
    each["metadata"]["annotations"] = {"pulumi.com/deletionPropagationPolicy": "orphan"}
    made = driver.create(each)
    driver.delete(made)
    assert len(cluster.list("apps/v1/ReplicaSet", namespace)) == 1


def test_an_object_made_anew_under_the_same_name_counts_as_deleted(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Official: the deletion of the old object is seen in its watch, whatever comes after (source)."""
    made = driver.create(_stuck(namespace))

    def make_anew() -> None:
        cluster.wait_for(_MAP, lambda found: any("deletionTimestamp" in each["metadata"] for each in found), "its end", namespace=namespace)
        cluster.patch(_MAP, "settings", {"metadata": {"finalizers": None}}, namespace)
        cluster.apply(config_map(namespace, a="new"))

    making = threading.Thread(target=make_anew)
    making.start()
    driver.delete(made, timeout=20)
    making.join()
    live = cluster.get(_MAP, "settings", namespace)
    assert live
    assert live["data"] == {"a": "new"}


def test_a_restart_of_the_api_server_is_waited_out(lab: ControlPlane, tools: Tools, cluster: Cluster, namespace: str) -> None:
    """Official: not verified how long it tries refused connections again; the stand-in does for 30 s."""
    with driving(lab.home.kubeconfig) as hasty, driving(lab.home.kubeconfig, patience_seconds=30) as patient:
        made = hasty.create(config_map(namespace, a="1"))
        server = running_parts(lab.home)["kube-apiserver"].process
        server.kill()
        server.wait(10)
        with refusal() as refused:
            hasty.read(made)
        assert "does not answer" in refused.text
        starting = threading.Thread(target=lab.start, args=(tools, Silence()))
        starting.start()
        changed = patient.update(made, config_map(namespace, a="2"))
        starting.join()
    assert changed.outputs["data"] == {"a": "2"}
    assert cluster.get(_MAP, "settings", namespace)
