"""Third-party kinds of workloads and nodes: a real API server with their own definitions accepts what is rendered and declared.

The definitions are those of the projects' Go modules, at the versions below. Their controllers do not run here.
"""

from __future__ import annotations

import json
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from bench_lint import module_folder
from gpudirect_stack import gpudirect_settings
from plan_settings import plan_of as plan_of_settings
from program_declarations import declared, plan_of
from server_questions import integers, serving

from flexspot.capacity.workloads.kinds import objects_of
from flexspot.components.tenancy.team import restricted
from flexspot.lab.cluster import Cluster, read_objects

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexspot.lab.cluster import KubeObject
    from flexspot.lab.control_plane import LabControlPlane

pytestmark = pytest.mark.lab

MODULES = {
    "github.com/kedacore/keda/v2@v2.18.1": "h1:h6bRt/IOxxtZpJlHSqhdH/lcInH7Z9obxg/JvWOmGAw=",
    "github.com/GoogleCloudPlatform/gke-networking-api@v0.2.11": "h1:U9n3hHMyWvGHO+wiEUxoLHQlqUxU0oARuCHoDZTDxUQ=",
}
"""KEDA's and GKE's modules, with the checksums of the reviewed versions."""

QUEUES = {
    "prod-gke": "projects/acme-ai-prod/subscriptions/prod.search.work",
    "prod-eks": "https://sqs.us-east-1.amazonaws.com/111122223333/prod_search_work",
}
NAMESPACE = "of-other-projects"
IMAGE = "registry.example.com/search/ranker:2.1"


def rendered(stack: str, kind: str, what: str, **fields: Any) -> KubeObject:
    """Return the one object of kind `what` of a workload of a shipped stack."""
    objects = objects_of(plan_of(stack), kind, {"name": "ranker", "image": IMAGE, **fields})
    [found] = [each for each in objects if each["kind"] == what]
    found["metadata"]["namespace"] = NAMESPACE
    return found


def definitions() -> Iterator[Path]:
    keda, networks = map(downloaded, MODULES)
    yield module_folder("sigs.k8s.io/jobset", "kueue") / "config" / "components" / "crd" / "bases" / "jobset.x-k8s.io_jobsets.yaml"
    for kind in ("scaledjobs", "scaledobjects", "triggerauthentications"):
        yield keda / "config" / "crd" / "bases" / f"keda.sh_{kind}.yaml"
    for kind in ("gkenetworkparamsets", "networks"):
        yield networks / "config" / "crds" / f"networking.gke.io_{kind}.yaml"


def downloaded(module: str) -> Path:
    """Return the folder of a Go module."""
    command = ["go", "mod", "download", "-json", module]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert found["Sum"] == MODULES[module], "it is the module that was looked at"
    return Path(found["Dir"])


@pytest.fixture(scope="module")
def server(lab: LabControlPlane) -> Iterator[Cluster]:
    """Yield the lab's API server with the definitions, and a namespace like a team's."""
    cluster = Cluster(lab.home.kubeconfig)
    with ExitStack() as stack:
        for definition in read_objects(*definitions()):
            stack.enter_context(serving(cluster, definition))
        cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": restricted()}})
        cluster.wait_for("v1/ServiceAccount", bool, f"the service account of {NAMESPACE}", namespace=NAMESPACE)
        cluster.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "workloads", "namespace": NAMESPACE}})
        yield cluster
        cluster.delete("v1/Namespace", NAMESPACE)


def taken(server: Cluster, each: KubeObject) -> KubeObject:
    """Return the object as the server would store it."""
    [found] = server.apply(each, dry_run=True)
    return found


@pytest.mark.parametrize("stack,gpus,pods", [("prod-gke", 1, 2), ("prod-eks", 8, 4)])
def test_a_job_set_is_accepted(stack: str, gpus: int, pods: int, server: Cluster) -> None:
    training = {"team": "nlp", "workload_class": "training", "jobset": True, "gpus": gpus, "pods": pods}

    stored = taken(server, rendered(stack, "checkpointed-job", "JobSet", **training))

    [job] = stored["spec"]["replicatedJobs"]
    assert job["template"]["spec"]["completions"] == pods
    assert stored["spec"]["suspend"] is True, "created suspended; Kueue resumes it"


@pytest.mark.parametrize("stack", QUEUES)
def test_workers_that_keda_starts_and_scales_are_accepted(stack: str, server: Cluster) -> None:
    def workers(what: str, team: str, workload_class: str) -> KubeObject:
        return rendered(stack, "queue-workers", what, keda=True, queue=QUEUES[stack], team=team, workload_class=workload_class)

    assert taken(server, workers("ScaledJob", "nlp", "best-effort"))["spec"]["minReplicaCount"] == 0
    assert taken(server, workers("ScaledObject", "search", "inference"))["spec"]["minReplicaCount"] == 0
    assert taken(server, workers("TriggerAuthentication", "search", "inference"))["spec"]["podIdentity"]


def test_googles_own_definitions_take_every_network_of_gpudirect(server: Cluster) -> None:
    networks: list[KubeObject] = []
    for each in declared("prod-gke", gpudirect_settings()).made.values():
        if each.type.startswith("kubernetes:networking.gke.io/v1:") and "rdma" in each.name:
            kind = each.type.rpartition(":")[2]
            networks.append({"apiVersion": "networking.gke.io/v1", "kind": kind, **integers(each.inputs)})
            # The name of a network in Google Cloud is known only once it exists.
            if kind == "GKENetworkParamSet":
                networks[-1]["spec"] |= {"vpc": "prod-rdma", "vpcSubnet": "prod-rdma-0"}

    assert [each["kind"] for each in networks].count("Network") == 9
    server.apply(*networks, dry_run=True)


def test_a_teams_namespace_takes_a_pod_of_a_gang_with_gpudirect(server: Cluster) -> None:
    written = {"name": "bert", "team": "nlp", "workload_class": "training", "image": IMAGE, "pods": 2, "gpus": 8, "gpu_models": ("h200",)}
    [job] = objects_of(plan_of_settings(gpudirect_settings()), "checkpointed-job", written)
    template = job["spec"]["template"]
    spec = {name: value for name, value in template["spec"].items() if name != "priorityClassName"}
    metadata = {"name": "bert-0", "namespace": NAMESPACE, "annotations": template["metadata"]["annotations"]}

    stored = taken(server, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})

    assert len(json.loads(stored["metadata"]["annotations"]["networking.gke.io/interfaces"])) == 9
