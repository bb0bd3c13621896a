"""Measurement of GPUs on a real API server: it accepts the objects and their pod, and the exporter may read what it exports."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pulumi
import pytest
from pulumi_kubernetes.core.v1 import Namespace
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs
from server_questions import integers

from flexspot.capacity.chargeback.queries import kube_state_resources
from flexspot.components.measurement import KubeStateMetrics, RecordingRules
from flexspot.components.tenancy.team import restricted
from flexspot.lab.cluster import read_objects, wait_until_established

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexspot.lab.cluster import Cluster, KubeObject

pytestmark = pytest.mark.lab

Register = Callable[[Callable[[], object]], Any]

DEFINITIONS = Path(__file__).parents[1] / "components" / "measurement" / "monitoring_crds.yaml"
DEFINITION = "apiextensions.k8s.io/v1/CustomResourceDefinition"


@pytest.fixture(scope="module")
def namespace() -> str:
    return f"measurement-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def with_monitoring_kinds(cluster: Cluster) -> Iterator[Cluster]:
    """Yield the API server with the kinds of Google's service and of the operator."""
    definitions = read_objects(DEFINITIONS)
    names = {each["metadata"]["name"] for each in definitions}
    cluster.apply(*definitions)
    wait_until_established(cluster, sorted(names))
    yield cluster
    for name in names:
        cluster.delete(DEFINITION, name)

    def gone(found: list[KubeObject]) -> bool:
        return not names & {each["metadata"]["name"] for each in found}

    # A busy server may find a kind's storage not ready and retry with growing pauses: Terminating, InstanceDeletionFailed.
    cluster.wait_for(DEFINITION, gone, "the deletion of the kinds of monitoring", timeout_seconds=300)


def objects_of(register: Register, namespace: str, prometheus: str) -> list[KubeObject]:
    """Return all objects as the API server gets them, a namespace first."""

    def declare() -> None:
        created = Namespace("space", metadata=ObjectMetaArgs(name=namespace, labels=restricted()))
        inside = pulumi.ResourceOptions(depends_on=[created])
        labels = {"flexspot.dev/owner": "ml"}
        KubeStateMetrics("ksm", {"namespace": namespace, "prometheus": prometheus, "labels": labels}, inside)
        RecordingRules("rules", {"namespace": namespace, "prometheus": prometheus, "labels": labels}, inside)

    return [integers(inputs) for token, _, inputs in register(declare).resources if token.startswith("kubernetes:")]


@pytest.fixture
def deployed(with_monitoring_kinds: Cluster, register: Register, namespace: str) -> Iterator[Callable[[str], list[KubeObject]]]:
    """Yield a function that applies the objects, and remove them afterwards."""
    objects: list[KubeObject] = []

    def apply(prometheus: str) -> list[KubeObject]:
        found = objects_of(register, namespace, prometheus)
        for each in found:
            with_monitoring_kinds.apply(each)
        objects.extend(found)
        return found

    yield apply
    for each in reversed(objects):
        with_monitoring_kinds.delete(f"{each['apiVersion']}/{each['kind']}", each["metadata"]["name"], each["metadata"].get("namespace"))

    def gone(found: list[KubeObject]) -> bool:
        return all(each["metadata"]["name"] != namespace for each in found)

    with_monitoring_kinds.wait_for("v1/Namespace", gone, f"the deletion of {namespace}")


def may(cluster: Cluster, namespace: str, verb: str, resource: str, group: str = "") -> bool:
    """Return whether the exporter's service account may do this to a resource everywhere."""
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "metadata": {},
        "spec": {
            "user": f"system:serviceaccount:{namespace}:kube-state-metrics",
            "groups": ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"],
            "resourceAttributes": {"verb": verb, "resource": resource, "group": group},
        },
    }
    return bool(cluster.create(review)["status"]["allowed"])


def test_the_objects_are_taken_and_the_exporters_pod_is_let_into_its_restricted_namespace(
    deployed: Callable[[str], list[KubeObject]], cluster: Cluster, namespace: str
) -> None:
    created = deployed("operator")

    assert {each["kind"] for each in created} > {"ServiceMonitor", "PrometheusRule"}
    [pod] = cluster.wait_for("v1/Pod", lambda found: found or None, "the exporter's pod", namespace=namespace)
    assert pod["metadata"]["labels"]["app.kubernetes.io/name"] == "kube-state-metrics"


def test_the_exporter_may_list_what_it_exports_and_nothing_else(
    deployed: Callable[[str], list[KubeObject]], with_monitoring_kinds: Cluster, namespace: str
) -> None:
    deployed("annotations")

    allowed = {(verb, resource) for resource in kube_state_resources() for verb in ("list", "watch")}
    verbs = ("get", "list", "watch", "create", "update", "patch", "delete")
    for resource in (*kube_state_resources(), "secrets", "configmaps", "services", "serviceaccounts", "events"):
        for verb in verbs:
            allowed_now = may(with_monitoring_kinds, namespace, verb, resource)
            assert allowed_now == ((verb, resource) in allowed), f"{verb} {resource}"
    assert not may(with_monitoring_kinds, namespace, "list", "jobs", "batch")
    assert not may(with_monitoring_kinds, namespace, "list", "clusterroles", "rbac.authorization.k8s.io")
