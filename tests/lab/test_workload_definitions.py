"""The kinds of others that workloads use where they are installed: a real API server with their own definitions takes what is rendered.

The definitions are those of the projects' Go modules, at the versions below. Nothing here runs their controllers.
"""

from __future__ import annotations

import json
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from bench_lint import module_folder
from server_questions import changed, refusal, serving

from capacity.plan.build import plan_of_stack_file
from capacity.workloads.kinds import objects_of
from lab.cluster import Cluster, read_objects

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import KubeObject
    from lab.control_plane import ControlPlane

pytestmark = pytest.mark.lab

KEDA = "github.com/kedacore/keda/v2@v2.18.1"
KEDA_SUM = "h1:h6bRt/IOxxtZpJlHSqhdH/lcInH7Z9obxg/JvWOmGAw="

STACKS = Path(__file__).parents[2] / "stacks"
QUEUES = {
    "prod-gke": "projects/acme-ai-prod/subscriptions/prod.search.work",
    "prod-eks": "https://sqs.us-east-1.amazonaws.com/111122223333/prod_search_work",
}
NAMESPACE = "of-other-projects"
IMAGE = "registry.example.com/search/ranker:2.1"


def rendered(stack: str, kind: str, what: str, **fields: Any) -> KubeObject:
    """The one object of kind `what` that a workload of a shipped stack is made of."""
    plan = plan_of_stack_file(STACKS / f"Pulumi.{stack}.yaml").plan
    objects = objects_of(plan, kind, {"name": "ranker", "image": IMAGE, **fields})
    [found] = [each for each in objects if each["kind"] == what]
    found["metadata"]["namespace"] = NAMESPACE
    return found


def workers(stack: str, what: str, team: str, workload_class: str) -> KubeObject:
    return rendered(stack, "queue-workers", what, keda=True, queue=QUEUES[stack], team=team, workload_class=workload_class)


def jobset_definitions() -> Path:
    return module_folder("sigs.k8s.io/jobset", "kueue") / "config" / "components" / "crd" / "bases"


def keda_definitions() -> Path:
    command = ["go", "mod", "download", "-json", KEDA]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert found["Sum"] == KEDA_SUM, "it is the module that was looked at"
    return Path(found["Dir"]) / "config" / "crd" / "bases"


@pytest.fixture(scope="module")
def server(lab: ControlPlane) -> Iterator[Cluster]:
    """The lab's API server with the definitions of JobSet and KEDA."""
    files = [
        jobset_definitions() / "jobset.x-k8s.io_jobsets.yaml",
        *(keda_definitions() / f"keda.sh_{kind}.yaml" for kind in ("scaledjobs", "scaledobjects", "triggerauthentications")),
    ]
    cluster = Cluster(lab.home.kubeconfig)
    with ExitStack() as stack:
        for file in files:
            [definition] = read_objects(file)
            stack.enter_context(serving(cluster, definition))
        cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        yield cluster


def taken(server: Cluster, each: KubeObject) -> KubeObject:
    """What the server keeps of an object."""
    server.apply(each)
    [found] = server.list(f"{each['apiVersion']}/{each['kind']}", NAMESPACE)
    return found


@pytest.mark.parametrize("stack,gpus,pods", [("prod-gke", 1, 2), ("prod-gke", 8, 2), ("prod-eks", 8, 4)])
def test_a_job_set_is_taken(stack: str, gpus: int, pods: int, server: Cluster) -> None:
    training = {"team": "nlp", "workload_class": "training", "jobset": True, "gpus": gpus, "pods": pods}

    stored = taken(server, rendered(stack, "checkpointed-job", "JobSet", **training))

    [job] = stored["spec"]["replicatedJobs"]
    assert job["template"]["spec"]["completions"] == pods
    assert stored["spec"]["suspend"] is True, "Kueue lets it begin"


@pytest.mark.parametrize("stack", QUEUES)
def test_workers_that_keda_starts_are_taken(stack: str, server: Cluster) -> None:
    assert taken(server, workers(stack, "ScaledJob", "nlp", "best-effort"))["spec"]["minReplicaCount"] == 0


@pytest.mark.parametrize("stack", QUEUES)
def test_workers_that_keda_scales_are_taken(stack: str, server: Cluster) -> None:
    assert taken(server, workers(stack, "ScaledObject", "search", "inference"))["spec"]["minReplicaCount"] == 0
    assert taken(server, workers(stack, "TriggerAuthentication", "search", "inference"))["spec"]["podIdentity"]


def test_a_field_that_keda_does_not_have_is_refused(server: Cluster) -> None:
    scaled = workers("prod-eks", "ScaledJob", "nlp", "best-effort")

    assert "maxReplicas" in refusal(server, changed(scaled, "", maxReplicas=3))
