"""No stack declares what Kubernetes, a cloud or a chart creates by itself: creating it would fail, or take it over.

The list is tests/cluster_made.yaml, with sources. tests/lab/test_cluster_made_objects.py tests its part about Kubernetes against a server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from cluster_made import cluster_made, maker_of
from program_declarations import STACKS, as_shipped, declared, shipped

from flexspot.capacity.values.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from program_declarations import Declarations

SHIPPED = tuple(sorted(path.name.split(".")[1] for path in STACKS.glob("Pulumi.*.yaml")))
each_stack = pytest.mark.parametrize("stack", SHIPPED)
each_eks_stack = pytest.mark.parametrize("stack", [stack for stack in SHIPPED if stack.endswith("eks")])

RELEASE = "kubernetes:helm.sh/v3:Release"
CLUSTER = "aws:eks/cluster:Cluster"
LOG_GROUP = "aws:cloudwatch/logGroup:LogGroup"
ENTRY = "aws:eks/accessEntry:AccessEntry"


def created_by_others(declarations: Declarations) -> dict[str, str]:
    """Return declared objects that are on the list, with their creator. Objects with a reason on the list are excluded."""
    found: dict[str, str] = {}
    for key, each in declarations.made.items():
        if "kind" in each.inputs and each.type.startswith("kubernetes:"):
            metadata: Mapping[str, Any] = each.inputs["metadata"]
            if maker := maker_of(each.inputs["kind"], metadata["name"], metadata.get("namespace", "")):
                found[key] = maker
        for row in cluster_made().resources:
            if row.holds(each.type, each.inputs) and row.unless is None and not is_awaited(key, row.unless_before, declarations):
                found[key] = row.maker
    return found


def is_awaited(key: str, kind: str | None, declarations: Declarations) -> bool:
    return kind is not None and any(key in declarations.waits_for(f"{kind} {each.name}") for each in declarations.of(kind))


@each_stack
def test_no_stack_declares_what_others_create(stack: str) -> None:
    assert created_by_others(as_shipped(stack)) == {}


@each_stack
def test_charts_are_installed_into_namespaces_that_exist_or_that_they_create(stack: str) -> None:
    declarations = as_shipped(stack)
    spaces = {each["metadata"]["name"] for each in declarations.inputs_of("kubernetes:core/v1:Namespace")}

    for release in declarations.inputs_of(RELEASE):
        made_by_kubernetes = maker_of("Namespace", release["namespace"], makers=["Kubernetes"]) is not None
        assert release.get("createNamespace", False) is not made_by_kubernetes, release["name"]
        assert release["namespace"] not in spaces, release["name"]


@each_eks_stack
def test_the_log_group_exists_before_eks_would_create_one_without_expiry(stack: str) -> None:
    declarations = as_shipped(stack)
    [group], [cluster] = declarations.of(LOG_GROUP), declarations.of(CLUSTER)

    assert group.inputs["name"] == f"/aws/eks/{cluster.inputs['name']}/cluster"
    assert f"{LOG_GROUP} {group.name}" in cluster.after


@each_eks_stack
def test_access_entries_are_only_for_roles_without_an_entry_by_eks(stack: str) -> None:
    declarations = as_shipped(stack)
    [nodes] = declarations.of("aws:eks/nodeGroup:NodeGroup")
    of_nodes = {each for each in nodes.after if each.startswith("aws:iam/role:")}

    # EKS creates the entry of a managed node group's role. A role that is given as an ARN cannot be one that the stack creates.
    assert of_nodes
    assert [entry.name for entry in declarations.of(ENTRY) if entry.after & of_nodes] == []


@pytest.mark.parametrize(
    "name",
    ["default", "kube-public", "kueue-system", "gke-managed-cim", "gke-gmp-system", "gmp-public", "gkebackup", "flexspot-measurement"],
)
def test_a_team_cannot_have_a_namespace_that_others_create(name: str) -> None:
    settings = shipped("dev-gke")
    settings["teams"][0]["name"] = name

    with pytest.raises(SettingsError, match="is the name of a system namespace"):
        declared("dev-gke", settings)
