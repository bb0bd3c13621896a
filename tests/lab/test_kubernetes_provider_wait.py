"""The stand-in Kubernetes provider waiting until objects are ready.

Each test says in its first line what the official provider (pulumi-kubernetes 4.34.2) does, and in which recorded scenario that is seen
(tests/lab/recordings); "source" means that only its code says so.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from provider_driver import Driver, config_map, deployment, driving, fake_node, pod_spec, refusal
from pulumi.runtime.proto import provider_pb2

from lab.exercise.play import run_time_of_pods

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
    """Official: until all replicas are updated and available; so the outputs have the final status. An update likewise (08)."""
    made = driver.create(deployment(namespace, node))
    assert made.outputs["status"]["availableReplicas"] == 1
    changed = driver.update(made, deployment(namespace, node, replicas=2))
    assert changed.outputs["status"]["availableReplicas"] == 2


def test_a_deployment_that_is_not_ready_in_time_is_kept(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Official: the error carries the object, so that the state has it, and what is missing (08)."""
    each = deployment(namespace, _NOWHERE)
    with refusal() as refused:
        driver.create(each, timeout=2)
    assert refused.kept
    assert refused.kept.identity == f"{namespace}/web"
    assert refused.kept.outputs["__fieldManager"]
    assert refused.text.endswith(
        "was successfully created, but the Kubernetes API server reported that it failed to fully initialize or become live: "
        "'web' timed out waiting to be Ready"
    )
    assert refused.reasons == [
        refused.text,
        "[MinimumReplicasUnavailable] Deployment does not have minimum availability.",
        "Minimum number of live Pods was not attained",
    ]
    assert cluster.get("apps/v1/Deployment", "web", namespace)


def test_the_annotation_sets_the_timeout_and_the_option_wins(driver: Driver, namespace: str) -> None:
    """Official: customTimeouts before pulumi.com/timeoutSeconds before the kind's own (08)."""
    each = deployment(namespace, _NOWHERE)
    each["metadata"]["annotations"] = {"pulumi.com/timeoutSeconds": "1"}
    for name, timeout, least in (("short", 0, 1), ("long", 3, 3)):
        each["metadata"]["name"] = name
        started = time.monotonic()
        with refusal():
            driver.create(each, timeout=timeout)
        assert least <= time.monotonic() - started < 60


def test_skip_await_does_not_wait(driver: Driver, namespace: str) -> None:
    """Official: pulumi.com/skipAwait takes the object as it is (08), in a refresh too (source)."""
    each = deployment(namespace, _NOWHERE)
    each["metadata"]["annotations"] = _SKIP_AWAIT
    made = driver.create(each)
    assert driver.read(made).identity == made.identity


def test_a_refresh_of_what_is_not_ready_says_so_and_keeps_it(driver: Driver, namespace: str) -> None:
    """Official: Read looks at the readiness of a Deployment or a Job at that moment, without waiting (08)."""
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
    assert refused.text == "Resource 'other' was created but failed to initialize"


def test_a_pod_is_waited_for(driver: Driver, namespace: str, node: str) -> None:
    """Official: until it is Ready, or has succeeded."""
    made = driver.create(_object("v1/Pod", namespace, pod_spec(node)))
    assert made.outputs["status"]["phase"] == "Running"


def test_a_job_is_waited_for_until_it_completes(driver: Driver, namespace: str, node: str) -> None:
    """Official: until the condition Complete (08)."""
    made = driver.create(_job(namespace, node, annotations=run_time_of_pods("1s")))
    assert made.outputs["status"]["succeeded"] == 1


def test_a_job_that_fails_is_an_error_at_once(driver: Driver, namespace: str) -> None:
    """Official: the condition Failed ends the wait with an error (source)."""
    with refusal() as refused:
        driver.create(_job(namespace, _NOWHERE, activeDeadlineSeconds=1))
    assert "Resource 'it' was created but failed to initialize" in refused.text
    assert "[DeadlineExceeded]" in refused.reasons[1]
    assert refused.kept


def test_a_suspended_job_is_not_ready(driver: Driver, namespace: str) -> None:
    """Official: waits ten minutes for it (08); a queued Job needs pulumi.com/skipAwait, which the stand-in says."""
    with refusal() as refused:
        driver.create(_job(namespace, _NOWHERE, suspend=True), timeout=1)
    assert "pulumi.com/skipAwait" in refused.reasons[1]


def test_a_stateful_set_is_waited_for(driver: Driver, namespace: str, node: str) -> None:
    """Official: until all replicas are ready and of the newest revision."""
    template = {"metadata": {"labels": {"app": "db"}}, "spec": pod_spec(node)}
    spec = {"serviceName": "db", "replicas": 2, "selector": {"matchLabels": {"app": "db"}}, "template": template}
    assert driver.create(_object("apps/v1/StatefulSet", namespace, spec)).outputs["status"]["readyReplicas"] == 2


def test_a_daemon_set_is_waited_for(driver: Driver, namespace: str, node: str) -> None:
    """Official: until every node that should have a pod has an available one."""
    template = {"metadata": {"labels": {"app": "agent"}}, "spec": pod_spec(node)}
    spec = {"selector": {"matchLabels": {"app": "agent"}}, "template": template}
    assert driver.create(_object("apps/v1/DaemonSet", namespace, spec)).outputs["status"]["numberAvailable"] == 1


def test_a_service_waits_for_its_pods(driver: Driver, namespace: str, node: str) -> None:
    """Official: until it targets a pod; one that targets none is taken as it is when the time is over (08)."""
    service = _object("v1/Service", namespace, {"selector": {"app": "web"}, "ports": [{"port": 80}]})
    started = time.monotonic()
    driver.delete(driver.create(service, timeout=2))
    assert time.monotonic() - started >= 2
    driver.create(deployment(namespace, node))
    started = time.monotonic()
    assert driver.create(service).identity == f"{namespace}/it"
    assert time.monotonic() - started < 10


@pytest.mark.parametrize(
    "spec",
    [{"clusterIP": "None", "ports": [{"port": 80}], "selector": {"a": "b"}}, {"type": "ExternalName", "externalName": "example.com"}],
)
def test_a_service_without_pods_of_its_own_is_ready(driver: Driver, namespace: str, spec: dict[str, Any]) -> None:
    """Official: headless services (08) and those of type ExternalName (source) are not waited for."""
    assert driver.create(_object("v1/Service", namespace, spec), timeout=1).identity == f"{namespace}/it"


def test_a_load_balancer_waits_for_its_address(driver: Driver, namespace: str, node: str) -> None:
    """Official: until the cloud gives one; the lab has none that does."""
    driver.create(deployment(namespace, node))
    with refusal() as refused:
        driver.create(
            _object("v1/Service", namespace, {"type": "LoadBalancer", "selector": {"app": "web"}, "ports": [{"port": 80}]}), timeout=5
        )
    assert refused.reasons[1] == "Service was not allocated an IP address; does your cloud provider support this?"


def test_a_claim_waits_to_be_bound_unless_its_class_waits_for_a_pod(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Official: Bound, or Pending with volumeBindingMode WaitForFirstConsumer."""
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
            assert "the claim is Pending, not Bound" in refused.reasons[1]
        else:
            assert driver.create(claim).outputs["status"]["phase"] == "Pending"
        cluster.delete("storage.k8s.io/v1/StorageClass", name)


def test_a_quota_waits_for_its_controller(driver: Driver, namespace: str) -> None:
    """Official: until the status has the same hard limits (02)."""
    made = driver.create(_object("v1/ResourceQuota", namespace, {"hard": {"pods": "3"}}))
    assert made.outputs["status"]["hard"] == {"pods": "3"}


def test_a_custom_resource_is_ready_when_it_exists(driver: Driver, namespace: str) -> None:
    """Official: does not wait for conditions of custom resources (02, 03; PULUMI_K8S_AWAIT_ALL is not read by the stand-in)."""
    queue = _object("kueue.x-k8s.io/v1beta1/LocalQueue", namespace, {"clusterQueue": "not-there"})
    assert driver.create(queue).identity == f"{namespace}/it"


def test_wait_for_names_a_condition_or_a_value(driver: Driver, namespace: str) -> None:
    """Official: pulumi.com/waitFor takes condition=, jsonpath= (08) and a JSON list of these (source)."""
    spec = {"clusterQueue": "not-there"}
    kind = "kueue.x-k8s.io/v1beta1/LocalQueue"
    made = driver.create(_object(kind, namespace, spec, **{"pulumi.com/waitFor": "condition=Active=False"}))
    assert [each["status"] for each in made.outputs["status"]["conditions"]] == ["False"]
    wish = '["condition=Active=False", "jsonpath={.spec.clusterQueue}=other"]'
    driver.delete(made)
    with refusal() as refused:
        driver.create(_object(kind, namespace, spec, **{"pulumi.com/waitFor": wish}), timeout=1)
    assert refused.text.endswith("failed to fully initialize or become live: timed out waiting for the condition")
    assert refused.reasons == [refused.text]


def test_a_wish_that_cannot_be_understood_is_named(driver: Driver, namespace: str) -> None:
    """Official: refuses what is neither condition= nor jsonpath=."""
    each = config_map(namespace, a="1")
    each["metadata"]["annotations"] = {"pulumi.com/waitFor": "sunshine"}
    with refusal() as refused:
        driver.create(each)
    assert "'sunshine'" in refused.text


def test_what_is_deleted_while_it_is_waited_for_is_an_error(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Official: not verified for each kind; here an object that goes away ends the wait."""

    def delete_once_there() -> None:
        cluster.wait_for("apps/v1/Deployment", bool, "the Deployment", namespace=namespace)
        cluster.delete("apps/v1/Deployment", "web", namespace)

    deleting = threading.Thread(target=delete_once_there)
    deleting.start()
    with refusal() as refused:
        driver.create(deployment(namespace, _NOWHERE), timeout=30)
    deleting.join()
    assert "was deleted while it was waited for" in refused.reasons[1]


def test_cancelling_ends_the_wait_and_keeps_the_object(driver: Driver, cluster: Cluster, namespace: str) -> None:
    """Official: Ctrl-C ends every wait with what is known so far (source)."""

    def cancel_once_there() -> None:
        cluster.wait_for("apps/v1/Deployment", bool, "the Deployment", namespace=namespace)
        driver.stub.Cancel(provider_pb2.GetSchemaRequest())

    cancelling = threading.Thread(target=cancel_once_there)
    cancelling.start()
    with refusal() as refused:
        driver.create(deployment(namespace, _NOWHERE), timeout=60)
    cancelling.join()
    assert 'Resource operation was cancelled for "web"' in refused.text
    assert refused.kept
