"""The stand-in Kubernetes provider waiting until objects are ready.

Each test says in its first line what the real provider (pulumi-kubernetes 4.34.2) does.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from provider_driver import Driver, config_map, deployment, driving, fake_node, pod_spec, refusal
from pulumi.runtime.proto import provider_pb2

from lab.exercise.jobs import run_time_of_pods

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Cluster, KubeObject
    from lab.control_plane import ControlPlane

pytestmark = pytest.mark.lab

_SKIP_AWAIT = {"pulumi.com/skipAwait": "true"}
_NOWHERE = "no-such-node"


@pytest.fixture
def driver(lab: ControlPlane) -> Iterator[Driver]:
    with driving(lab.home.kubeconfig) as found:
        yield found


@pytest.fixture
def node(cluster: Cluster, namespace: str) -> Iterator[str]:
    with fake_node(cluster, namespace) as name:
        yield name


def _object(kind: str, namespace: str, spec: dict[str, Any], **annotations: str) -> KubeObject:
    api_version, _, name = kind.rpartition("/")
    metadata = {"name": "it", "namespace": namespace, **({"annotations": annotations} if annotations else {})}
    return {"apiVersion": api_version, "kind": name, "metadata": metadata, "spec": spec}


def _job(namespace: str, node: str, **spec: Any) -> KubeObject:
    template = {"metadata": {"annotations": spec.pop("annotations", {})}, "spec": {"restartPolicy": "Never", **pod_spec(node)}}
    return _object("batch/v1/Job", namespace, {"template": template, **spec})


def test_a_deployment_is_waited_for(driver: Driver, namespace: str, node: str) -> None:
    """Real: until all replicas are updated and available; so the outputs have the final status. An update likewise."""
    made = driver.create(deployment(namespace, node))
    assert made.outputs["status"]["availableReplicas"] == 1
    changed = driver.update(made, deployment(namespace, node, replicas=2))
    assert changed.outputs["status"]["availableReplicas"] == 2


def test_a_deployment_that_is_not_ready_in_time_is_kept(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Real: the error carries the object, so that the state has it; it says what the pods lack."""
    each = deployment(namespace, _NOWHERE)
    with refusal() as refused:
        driver.create(each, timeout=2)
    assert refused.kept
    assert refused.kept.identity == f"{namespace}/web"
    assert refused.kept.outputs["__fieldManager"]
    for said in ("was created, but did not become ready", "timed out after 2 s", "apps/v1/Deployment", "web-", "Unschedulable"):
        assert said in refused.text
    assert cluster.get("apps/v1/Deployment", "web", namespace)


def test_the_annotation_sets_the_timeout_and_the_option_wins(driver: Driver, namespace: str) -> None:
    """Real: customTimeouts before pulumi.com/timeoutSeconds before the kind's own."""
    each = deployment(namespace, _NOWHERE)
    each["metadata"]["annotations"] = {"pulumi.com/timeoutSeconds": "1"}
    with refusal() as refused:
        driver.create(each)
    assert "timed out after 1 s" in refused.text
    with refusal() as refused:
        driver.create(each, timeout=2)
    assert "timed out after 2 s" in refused.text


def test_skip_await_does_not_wait(driver: Driver, namespace: str) -> None:
    """Real: pulumi.com/skipAwait takes the object as it is, in a refresh too."""
    each = deployment(namespace, _NOWHERE)
    each["metadata"]["annotations"] = _SKIP_AWAIT
    made = driver.create(each)
    assert driver.read(made).identity == made.identity


def test_a_refresh_of_what_is_not_ready_says_so_and_keeps_it(driver: Driver, namespace: str) -> None:
    """Real: Read looks at the readiness at that moment, without waiting."""
    each = deployment(namespace, _NOWHERE)
    with refusal() as refused:
        driver.create(each, timeout=1)
    assert refused.kept
    made = driver.create({**each, "metadata": {**each["metadata"], "name": "other", "annotations": _SKIP_AWAIT}})
    waited: KubeObject = {**made.inputs, "metadata": {**made.inputs["metadata"], "annotations": {}}}
    with refusal() as refused:
        driver.read(type(made)(made.urn, made.identity, waited, made.outputs))
    assert refused.kept
    assert refused.kept.inputs["spec"] == made.inputs["spec"]
    assert "not ready" in refused.text


def test_a_pod_is_waited_for(driver: Driver, namespace: str, node: str) -> None:
    """Real: until it is Ready, or has succeeded."""
    made = driver.create(_object("v1/Pod", namespace, pod_spec(node)))
    assert made.outputs["status"]["phase"] == "Running"


def test_a_job_is_waited_for_until_it_completes(driver: Driver, namespace: str, node: str) -> None:
    """Real: until the condition Complete."""
    made = driver.create(_job(namespace, node, annotations=run_time_of_pods("1s")))
    assert made.outputs["status"]["succeeded"] == 1


def test_a_job_that_fails_is_an_error_at_once(driver: Driver, namespace: str) -> None:
    """Real: the condition Failed is an error; here it ends the wait at once."""
    with refusal() as refused:
        driver.create(_job(namespace, _NOWHERE, activeDeadlineSeconds=1))
    assert "DeadlineExceeded" in refused.text
    assert refused.kept


def test_a_suspended_job_is_not_ready(driver: Driver, namespace: str) -> None:
    """Real: waits ten minutes for it; a queued Job needs pulumi.com/skipAwait, which the message says."""
    with refusal() as refused:
        driver.create(_job(namespace, _NOWHERE, suspend=True), timeout=1)
    assert "pulumi.com/skipAwait" in refused.text


def test_a_stateful_set_is_waited_for(driver: Driver, namespace: str, node: str) -> None:
    """Real: until all replicas are ready and of the newest revision."""
    template = {"metadata": {"labels": {"app": "db"}}, "spec": pod_spec(node)}
    spec = {"serviceName": "db", "replicas": 2, "selector": {"matchLabels": {"app": "db"}}, "template": template}
    assert driver.create(_object("apps/v1/StatefulSet", namespace, spec)).outputs["status"]["readyReplicas"] == 2


def test_a_daemon_set_is_waited_for(driver: Driver, namespace: str, node: str) -> None:
    """Real: until every node that should have a pod has an available one."""
    template = {"metadata": {"labels": {"app": "agent"}}, "spec": pod_spec(node)}
    spec = {"selector": {"matchLabels": {"app": "agent"}}, "template": template}
    assert driver.create(_object("apps/v1/DaemonSet", namespace, spec)).outputs["status"]["numberAvailable"] == 1


def test_a_service_waits_for_its_pods(driver: Driver, namespace: str, node: str) -> None:
    """Real: until it targets a pod (and ten seconds more); the error says what may be wrong."""
    service = _object("v1/Service", namespace, {"selector": {"app": "web"}, "ports": [{"port": 80}]})
    with refusal() as refused:
        driver.create(service, timeout=1)
    assert ".spec.selector" in refused.text
    driver.create(deployment(namespace, node))
    assert driver.create(service).identity == f"{namespace}/it"


@pytest.mark.parametrize(
    "spec",
    [{"clusterIP": "None", "ports": [{"port": 80}], "selector": {"a": "b"}}, {"type": "ExternalName", "externalName": "example.com"}],
)
def test_a_service_without_pods_of_its_own_is_ready(driver: Driver, namespace: str, spec: dict[str, Any]) -> None:
    """Real: headless services and those of type ExternalName are not waited for."""
    assert driver.create(_object("v1/Service", namespace, spec), timeout=1).identity == f"{namespace}/it"


def test_a_load_balancer_waits_for_its_address(driver: Driver, namespace: str, node: str) -> None:
    """Real: until the cloud gives one; the lab has none that does."""
    driver.create(deployment(namespace, node))
    with refusal() as refused:
        driver.create(
            _object("v1/Service", namespace, {"type": "LoadBalancer", "selector": {"app": "web"}, "ports": [{"port": 80}]}), timeout=5
        )
    assert "an address for the load balancer" in refused.text


def test_a_claim_waits_to_be_bound_unless_its_class_waits_for_a_pod(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Real: Bound, or Pending with volumeBindingMode WaitForFirstConsumer."""
    for mode in ("WaitForFirstConsumer", "Immediate"):
        name = f"{namespace}-{mode.lower()}"
        cluster.apply(
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "StorageClass",
                "metadata": {"name": name},
                "provisioner": "example.com/none",
                "volumeBindingMode": mode,
            }
        )
        claim = _object(
            "v1/PersistentVolumeClaim",
            namespace,
            {"storageClassName": name, "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        )
        claim["metadata"]["name"] = mode.lower()
        if mode == "Immediate":
            with refusal() as refused:
                driver.create(claim, timeout=1)
            assert "to be Bound (now Pending" in refused.text
        else:
            assert driver.create(claim).outputs["status"]["phase"] == "Pending"
        cluster.delete("storage.k8s.io/v1/StorageClass", name)


def test_a_quota_waits_for_its_controller(driver: Driver, namespace: str) -> None:
    """Real: until the status has the same hard limits."""
    made = driver.create(_object("v1/ResourceQuota", namespace, {"hard": {"pods": "3"}}))
    assert made.outputs["status"]["hard"] == {"pods": "3"}


def test_a_custom_resource_is_ready_when_it_exists(driver: Driver, namespace: str) -> None:
    """Real: does not wait for conditions of custom resources (unless PULUMI_K8S_AWAIT_ALL is set, which the stand-in does not read)."""
    queue = _object("kueue.x-k8s.io/v1beta1/LocalQueue", namespace, {"clusterQueue": "not-there"})
    assert driver.create(queue).identity == f"{namespace}/it"


def test_wait_for_names_a_condition_or_a_value(driver: Driver, namespace: str) -> None:
    """Real: pulumi.com/waitFor takes condition=, jsonpath= and a JSON list of these."""
    spec = {"clusterQueue": "not-there"}
    kind = "kueue.x-k8s.io/v1beta1/LocalQueue"
    made = driver.create(_object(kind, namespace, spec, **{"pulumi.com/waitFor": "condition=Active=False"}))
    assert [each["status"] for each in made.outputs["status"]["conditions"]] == ["False"]
    wish = '["condition=Active=False", "jsonpath={.spec.clusterQueue}=other"]'
    with refusal() as refused:
        driver.create(_object(kind, namespace, spec, **{"pulumi.com/waitFor": wish, "pulumi.com/patchForce": "true"}), timeout=1)
    assert "{.spec.clusterQueue} to be other (now not-there)" in refused.text


def test_a_wish_that_cannot_be_understood_is_named(driver: Driver, namespace: str) -> None:
    """Real: refuses what is neither condition= nor jsonpath=."""
    each = config_map(namespace, a="1")
    each["metadata"]["annotations"] = {"pulumi.com/waitFor": "sunshine"}
    with refusal() as refused:
        driver.create(each)
    assert "'sunshine'" in refused.text


def test_what_is_deleted_while_it_is_waited_for_is_an_error(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Real: not verified for each kind; here an object that goes away ends the wait."""

    def delete_once_there() -> None:
        cluster.wait_for("apps/v1/Deployment", bool, "the Deployment", namespace=namespace)
        cluster.delete("apps/v1/Deployment", "web", namespace)

    deleting = threading.Thread(target=delete_once_there)
    deleting.start()
    with refusal() as refused:
        driver.create(deployment(namespace, _NOWHERE), timeout=30)
    deleting.join()
    assert "was deleted while it was waited for" in refused.text


def test_cancelling_ends_the_wait_and_keeps_the_object(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Real: Ctrl-C ends every wait with what is known so far."""

    def cancel_once_there() -> None:
        cluster.wait_for("apps/v1/Deployment", bool, "the Deployment", namespace=namespace)
        driver.stub.Cancel(provider_pb2.GetSchemaRequest())

    cancelling = threading.Thread(target=cancel_once_there)
    cancelling.start()
    with refusal() as refused:
        driver.create(deployment(namespace, _NOWHERE), timeout=60)
    cancelling.join()
    assert "cancelled while waiting for" in refused.text
    assert refused.kept
