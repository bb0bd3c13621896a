"""Services as `flexspot render` makes them, on the program's own namespaces and queues: served, drained, replaced, put to sleep, started.

Nodes and pods are fake; the API server, its access rules, the controllers and Kueue are real.
"""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.parse import urlparse

import pytest
import yaml
from kubernetes.client.exceptions import ApiException
from queue_fixtures import FOUR_L4, QueueGround, queues_of

from capacity.node_labels import ZONE_LABEL
from capacity.workloads import notebook_stop
from capacity.workloads.kinds import objects_of
from capacity.workloads.notebook_watch import scale_path
from lab.cluster import POD, condition, status_of
from lab.exercise.jobs import NODE, UNTIL_RELEASED, run_time_of_pods, running_pods

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from queue_objects import Register

    from lab.cluster import Cluster, KubeObject
    from lab.control_plane import ControlPlane
    from lab.tools.build import Tools

pytestmark = pytest.mark.lab

DEPLOYMENT = "apps/v1/Deployment"
PEOPLE = "ml-alpha"

_TOO_MANY, _FORBIDDEN = 429, 403


@pytest.fixture
def ground(cluster: Cluster, register: Register) -> Iterator[QueueGround]:
    """A team with four GPUs in its queue and three for services, on two nodes each."""
    pools = [
        {"name": "l4-spot", "machine": FOUR_L4, "capacity_type": "spot", "max_nodes": 1, "serves": ["interactive", "best-effort"]},
        {"name": "l4-desk", "machine": FOUR_L4, "capacity_type": "on-demand", "max_nodes": 2, "serves": ["inference"]},
    ]
    team = {"name": "alpha", "shares": {"l4-spot": 4}, "unqueued": {"l4-desk": 3}, "submitters": [PEOPLE]}
    with queues_of(cluster, register, {"l4-spot": 1, "l4-desk": 2}, pools=pools, teams=[team]) as made:
        # The scheduler spreads over what nodes say of themselves, and passes over those that say nothing.
        for number, node in enumerate(cluster.list(NODE)):
            cluster.patch(NODE, node["metadata"]["name"], {"metadata": {"labels": {ZONE_LABEL: f"zone-{number}"}}})
        yield made


def declared(ground: QueueGround, kind: str, name: str, **fields: Any) -> list[KubeObject]:
    """What a service is made of, applied; Jobs run until they are let go."""
    wanted = {"name": name, "team": ground.own("alpha"), "image": "registry.example.com/it:1", "cpu": "1", "memory": "1Gi", **fields}
    objects = objects_of(ground.plan, kind, wanted)
    for each in objects:
        held = each["spec"]["jobTemplate"] if each["kind"] == "CronJob" else each
        if held is not each or each["kind"] == "Job":
            annotations = held["spec"]["template"]["metadata"].setdefault("annotations", {})
            annotations |= run_time_of_pods(UNTIL_RELEASED)
    return ground.cluster.apply(*objects)


def wait_for_pods(ground: QueueGround, name: str, count: int, without: frozenset[str] = frozenset()) -> list[KubeObject]:
    """The running pods of a service, as soon as they are so many and ready, and none of them is one of `without`."""

    def found(pods: list[KubeObject]) -> tuple[list[KubeObject]] | None:
        own = [each for each in pods if each["metadata"]["labels"].get("app.kubernetes.io/name") == name]
        ready = [each for each in running_pods(own) if condition(each, "Ready")]
        return (ready,) if len(ready) == len(own) == count and not without & names(ready) else None

    [pods] = ground.cluster.wait_for(POD, found, f"{count} ready pods of {name}", namespace=ground.own("alpha"))
    return pods


def names(pods: list[KubeObject]) -> frozenset[str]:
    return frozenset(each["metadata"]["name"] for each in pods)


def replicas(ground: QueueGround, name: str) -> int:
    found = ground.cluster.get(DEPLOYMENT, name, ground.own("alpha"))
    assert found is not None
    return found["spec"]["replicas"]


def test_a_server_is_drained_one_replica_at_a_time_and_comes_back_when_its_node_is_gone(ground: QueueGround) -> None:
    cluster, namespace = ground.cluster, ground.own("alpha")
    declared(ground, "model-server", "ranker", workload_class="inference", max_replicas=3, callers=["gateway"])
    first = wait_for_pods(ground, "ranker", 2)

    assert len({each["spec"]["nodeName"] for each in first}) == 2, "replicas spread over the nodes"
    nodes = [each["metadata"]["name"] for each in cluster.list(NODE)]

    def counted(found: list[KubeObject]) -> bool:
        return [(each["status"].get("expectedPods"), each["status"].get("currentHealthy")) for each in found] == [(2, 2)]

    cluster.wait_for("policy/v1/PodDisruptionBudget", counted, "the budget to count both replicas", namespace=namespace)
    # While the nodes are drained, no other pod takes the place of the one that went.
    for node in nodes:
        cluster.patch(NODE, node, {"spec": {"unschedulable": True}})
    one, other = sorted(names(first))
    cluster.evict(one, namespace)
    with pytest.raises(ApiException) as refused:
        cluster.evict(other, namespace)
    assert status_of(refused.value) == _TOO_MANY
    for node in nodes:
        cluster.patch(NODE, node, {"spec": {"unschedulable": None}})
    second = wait_for_pods(ground, "ranker", 2, without=frozenset({one}))

    gone = next(each for each in second if each["metadata"]["name"] != other)
    cluster.delete(NODE, gone["spec"]["nodeName"])
    third = wait_for_pods(ground, "ranker", 2, without=names([gone]))
    assert {each["spec"]["nodeName"] for each in third}.isdisjoint({gone["spec"]["nodeName"]})


def test_a_standing_notebook_is_started_by_its_people_and_stopped_by_its_watch_and_neither_may_do_more(
    ground: QueueGround, lab: ControlPlane, tools: Tools, tmp_path: Path
) -> None:
    namespace = ground.own("alpha")
    home = {"name": f"home-{ground.suffix}"}
    disk = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/none"}}
    ground.cluster.apply({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": home, "spec": disk})
    declared(ground, "notebook", "desk", workload_class="inference", home_gib=1)
    assert (replicas(ground, "desk"), wait_for_pods(ground, "desk", 0)) == (0, [])

    started = as_people(tools, lab, namespace, "scale", "deployment", "desk", "--replicas=1")

    assert "deployment.apps/desk scaled" in started
    wait_for_pods(ground, "desk", 1)
    told = watch_environment(ground, lab, tools, tmp_path)
    notebook_stop.stop(told)
    wait_for_pods(ground, "desk", 0)
    assert replicas(ground, "desk") == 0
    with pytest.raises(HTTPError) as refused:
        notebook_stop.stop({**told, notebook_stop.SCALE_VARIABLE: scale_path(namespace, "other")})
    assert refused.value.code == _FORBIDDEN
    refused.value.close()
    assert "Forbidden" in as_people(tools, lab, namespace, "delete", "deployment", "desk")
    ground.cluster.delete("v1/PersistentVolume", home["name"])


def test_a_session_is_started_from_its_pattern_admitted_by_the_queue_and_complete_when_its_server_ends(
    ground: QueueGround, lab: ControlPlane, tools: Tools
) -> None:
    namespace = ground.own("alpha")
    home = {"name": f"home-{ground.suffix}"}
    disk = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/none"}}
    ground.cluster.apply({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": home, "spec": disk})
    declared(ground, "notebook", "desk", workload_class="interactive", home_gib=1)

    started = as_people(tools, lab, namespace, "create", "job", "desk", "--from=cronjob/desk")

    assert "job.batch/desk created" in started
    ground.wait_for_running("alpha", "desk")
    assert "already exists" in as_people(tools, lab, namespace, "create", "job", "desk", "--from=cronjob/desk")
    assert ground.wait_for_flavors("alpha", "desk") == {ground.own("l4-spot")}
    ground.finish("alpha", "desk")
    ground.cluster.delete("v1/PersistentVolume", home["name"])


def test_workers_are_a_job_of_the_queue_and_so_is_every_job_without_a_label_which_is_why_no_cron_job_stops_notebooks(
    ground: QueueGround,
) -> None:
    declared(ground, "queue-workers", "score", workload_class="best-effort", queue="http://127.0.0.1:5000/1/work", workers=2)

    workers = wait_for_pods(ground, "score", 2)
    assert {each["metadata"]["labels"]["flexspot.dev/workload-type"] for each in workers} == {"worker"}
    spec = {"suspend": True, "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "stop", "image": "stop:1"}]}}}
    metadata = {"name": "stop", "namespace": ground.own("alpha")}
    made = ground.cluster.create({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec})
    assert made["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "default"
    ground.finish("alpha", "score")


def as_people(tools: Tools, lab: ControlPlane, namespace: str, *command: str) -> str:
    """What kubectl says to a member of the team's group."""
    called = [tools.binary("kubectl"), f"--kubeconfig={lab.home.kubeconfig}", "-n", namespace, "--as=ann", f"--as-group={PEOPLE}", *command]
    printed = subprocess.run(called, capture_output=True, text=True, check=False, env={"PATH": os.environ["PATH"]})
    return printed.stdout + printed.stderr


def watch_environment(ground: QueueGround, lab: ControlPlane, tools: Tools, folder: Path) -> dict[str, str]:
    """What the watch in a pod has: the API server's address, its certificate authority, the token of the team's service account."""
    config = yaml.safe_load(lab.home.kubeconfig.read_text())
    server = urlparse(str(config["clusters"][0]["cluster"]["server"]))
    namespace = ground.own("alpha")
    called = [tools.binary("kubectl"), f"--kubeconfig={lab.home.kubeconfig}", "-n", namespace, "create", "token", "workloads"]
    token = subprocess.run(called, capture_output=True, text=True, check=True, env={"PATH": os.environ["PATH"]}).stdout.strip()
    (folder / "token").write_text(token)
    roots = ground.cluster.get("v1/ConfigMap", "kube-root-ca.crt", namespace)
    assert roots is not None
    (folder / "ca.crt").write_text(roots["data"]["ca.crt"])
    return {
        "KUBERNETES_SERVICE_HOST": str(server.hostname),
        "KUBERNETES_SERVICE_PORT": str(server.port),
        notebook_stop.SCALE_VARIABLE: scale_path(namespace, "desk"),
        notebook_stop.CREDENTIALS_VARIABLE: str(folder),
    }
