"""A model cache's objects on a real API server, where its claim is bound though no bucket is there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from capacity.plan.build import plan_of_stack_file
from capacity.workloads.kinds import objects_of
from lab.cluster import Cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

    from capacity.plan.model import Plan
    from lab.cluster import KubeObject
    from lab.control_plane import ControlPlane

pytestmark = pytest.mark.lab

STACKS = Path(__file__).parents[2] / "stacks"
VOLUME, CLAIM = "v1/PersistentVolume", "v1/PersistentVolumeClaim"


TEAM = "search"


def plan_of(stack: str) -> Plan:
    return plan_of_stack_file(STACKS / f"Pulumi.{stack}.yaml").plan


@pytest.fixture(scope="module")
def server(lab: ControlPlane) -> Iterator[Cluster]:
    """The lab's API server with the team's namespaces, which take a while to go: both stacks call theirs alike."""
    cluster = Cluster(lab.home.kubeconfig)
    namespaces = sorted({team.namespace for stack in ("prod-gke", "prod-eks") for team in plan_of(stack).teams if team.name == TEAM})
    for each in namespaces:
        cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": each}})
    yield cluster
    for each in namespaces:
        cluster.delete("v1/Namespace", each)


@pytest.mark.parametrize("stack,driver", [("prod-gke", "gcsfuse.csi.storage.gke.io"), ("prod-eks", "s3.csi.aws.com")])
def test_a_model_cache_is_accepted_and_its_claim_bound_to_it_for_any_number_of_readers(stack: str, driver: str, server: Cluster) -> None:
    request: dict[str, Any] = {"name": "weights", "team": TEAM, "bucket": "acme-ai-prod-prod-datasets"}
    volume, claim = objects_of(plan_of(stack), "model-cache", request)
    namespace = claim["metadata"]["namespace"]

    def bound(claims: list[KubeObject]) -> KubeObject | None:
        return next((each for each in claims if each["status"].get("phase") == "Bound"), None)

    def gone(volumes: list[KubeObject]) -> bool:
        return all(each["metadata"]["name"] != volume["metadata"]["name"] for each in volumes)

    try:
        kept, _ = server.apply(volume, claim)
        found = server.wait_for(CLAIM, bound, f"the claim of {namespace}", namespace=namespace)
    finally:
        server.delete(CLAIM, "weights", namespace)
        server.delete(VOLUME, volume["metadata"]["name"])
        server.wait_for(VOLUME, gone, "the end of the volume, whose name the other stack's has, too")

    assert found["spec"]["volumeName"] == volume["metadata"]["name"]
    assert found["status"]["accessModes"] == ["ReadOnlyMany"]
    assert kept["spec"]["csi"] == volume["spec"]["csi"]
    assert kept["spec"]["csi"]["driver"] == driver
