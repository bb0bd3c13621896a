"""Measurement in the declarations of the cloud stacks: an exporter and its scraping, rules, and nodes' labels of their owners."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from program_declarations import as_shipped, declared, plan_of, shipped

from flexspot.capacity.plan.teams import CONFIG_MAP

if TYPE_CHECKING:
    from program_declarations import Declarations

pytestmark = pytest.mark.slow

GOOGLES = "kubernetes:monitoring.googleapis.com/v1:ClusterPodMonitoring"
GOOGLES_RULES = "kubernetes:monitoring.googleapis.com/v1:ClusterRules"
OPERATORS = "kubernetes:monitoring.coreos.com/v1:ServiceMonitor"
OPERATORS_RULES = "kubernetes:monitoring.coreos.com/v1:PrometheusRule"
FILE = "kubernetes:core/v1:ConfigMap"
DCGM = "kubernetes:helm.sh/v3:Release dcgm-exporter-release"
ENVIRONMENT, OWNER, TEAM = (f"flexspot.dev/{each}" for each in ("environment", "owner", "team"))


def written(made: Declarations, kind: str) -> list[dict[str, Any]]:
    """Return the inputs of a kind's objects, without those in the teams' namespaces."""
    return [each for each in made.inputs_of(kind) if each["metadata"]["name"] != CONFIG_MAP]


def exporters(made: Declarations) -> list[dict[str, Any]]:
    return [each for each in made.inputs_of("kubernetes:apps/v1:Deployment") if each["metadata"]["name"] == "kube-state-metrics"]


@pytest.mark.parametrize("stack,kinds", [("prod-gke", {GOOGLES, GOOGLES_RULES}), ("prod-eks", {FILE})])
def test_each_cloud_has_its_scraping_resources_and_eks_has_gpu_utilization(stack: str, kinds: set[str]) -> None:
    made = as_shipped(stack)

    found = {kind for kind in (GOOGLES, GOOGLES_RULES, OPERATORS, OPERATORS_RULES, FILE) if written(made, kind)}
    assert found == kinds
    assert len(exporters(made)) == 1
    assert (DCGM in made.made) is (stack == "prod-eks")


def test_on_eks_the_exporter_runs_where_controllers_do() -> None:
    [exporter] = exporters(as_shipped("dev-eks"))
    spec = exporter["spec"]["template"]["spec"]

    assert spec["nodeSelector"]["flexspot.dev/system"] == "true"
    assert spec["tolerations"] == [{"key": "CriticalAddonsOnly", "operator": "Exists"}]


@pytest.mark.parametrize("stack", ["dev-gke", "dev-eks"])
def test_objects_for_the_prometheus_operator_carry_its_selector_labels(stack: str) -> None:
    made = declared(stack, shipped(stack, measurement={"prometheus": "operator", "monitor_labels": {"release": "prometheus"}}))

    [monitor], [rules] = made.inputs_of(OPERATORS), made.inputs_of(OPERATORS_RULES)
    assert monitor["metadata"]["labels"]["release"] == rules["metadata"]["labels"]["release"] == "prometheus"
    assert not made.of(GOOGLES)
    assert not written(made, FILE)
    if stack == "dev-eks":
        of_dcgm = made.made[DCGM].inputs["values"]["serviceMonitor"]
        assert (of_dcgm["enabled"], of_dcgm["additionalLabels"]) == (True, {"release": "prometheus"})


@pytest.mark.parametrize("stack", ["dev-gke", "dev-eks"])
def test_a_cluster_with_exporters_gets_only_the_rules(stack: str) -> None:
    own = {"dcgm_exporter": False} if stack == "dev-eks" else {}
    made = declared(stack, shipped(stack, measurement={"kube_state_metrics": False, **own}))

    assert exporters(made) == []
    assert DCGM not in made.made
    assert not made.of(GOOGLES)
    assert made.of(GOOGLES_RULES) or written(made, FILE)


def labels_of_nodes(made: Declarations) -> dict[str, dict[str, str]]:
    """Return the labels that each pool sets on its nodes, by the pool's name."""
    googles = {each["name"]: each["nodeConfig"].get("labels", {}) for each in made.inputs_of("gcp:container/nodePool:NodePool")}
    karpenters = {
        each["metadata"]["name"]: each["spec"]["template"]["metadata"]["labels"]
        for each in made.inputs_of("kubernetes:karpenter.sh/v1:NodePool")
    }
    amazons = {each["nodeGroupNamePrefix"].rstrip("-"): each["labels"] for each in made.inputs_of("aws:eks/nodeGroup:NodeGroup")}
    return googles | karpenters | amazons


@pytest.mark.parametrize("stack", ["prod-gke", "prod-eks"])
def test_every_node_has_labels_of_its_owner(stack: str) -> None:
    wanted = {ENVIRONMENT: plan_of(stack).environment, OWNER: "ml-platform"}
    found = labels_of_nodes(as_shipped(stack))

    assert set(found) >= {pool.name for pool in plan_of(stack).pools} | {"system"}
    assert {name: labels for name, labels in found.items() if not wanted.items() <= labels.items()} == {}


@pytest.mark.parametrize("stack,pool,team", [("dev-gke", "t4-spot", "product"), ("dev-eks", "t4-spot", "students")])
def test_nodes_of_a_pool_with_one_team_belong_to_that_team(stack: str, pool: str, team: str) -> None:
    teams: list[dict[str, Any]] = shipped(stack)["teams"]
    alone = [
        {**each, "shares": {name: gpus for name, gpus in each["shares"].items() if name != pool or each["name"] == team}} for each in teams
    ]

    found = labels_of_nodes(declared(stack, shipped(stack, teams=alone)))

    assert {name: labels[TEAM] for name, labels in found.items() if TEAM in labels} == {pool: team}


def test_a_pool_of_a_departments_gpus_belongs_to_no_single_team() -> None:
    teams = shipped("prod-gke")["teams"]
    others = [{**each, "shares": {n: g for n, g in each["shares"].items() if n != "h100-reserved"}} for each in teams]
    others[0]["shares"]["h100-reserved"] = 8
    found = labels_of_nodes(declared("prod-gke", shipped("prod-gke", teams=others)))

    assert TEAM not in found["h100-reserved"], "its cohort has a share of it, which others borrow"
