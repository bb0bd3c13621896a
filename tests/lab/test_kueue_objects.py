"""Kueue's objects of every shipped stack: the real API server and Kueue's webhooks take them as they are, and reconcile them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pulumi
import pytest
import yaml

from capacity.catalog.node_labels import TEAM_LABEL
from capacity.plan.build import build_plan
from capacity.settings.stack_file import parse_settings, read_stack_file
from infra.queue_objects import declare_queues
from lab.cluster import Cluster, condition

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import KubeObject
    from lab.control_plane import ControlPlane
    from lab.tools.build import Tools

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("namespaces")]

Register = Callable[[Callable[[], object]], Any]

STACKS = Path(__file__).resolve().parents[2] / "stacks"

V1BETA2 = "kueue.x-k8s.io/v1beta2"
RECONCILED = ("AdmissionCheck", "ClusterQueue", "LocalQueue")
"""The kinds that Kueue says of whether they are active."""

SHIPPED = ("local", "dev-gke", "prod-gke", "dev-eks", "prod-eks")

PLACED: dict[str, Any] = {
    "cloud": "gke",
    "environment": "test",
    "owner": "ann",
    "project": "acme-ai-test",
    "region": "us-central1",
    "zones": ["us-central1-a"],
    "cohort": "placed",
    "queueing": {"stop": "hold"},
    "cohorts": [{"name": "department", "weight": 1000}],
    "pools": [
        {"name": "h100", "machine": "a3-highgpu-8g", "capacity_type": "queued", "max_nodes": 200, "topology": True, "serves": ["training"]},
        {"name": "l4", "machine": "g2-standard-8", "capacity_type": "spot", "max_nodes": 4, "serves": ["interactive"]},
    ],
    "teams": [{"name": "placed", "cohort": "department", "weight": 3, "shares": {"h100": 1000, "l4": 0}, "lending_limits": {"h100": 0}}],
}
"""What no shipped stack has: a topology, a stopped queue, and amounts that have a shorter way to be written."""


def objects_of(settings: Any, register: Register) -> list[KubeObject]:
    """Everything that the program makes of Kueue for a plan, in its order."""
    plan = build_plan(settings)
    registered = register(lambda: declare_queues(plan, pulumi.ResourceOptions()))
    kueue = [inputs for token, _, inputs in registered.resources if token.startswith("kubernetes:kueue")]
    # Mocks register what depends on nothing in no order of its own.
    order = ("Topology", "ProvisioningRequestConfig", "AdmissionCheck", "ResourceFlavor", "Cohort", "ClusterQueue", "LocalQueue")
    return sorted(kueue, key=lambda each: order.index(each["kind"]))


def kind_of(each: KubeObject) -> str:
    return f"{each['apiVersion']}/{each['kind']}"


def delete_and_wait(cluster: Cluster, objects: list[KubeObject]) -> None:
    """Deletes objects, and returns when they are gone: the next test makes some of the same name."""
    for each in objects:
        cluster.delete(kind_of(each), each["metadata"]["name"], each["metadata"].get("namespace"))
    for kind in {kind_of(each) for each in objects}:
        names = {each["metadata"]["name"] for each in objects if kind_of(each) == kind}

        def gone(found: list[KubeObject], names: set[str] = names) -> bool:
            return not names & {each["metadata"]["name"] for each in found}

        cluster.wait_for(kind, gone, f"the deletion of {kind} {', '.join(sorted(names))}")


@pytest.fixture(scope="module")
def namespaces(lab: ControlPlane) -> Iterator[None]:
    """The namespaces of all teams, made once: their deletion takes its time."""
    cluster = Cluster(lab.home.kubeconfig)
    settings = [*(read_stack_file(STACKS / f"Pulumi.{stack}.yaml") for stack in SHIPPED), parse_settings(PLACED, "test")]
    names = sorted({team.name for each in settings for team in each.teams})
    made = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {TEAM_LABEL: name}}} for name in names]
    cluster.apply(*made)
    yield
    delete_and_wait(cluster, made)


@pytest.fixture
def applied(cluster: Cluster, tools: Tools) -> Iterator[Callable[[list[KubeObject]], str]]:
    """Applies objects as a person would, and returns what was said of them besides; they are gone afterwards."""
    made: list[KubeObject] = []

    def run(objects: list[KubeObject]) -> str:
        made.extend(objects)
        command = [tools.binary("kubectl"), "--kubeconfig", str(cluster.kubeconfig), "apply", "--server-side", "--filename", "-"]
        ended = subprocess.run(command, input=yaml.safe_dump_all(objects), capture_output=True, text=True, check=False, timeout=120)
        assert ended.returncode == 0, ended.stderr
        return ended.stderr

    yield run
    delete_and_wait(cluster, list(reversed(made)))


def check_all(objects: list[KubeObject], cluster: Cluster, applied: Callable[[list[KubeObject]], str], *, active: str) -> None:
    assert applied(objects) == "", "no warning, of a deprecated version or another"
    ours = [each for each in objects if each["apiVersion"] == V1BETA2]
    for each in ours:
        kept = cluster.get(f"{V1BETA2}/{each['kind']}", each["metadata"]["name"], each["metadata"].get("namespace"))
        assert kept is not None
        # A default that the server adds is no change; what it rewrites would be one in every later preview.
        assert written_again(each["spec"], kept["spec"]) == each["spec"], f"{each['kind']} {each['metadata']['name']}"
    for kind in RECONCILED:
        expected = {each["metadata"]["name"] for each in ours if each["kind"] == kind}
        namespaces = {each["metadata"].get("namespace") for each in ours if each["kind"] == kind}

        def all_reconciled(
            found: list[KubeObject],
            expected: set[str] = expected,
            namespaces: set[str | None] = namespaces,
            wanted: str = "True" if kind == "AdmissionCheck" else active,
        ) -> bool:
            mine = [each for each in found if each["metadata"]["name"] in expected and each["metadata"].get("namespace") in namespaces]
            states = [condition_of(each, "Active").get("status") for each in mine]
            return len(states) >= len(namespaces) and set(states) <= {wanted}

        cluster.wait_for(f"{V1BETA2}/{kind}", all_reconciled, f"{kind} {', '.join(sorted(expected))} to be Active: {active}")
    for each in ours:
        events = cluster.events_about(each["metadata"]["name"], each["metadata"].get("namespace", "default"))
        assert [event["message"] for event in events if event["type"] == "Warning"] == []


def written_again(written: object, kept: Any) -> Any:
    """Of what the server keeps, that which was written."""
    if isinstance(written, dict):
        fields: KubeObject = {**written}
        return {field: written_again(value, kept.get(field)) for field, value in fields.items()}
    if isinstance(written, list):
        items: list[object] = [*written]
        return [written_again(value, other) for value, other in zip(items, kept, strict=True)]
    return kept


def condition_of(each: KubeObject, name: str) -> KubeObject:
    """A condition whatever its status; `condition` of lab.cluster finds those that are true."""
    found = [kept for kept in each.get("status", {}).get("conditions", []) if kept["type"] == name]
    return found[0] if found else {}


@pytest.mark.parametrize("stack", SHIPPED)
def test_every_object_of_a_shipped_stack_is_taken_as_it_is_and_every_queue_is_active(
    stack: str, cluster: Cluster, register: Register, applied: Callable[[list[KubeObject]], str]
) -> None:
    objects = objects_of(read_stack_file(STACKS / f"Pulumi.{stack}.yaml"), register)

    assert ("AdmissionCheck" in {each["kind"] for each in objects}) == (stack == "prod-gke"), (
        "where there is queued capacity, and nowhere else"
    )
    check_all(objects, cluster, applied, active="True")


def test_a_placed_held_platform_of_large_amounts_is_taken_as_it_is_and_its_queue_is_held(
    cluster: Cluster, register: Register, applied: Callable[[list[KubeObject]], str]
) -> None:
    objects = objects_of(parse_settings(PLACED, "test"), register)

    assert "Topology" in {each["kind"] for each in objects}
    check_all(objects, cluster, applied, active="False")
    [queue] = [each for each in cluster.list(f"{V1BETA2}/ClusterQueue") if each["metadata"]["name"] == "placed"]
    assert condition_of(queue, "Active")["reason"] == "Stopped"
    assert condition(queue, "Active") is None
