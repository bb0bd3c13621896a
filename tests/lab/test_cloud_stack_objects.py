"""Every Kubernetes object of the cloud stacks is taken by a real API server and Kueue's webhooks, also as edits change it in place."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pulumi
import pytest
import yaml
from engine_steps import Operation, steps
from kubernetes.client.exceptions import ApiException
from program_declarations import declared
from server_questions import integers
from setting_edits import edits_of, settings_of
from stack_changes import deployed

from infra.program import main
from lab.cluster import condition, read_objects, wait_until_established

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Cluster, KubeObject
    from lab.tools.build import Tools

pytestmark = pytest.mark.lab

Register = Callable[[Callable[[], object]], Any]

TESTS = Path(__file__).resolve().parents[1]
DEFINITION = "apiextensions.k8s.io/v1/CustomResourceDefinition"
QUEUE = "kueue.x-k8s.io/v1beta2/ClusterQueue"


@pytest.fixture
def with_cloud_kinds(cluster: Cluster, tools: Tools) -> Iterator[Cluster]:
    """The API server with what the clouds bring: ComputeClass and monitoring, rebuilt from the documentation, and Karpenter's of AWS."""
    rebuilt = [TESTS / "components" / "gke" / "compute_class_crd.yaml", TESTS / "components" / "measurement" / "monitoring_crds.yaml"]
    definitions = read_objects(*rebuilt, *tools.assets("karpenter-aws", "crds"))
    cluster.apply(*definitions)
    wait_until_established(cluster, [each["metadata"]["name"] for each in definitions])
    yield cluster
    delete_and_wait(cluster, definitions)


def objects_of(stack: str, register: Register) -> list[KubeObject]:
    """What the program registers of Kubernetes for a shipped stack, in its order; Kueue's chart is not among it, the lab has Kueue."""
    file = TESTS.parent / "stacks" / f"Pulumi.{stack}.yaml"
    settings = yaml.safe_load(file.read_text())["config"]["flexspot:platform"]

    def declare() -> None:
        pulumi.runtime.set_all_config({"flexspot:platform": json.dumps(settings)})
        main()

    found = [integers(inputs) for token, _, inputs in register(declare).resources if token.startswith("kubernetes:") and "kind" in inputs]
    for group in (term for each in found for term in each.get("spec", {}).get("securityGroupSelectorTerms", []) if "id" in term):
        # The mocks' ids have no form, and the definition of an EC2NodeClass asks for AWS's.
        group["id"] = "sg-0a1b2c3d4e5f60718"
    # Namespaces before what is in them, flavors before the queues that name them.
    order = ("Namespace", "PriorityClass", "ResourceFlavor", "Cohort", "ClusterQueue")
    return sorted(found, key=lambda each: order.index(each["kind"]) if each["kind"] in order else len(order))


def kind_of(each: KubeObject) -> str:
    return f"{each['apiVersion']}/{each['kind']}"


def delete_and_wait(cluster: Cluster, objects: list[KubeObject]) -> None:
    """Deletes objects, and returns when they are gone: the next test makes some of the same name."""
    namespaces = {each["metadata"]["name"] for each in objects if each["kind"] == "Namespace"}
    # What is in a namespace goes with it.
    alone = [each for each in objects if each["metadata"].get("namespace") not in namespaces]
    for each in alone:
        cluster.delete(kind_of(each), each["metadata"]["name"], each["metadata"].get("namespace"))
    for kind in dict.fromkeys(map(kind_of, alone)):
        names = {each["metadata"]["name"] for each in alone if kind_of(each) == kind}

        def gone(found: list[KubeObject], names: set[str] = names) -> bool:
            return not names & {each["metadata"]["name"] for each in found}

        cluster.wait_for(kind, gone, f"the deletion of {', '.join(sorted(names))}")


CHANGED_OFTEN = ("classes", "cohorts", "teams")
"""Sections of the settings that make Kubernetes objects alone and are edited while work runs."""


def refused_edits(cluster: Cluster, stack: str) -> dict[str, str]:
    """What the API server says of the objects that an edit of the stack would change in place, where it refuses one, by edit.

    What it refuses to change must be made anew, or `up` stops in the middle: a PriorityClass's value was changed in place once.
    """
    found: dict[str, str] = {}
    settings = [each.path for each in settings_of(CLOUDS[stack]) if each.path.partition(".")[0] in CHANGED_OFTEN]
    for edit in [each for path in settings for each in edits_of(CLOUDS[stack], path) if each.stack == stack]:
        after = declared(stack, edit.applied(), there=True)
        for step in steps(deployed(stack), after).of(Operation.UPDATE):
            new = after.made[step.name]
            if new.type.startswith("kubernetes:") and "kind" in new.inputs:
                try:
                    cluster.apply(integers(new.inputs), dry_run=True)
                except ApiException as error:
                    found[f"{edit.words}: {step.name}"] = str(error.body)
    return found


CLOUD_KINDS = {
    "dev-gke": {"ClusterPodMonitoring", "ClusterRules"},
    "prod-gke": {"ClusterPodMonitoring", "ClusterRules", "ComputeClass"},
    "dev-eks": {"NodePool", "EC2NodeClass"},
    "prod-eks": {"NodePool", "EC2NodeClass"},
}


CLOUDS = {stack: stack.rpartition("-")[2] for stack in CLOUD_KINDS}


@pytest.mark.parametrize("stack", CLOUD_KINDS)
def test_every_object_of_a_cloud_stack_is_accepted_and_every_queue_becomes_active(
    stack: str, with_cloud_kinds: Cluster, register: Register
) -> None:
    objects = objects_of(stack, register)
    kinds = {each["kind"] for each in objects}
    assert kinds >= CLOUD_KINDS[stack] | {
        "Namespace",
        "ResourceQuota",
        "LimitRange",
        "NetworkPolicy",
        "Role",
        "ServiceAccount",
        "WorkloadPriorityClass",
        "PersistentVolume",
        "PersistentVolumeClaim",
        "ResourceFlavor",
        "LocalQueue",
    }
    queues = [each for each in objects if each["kind"] == "ClusterQueue"]

    try:
        for each in objects:
            with_cloud_kinds.apply(each)

        def all_active(found: list[KubeObject]) -> bool:
            names = {each["metadata"]["name"] for each in queues}
            states = [(condition(each, "Active") or {}).get("status") for each in found if each["metadata"]["name"] in names]
            return states == ["True"] * len(names)

        with_cloud_kinds.wait_for(QUEUE, all_active, f"the ClusterQueues of {stack} to be active")
        assert refused_edits(with_cloud_kinds, stack) == {}
    finally:
        delete_and_wait(with_cloud_kinds, list(reversed(objects)))
