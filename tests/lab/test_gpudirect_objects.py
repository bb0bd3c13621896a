"""What is declared and rendered for GPUDirect, on a real API server: Google's own definitions take it, and teams' namespaces take its pods.

The definitions are those of Google's Go module, at the version below.
"""

from __future__ import annotations

import json
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from gpudirect_stack import gpudirect_settings
from kubernetes.client.exceptions import ApiException
from plan_settings import plan_of
from program_declarations import declared
from server_questions import changed, integers, refusal, serving

from capacity.workloads.kinds import objects_of
from components.tenancy.team import restricted
from lab.cluster import Cluster, read_objects

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import KubeObject
    from lab.control_plane import ControlPlane

pytestmark = [
    pytest.mark.lab,
    pytest.mark.filterwarnings("ignore:gcp.compute.[A-Za-z]+ has been deprecated in favor of:DeprecationWarning"),
]

MODULE = "github.com/GoogleCloudPlatform/gke-networking-api@v0.2.11"
MODULE_SUM = "h1:U9n3hHMyWvGHO+wiEUxoLHQlqUxU0oARuCHoDZTDxUQ="

NAMESPACE = "gpudirect-pods"


def definitions() -> list[KubeObject]:
    command = ["go", "mod", "download", "-json", MODULE]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert found["Sum"] == MODULE_SUM, "it is the module that was looked at"
    folder = Path(found["Dir"]) / "config" / "crds"
    return read_objects(*(folder / f"networking.gke.io_{kind}.yaml" for kind in ("gkenetworkparamsets", "networks")))


@pytest.fixture(scope="module")
def server(lab: ControlPlane) -> Iterator[Cluster]:
    """The lab's API server with Google's definitions, and a namespace as teams have it."""
    cluster = Cluster(lab.home.kubeconfig)
    with ExitStack() as stack:
        for definition in definitions():
            stack.enter_context(serving(cluster, definition))
        cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": restricted()}})
        cluster.wait_for("v1/ServiceAccount", bool, f"the service account of {NAMESPACE}", namespace=NAMESPACE)
        cluster.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "workloads", "namespace": NAMESPACE}})
        yield cluster
        cluster.delete("v1/Namespace", NAMESPACE)


@pytest.fixture(scope="module")
def objects() -> list[KubeObject]:
    """What the program declares for the nodes."""
    made = declared("prod-gke", gpudirect_settings()).made.values()
    kinds = ("kubernetes:networking.gke.io/v1:", "kubernetes:apps/v1:DaemonSet")
    found: list[KubeObject] = []
    for each in made:
        if each.type.startswith(kinds) and "rdma" in each.name:
            api_version, _, kind = each.type.removeprefix("kubernetes:").rpartition(":")
            found.append({"apiVersion": api_version, "kind": kind, **integers(each.inputs)})
    # What a network is called in Google Cloud is known when it is there.
    for each in found:
        if each["kind"] == "GKENetworkParamSet":
            each["spec"] |= {"vpc": "prod-rdma", "vpcSubnet": "prod-rdma-0"}
        if each["kind"] == "DaemonSet":
            # The lab's API server lets nothing be privileged; a cloud's does.
            [installer] = each["spec"]["template"]["spec"]["initContainers"]
            assert installer.pop("securityContext") == {"privileged": True}
    return found


def test_googles_own_definitions_take_every_network(server: Cluster, objects: list[KubeObject]) -> None:
    assert [each["kind"] for each in objects].count("Network") == 9
    server.apply(*objects, dry_run=True)


def test_a_mode_that_google_does_not_have_is_refused(server: Cluster, objects: list[KubeObject]) -> None:
    [parameters] = [each for each in objects if each["kind"] == "GKENetworkParamSet" and each["metadata"]["name"] == "rdma-0"]

    assert "Unsupported value" in refusal(server, changed(parameters, "", deviceMode="Rdma"))


def pod(**fields: Any) -> KubeObject:
    """A pod of a rendered gang on H200, in a namespace as teams have it."""
    written = {"name": "bert", "team": "nlp", "workload_class": "training", "image": "reg.example.com/bert:1", "pods": 2, "gpus": 8}
    [job] = objects_of(plan_of(gpudirect_settings()), "checkpointed-job", {**written, "gpu_models": ("h200",)})
    template = job["spec"]["template"]
    spec = {name: value for name, value in template["spec"].items() if name != "priorityClassName"}
    metadata = {"name": "bert-0", "namespace": NAMESPACE, "annotations": template["metadata"]["annotations"]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {**spec, **fields}}


def test_a_teams_namespace_takes_a_rendered_pod(server: Cluster) -> None:
    [stored] = server.apply(pod(), dry_run=True)

    assert len(json.loads(stored["metadata"]["annotations"]["networking.gke.io/interfaces"])) == 9


def test_it_refuses_the_folders_of_the_host_that_googles_sample_mounts(server: Cluster) -> None:
    """Why the installer puts the plugin where the device plugin shows it: gpudirect-rdma/nccl-test.yaml mounts these two."""
    folders = [{"name": name, "hostPath": {"path": f"/home/kubernetes/bin/{name}"}} for name in ("nvidia", "gib")]
    made = pod()

    with pytest.raises(ApiException, match="hostPath"):
        server.apply({**made, "spec": {**made["spec"], "volumes": [*made["spec"]["volumes"], *folders]}}, dry_run=True)
