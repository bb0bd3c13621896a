"""The stand-in Kubernetes provider under the real Pulumi engine.

Each test says in its first line what the official provider (pulumi-kubernetes 4.34.2) does, and in which recorded scenario that is seen
(tests/lab/recordings); "source" means that only its code says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pulumi
import pulumi_kubernetes as kubernetes
import pytest
from provider_engine import stack_of
from pulumi import automation

from lab.providers.kubernetes import KubernetesStandIn

if TYPE_CHECKING:
    from pathlib import Path

    from lab.cluster import Cluster
    from lab.control_plane import ControlPlane
    from lab.tools.build import Tools

pytestmark = [pytest.mark.lab, pytest.mark.engine]

_SKIP_AWAIT = {"pulumi.com/skipAwait": "true"}


def test_a_program_is_previewed_made_kept_mended_and_destroyed(
    lab: ControlPlane, tools: Tools, cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    """Official: unknown in the preview is what only the server decides later; a second up changes nothing; a refresh shows drift (04)."""
    data = {"a": "1"}
    known: dict[str, bool] = {}

    def program() -> None:
        team = kubernetes.core.v1.Namespace("team")
        metadata = kubernetes.meta.v1.ObjectMetaArgs(name="settings", namespace=team.metadata.name)
        kubernetes.core.v1.ConfigMap("settings", metadata=metadata, data=data)
        priority = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "WorkloadPriorityClass", "metadata": {"name": namespace}, "value": 7}
        pulumi.CustomResource("kubernetes:kueue.x-k8s.io/v1beta1:WorkloadPriorityClass", "priority", priority)
        service = kubernetes.core.v1.Service(
            "service",
            metadata={"namespace": team.metadata.name, "annotations": _SKIP_AWAIT},
            spec={"ports": [{"port": 80}], "selector": {"a": "b"}},
        )
        pulumi.export("team", team.metadata.name)
        pulumi.export("status", service.status.apply(lambda status: known.setdefault("status", status is not None)))

    with stack_of(program, tmp_path, tools.links, kubernetes=KubernetesStandIn(lab.home.kubeconfig)) as stack:
        assert stack.preview().change_summary == {"create": 5}
        assert known == {}
        team = stack.up().outputs["team"].value
        assert known == {"status": True}
        assert team.startswith("team-")
        assert stack.up().summary.resource_changes == {"same": 5}
        cluster.patch("v1/ConfigMap", "settings", {"data": {"a": "drifted"}}, team)
        assert stack.refresh().summary.resource_changes == {"same": 4, "update": 1}
        assert stack.preview().change_summary == {"same": 4, "replace": 1}
        assert stack.up().summary.resource_changes == {"same": 4, "replace": 1}
        live = cluster.get("v1/ConfigMap", "settings", team)
        assert live
        assert live["data"] == data
        stack.destroy()
    assert cluster.get("v1/Namespace", team) is None


def test_an_object_that_is_not_ready_stays_in_the_state_and_is_retried(
    lab: ControlPlane, tools: Tools, cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    """Official: up fails, the state has the object, the next up waits for it again without making it anew (08)."""

    def program() -> None:
        quick = pulumi.ResourceOptions(custom_timeouts=pulumi.CustomTimeouts(create="1s", update="20s"))
        annotations = {"pulumi.com/waitFor": "jsonpath={.data.ready}=yes"}
        metadata: Any = {"name": "web", "namespace": namespace, "annotations": annotations}
        kubernetes.core.v1.ConfigMap("web", metadata=metadata, data={"a": "1"}, opts=quick)

    with stack_of(program, tmp_path, tools.links, kubernetes=KubernetesStandIn(lab.home.kubeconfig)) as stack:
        with pytest.raises(automation.CommandError, match="timed out waiting for the condition"):
            stack.up()
        before = cluster.get("v1/ConfigMap", "web", namespace)
        assert before
        cluster.patch("v1/ConfigMap", "web", {"data": {"ready": "yes"}}, namespace)
        assert stack.up().summary.resource_changes == {"same": 1, "update": 1}
        after = cluster.get("v1/ConfigMap", "web", namespace)
        assert after
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        stack.destroy()


def test_two_providers_of_one_program_have_their_own_settings(lab: ControlPlane, tools: Tools, namespace: str, tmp_path: Path) -> None:
    """Official: a process for each; the stand-in serves both."""

    def program() -> None:
        ours = kubernetes.Provider("ours", namespace=namespace, kubeconfig=str(lab.home.kubeconfig))
        theirs = kubernetes.Provider("theirs", namespace="default")
        for name, provider in {"a": ours, "b": theirs}.items():
            made = kubernetes.core.v1.ConfigMap(name, opts=pulumi.ResourceOptions(provider=provider))
            pulumi.export(name, made.metadata.namespace)

    with stack_of(program, tmp_path, tools.links, kubernetes=KubernetesStandIn(lab.home.kubeconfig)) as stack:
        outputs = stack.up().outputs
        stack.destroy()
    assert {name: output.value for name, output in outputs.items()} == {"a": namespace, "b": "default"}


def test_a_provider_for_another_server_stops_the_program(lab: ControlPlane, tools: Tools, tmp_path: Path) -> None:
    """Official: would go there."""
    elsewhere = lab.home.kubeconfig.read_text(encoding="utf-8").replace("https://127.0.0.1", "https://10.0.0.1")

    def program() -> None:
        provider = kubernetes.Provider("elsewhere", kubeconfig=elsewhere)
        kubernetes.core.v1.ConfigMap("a", opts=pulumi.ResourceOptions(provider=provider))

    with (
        stack_of(program, tmp_path, tools.links, kubernetes=KubernetesStandIn(lab.home.kubeconfig)) as stack,
        pytest.raises(automation.CommandError, match="serves the lab at"),
    ):
        stack.preview()


def test_an_object_is_imported_into_a_program(lab: ControlPlane, tools: Tools, cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    """Official: by namespace/name; the program's inputs must be those of the object (10)."""
    cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "found", "namespace": namespace}, "data": {"a": "1"}})

    def program() -> None:
        kubernetes.core.v1.ConfigMap(
            "found",
            metadata={"name": "found", "namespace": namespace},
            data={"a": "1"},
            opts=pulumi.ResourceOptions(import_=f"{namespace}/found"),
        )

    with stack_of(program, tmp_path, tools.links, kubernetes=KubernetesStandIn(lab.home.kubeconfig)) as stack:
        assert stack.up().summary.resource_changes == {"create": 1, "import": 1}
        assert stack.up().summary.resource_changes == {"same": 2}
        stack.destroy()
    assert cluster.get("v1/ConfigMap", "found", namespace) is None
