"""Team, Priorities and WorkloadPriorities through the real engine: created once, kept unchanged, deleted with nothing left."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pulumi
import pytest
from provider_engine import stack_of

from flexspot.components.tenancy.priorities import Priorities, WorkloadPriorities
from flexspot.components.tenancy.team import Team
from flexspot.lab.providers.kubernetes import KubernetesStandIn

if TYPE_CHECKING:
    from pathlib import Path

    from pulumi.automation import UpResult

    from flexspot.components.tenancy.priorities import PriorityArgs
    from flexspot.components.tenancy.team import TeamArgs
    from flexspot.lab.cluster import Cluster
    from flexspot.lab.control_plane import LabControlPlane
    from flexspot.lab.tools.build import Tools

pytestmark = [pytest.mark.lab, pytest.mark.engine]

PRIORITY = "scheduling.k8s.io/v1/PriorityClass"
WORKLOAD_PRIORITY = "kueue.x-k8s.io/v1beta2/WorkloadPriorityClass"


def team_args(namespace: str) -> TeamArgs:
    return {
        "namespace": namespace,
        "labels": {"flexspot.dev/team": namespace},
        "hard": {"requests.nvidia.com/gpu": "8", "pods": "200", "count/jobs.batch": "1k", "requests.storage": "2Ti"},
        "unqueued": {"gpus": 0, "priority_classes": ["gpu-production"]},
        "container_limits": {"cpu": "192", "memory": "2Ti"},
        "submitters": ["ml-red@acme.com"],
        "viewers": ["finance@acme.com"],
        "endpoints": [{"cidr": "169.254.169.254/32", "protocols": ["TCP"], "ports": [80, 8080]}],
        "service_account_annotations": {"iam.gke.io/gcp-service-account": "team-red@acme-ai.iam.gserviceaccount.com"},
    }


def changes(result: UpResult) -> dict[str, int]:
    """Return the numbers of resources that were created, changed or kept."""
    return {str(kind): count for kind, count in (result.summary.resource_changes or {}).items()}


def test_a_team_and_its_priorities_are_created_kept_changed_and_destroyed(
    lab: LabControlPlane, tools: Tools, cluster: Cluster, tmp_path: Path
) -> None:
    name = f"team-{uuid.uuid4().hex[:8]}"
    order: list[str] = []
    training: PriorityArgs = {"name": f"{name}-training", "value": 100_000, "preempts": False, "description": "Trains."}

    def program() -> None:
        Priorities("priorities", {"classes": [training], "labels": {"flexspot.dev/environment": "test"}})
        # In place of Kueue's release, which has the kind.
        kueue = Team("red", team_args(name))
        WorkloadPriorities(
            "workload-priorities",
            {"classes": [training], "labels": {"flexspot.dev/environment": "test"}},
            pulumi.ResourceOptions(depends_on=[kueue]),
        )

    def note(event: Any) -> None:
        if event.res_outputs_event is not None:
            order.append(str(event.res_outputs_event.metadata.type).rpartition(":")[2])

    with stack_of(program, tmp_path, tools.links, kubernetes=KubernetesStandIn(lab.home.kubeconfig)) as stack:
        created = changes(stack.up(on_event=note))
        assert created.keys() == {"create"}
        assert order.index("WorkloadPriorityClass") > order.index("NetworkPolicy"), "it waits for what brings its kind"

        queued, pods = cluster.get(WORKLOAD_PRIORITY, f"{name}-training"), cluster.get(PRIORITY, f"{name}-training")
        assert queued is not None
        assert pods is not None
        assert queued["value"] == pods["value"] == 100_000
        account = cluster.get("v1/ServiceAccount", "workloads", name)
        assert account is not None
        assert account["automountServiceAccountToken"] is False

        stack.refresh()
        assert changes(stack.up()) == {"same": created["create"]}
        quota = cluster.get("v1/ResourceQuota", "team", name)
        assert quota is not None
        assert quota["spec"]["hard"] == team_args(name)["hard"], "quantities are written as the API server writes them"

        # The API server refuses to change a class's value or policy, in the middle of an `up`: another class has its name then.
        for change, kept in (({"value": 200}, (200, "Never")), ({"preempts": True}, (200, "PreemptLowerPriority"))):
            training.update(change)  # pyrefly: ignore[no-matching-overload] -- of a PriorityArgs
            assert changes(stack.up())["replace"] == 1
            found = cluster.get(PRIORITY, f"{name}-training")
            assert found is not None
            assert (found["value"], found["preemptionPolicy"]) == kept

        stack.destroy()
    assert cluster.get("v1/Namespace", name) is None
    assert [cluster.get(kind, f"{name}-training") for kind in (PRIORITY, WORKLOAD_PRIORITY)] == [None, None]
