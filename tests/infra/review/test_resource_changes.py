"""Changes of resources between two plan files, by the providers' own rules about changed inputs."""

from __future__ import annotations

from typing import Any

import pytest

from flexspot.infra.cli.stacks.review import predicted_answer
from flexspot.infra.review.resource_changes import ResourceOperation, as_the_engine_marks, resource_changes
from flexspot.lab.providers.values import UNKNOWN

NETWORK, POOL = "gcp:compute/network:Network", "gcp:container/nodePool:NodePool"


def resource(token: str, called: str, *, custom: bool = True, **inputs: Any) -> dict[str, Any]:
    return {"urn": f"urn:pulumi:dev::acme::flexspot:index:GkeCluster${token}::{called}", "type": token, "custom": custom, "inputs": inputs}


def changes(base: list[dict[str, Any]], head: list[dict[str, Any]]) -> dict[str, tuple[str, tuple[str, ...]]]:
    return {each.name: (each.becomes.value, each.paths) for each in resource_changes(base, head, predicted_answer, UNKNOWN)}


def test_resources_are_created_and_deleted() -> None:
    assert changes([resource(NETWORK, "old")], [resource(NETWORK, "new")]) == {"old": ("deleted", ()), "new": ("created", ())}


def test_the_provider_decides_whether_a_change_replaces_a_resource() -> None:
    base = [resource(NETWORK, "vpc", name="a", routingMode="REGIONAL"), resource(POOL, "spot", maxPodsPerNode=32)]
    head = [resource(NETWORK, "vpc", name="a", routingMode="GLOBAL"), resource(POOL, "spot", maxPodsPerNode=64)]

    assert changes(base, head) == {"spot": ("replaced", ("maxPodsPerNode",)), "vpc": ("changed", ("routingMode",))}


def test_deletions_come_first() -> None:
    base = [resource(NETWORK, "a", routingMode="REGIONAL"), resource(NETWORK, "z")]
    head = [resource(NETWORK, "a", routingMode="GLOBAL"), resource(NETWORK, "b")]

    assert [each.becomes for each in resource_changes(base, head, predicted_answer, UNKNOWN)] == [
        ResourceOperation.DELETED,
        ResourceOperation.CHANGED,
        ResourceOperation.CREATED,
    ]


def test_a_kubernetes_object_of_another_name_is_another_object() -> None:
    kind = "kubernetes:core/v1:Namespace"
    base, head = ([resource(kind, "team", apiVersion="v1", kind="Namespace", metadata={"name": name})] for name in ("a", "b"))

    assert changes(base, head) == {"team": ("replaced", ("metadata.name",))}


@pytest.mark.parametrize("inputs", [{"network": {"$unknown": True}}, {"nodeConfig": {"tags": ["a", {"$unknown": True}]}}])
def test_a_value_that_neither_preview_knows_counts_as_unchanged(inputs: dict[str, Any]) -> None:
    assert changes([resource(POOL, "spot", **inputs)], [resource(POOL, "spot", **inputs, initialNodeCount=1)]) == {
        "spot": ("replaced", ("initialNodeCount",))
    }


def test_a_value_that_only_one_preview_knows_counts_as_changed() -> None:
    base, head = [resource(POOL, "spot", cluster={"$unknown": True})], [resource(POOL, "spot", cluster="literal")]

    assert changes(base, head) == {"spot": ("replaced", ("cluster",))}
    assert changes(head, base) == {"spot": ("replaced", ("cluster",))}


def test_components_are_not_reported_but_their_children_are() -> None:
    component = resource("flexspot:index:GkeNodePool", "spot", custom=False, maxNodes=1)
    other = component | {"inputs": {"maxNodes": 2}}
    without = {key: value for key, value in component.items() if key != "custom"}

    assert changes([component], [other]) == {}
    assert changes([without], []) == {}


def test_rules_of_clouds_see_the_engines_marker_of_unknown_values() -> None:
    assert as_the_engine_marks({"a": [{"$unknown": True}], "b": {"$secret": True}}) == {
        "a": ["04da6b54-80e4-46f7-96ec-b56ff0331ba9"],
        "b": {"$secret": True},
    }
