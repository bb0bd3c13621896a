"""Model servers: replicas that roll without spare GPUs, drain, spread, grow within the quota, and read weights of their own region."""

from __future__ import annotations

from typing import Any

import pytest
from service_plans import of_kind, service

PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def server(stack: str = "prod-eks", **fields: Any) -> dict[str, Any]:
    return of_kind(service(stack, "model-server", **fields), "Deployment")["spec"]


def test_a_server_is_a_service_replicas_and_a_budget_that_lets_one_go() -> None:
    made = service("prod-eks", "model-server")

    assert [each["kind"] for each in made] == ["Service", "Deployment", "PodDisruptionBudget"]
    selectors = [made[0]["spec"]["selector"], made[1]["spec"]["selector"]["matchLabels"], made[2]["spec"]["selector"]["matchLabels"]]
    labels = made[1]["spec"]["template"]["metadata"]["labels"]
    assert all(each == selectors[0] and labels.items() >= each.items() for each in selectors)
    assert made[2]["spec"]["maxUnavailable"] == 1
    assert made[0]["spec"]["type"] == "ClusterIP"
    assert made[1]["spec"]["replicas"] == 2


@pytest.mark.parametrize(
    "fields,rolls",
    [
        ({"replicas": 2}, {"maxSurge": 0, "maxUnavailable": 1}),
        ({"replicas": 1}, {"maxSurge": 1, "maxUnavailable": 0}),
        # Team ads has 4 GPUs: a second pod that uses all of them would wait forever. Its nodes have one each.
        ({"replicas": 1, "team": "ads", "gpus": 1}, {"maxSurge": 1, "maxUnavailable": 0}),
    ],
)
def test_a_rollout_takes_a_spare_gpu_only_where_there_is_one_replica_and_room_for_two(
    fields: dict[str, Any], rolls: dict[str, int]
) -> None:
    assert server(**fields)["strategy"] == {"type": "RollingUpdate", "rollingUpdate": rolls}


def test_without_room_for_a_second_pod_the_only_replica_goes_before_its_successor_comes() -> None:
    # The local teams may run one GPU without a queue.
    assert server("local", replicas=1)["strategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}


def test_an_ending_pod_serves_on_while_the_endpoints_forget_it_inside_the_grace_period() -> None:
    pod = server(drain_seconds=15)["template"]["spec"]

    [main] = pod["containers"]
    assert main["lifecycle"] == {"preStop": {"sleep": {"seconds": 15}}}
    assert pod["terminationGracePeriodSeconds"] == 60
    assert {"name": "FLEXSPOT_GRACE_SECONDS", "value": "45"} in main["env"]


def test_loading_may_take_start_seconds_and_a_rollout_also_waits_for_the_node() -> None:
    spec = server(start_seconds=1200, ready_path="/ready", live_path="/live", port=9000)

    [main] = spec["template"]["spec"]["containers"]
    assert main["startupProbe"]["failureThreshold"] * main["startupProbe"]["periodSeconds"] == 1200
    assert [main[probe]["httpGet"] for probe in ("readinessProbe", "livenessProbe")] == [
        {"path": "/ready", "port": "http"},
        {"path": "/live", "port": "http"},
    ]
    assert main["ports"] == [{"name": "http", "containerPort": 9000, "protocol": "TCP"}]
    assert spec["progressDeadlineSeconds"] > 1200


def test_reserved_nodes_are_taken_before_those_on_demand() -> None:
    affinity = server()["template"]["spec"]["affinity"]["nodeAffinity"]

    [first] = affinity[PREFERRED]
    assert first["preference"]["matchExpressions"] == [{"key": "karpenter.sh/nodepool", "operator": "In", "values": ["l4-reserved"]}]


def test_a_compute_class_orders_its_capacity_itself_and_allows_no_other_selector() -> None:
    pod = server("prod-gke")["template"]["spec"]

    assert pod["nodeSelector"] == {"cloud.google.com/compute-class": "inference"}
    assert "affinity" not in pod


def test_with_room_to_grow_the_autoscaler_sets_the_replicas_and_shrinks_slowly() -> None:
    made = service("prod-gke", "model-server", replicas=2, max_replicas=6, metric="requests_waiting", metric_target="5")

    assert "replicas" not in of_kind(made, "Deployment")["spec"]
    scaler = of_kind(made, "HorizontalPodAutoscaler")["spec"]
    assert (scaler["minReplicas"], scaler["maxReplicas"]) == (2, 6)
    assert scaler["metrics"] == [
        {"type": "Pods", "pods": {"metric": {"name": "requests_waiting"}, "target": {"type": "AverageValue", "averageValue": "5"}}}
    ]
    assert scaler["behavior"]["scaleDown"]["policies"] == [{"type": "Pods", "value": 1, "periodSeconds": 120}]


def test_replicas_spread_over_zones_and_nodes_but_never_wait_for_one() -> None:
    constraints = server()["template"]["spec"]["topologySpreadConstraints"]

    assert [each["topologyKey"] for each in constraints] == ["topology.kubernetes.io/zone", "kubernetes.io/hostname"]
    assert {each["whenUnsatisfiable"] for each in constraints} == {"ScheduleAnyway"}


def test_only_the_named_namespaces_are_let_in_and_only_to_the_port() -> None:
    policy = of_kind(service("prod-eks", "model-server", callers=["web", "gateway"]), "NetworkPolicy")["spec"]

    [rule] = policy["ingress"]
    assert rule["from"][0]["namespaceSelector"]["matchExpressions"][0]["values"] == ["gateway", "web"]
    assert rule["ports"] == [{"protocol": "TCP", "port": 8000}]
    assert policy["policyTypes"] == ["Ingress"]


def test_weights_come_from_the_teams_model_cache_with_room_for_what_is_kept_on_the_node() -> None:
    template = server("prod-gke", model_cache="weights", model_cache_gib=80)["template"]

    assert template["metadata"]["annotations"] == {"gke-gcsfuse/volumes": "true", "gke-gcsfuse/ephemeral-storage-limit": "85Gi"}
    claim = {"name": "models", "persistentVolumeClaim": {"claimName": "weights", "readOnly": True}}
    assert claim in template["spec"]["volumes"]
    assert {"name": "models", "mountPath": "/models", "readOnly": True} in template["spec"]["containers"][0]["volumeMounts"]
    assert "annotations" not in server("prod-eks", model_cache="weights", model_cache_gib=80)["template"]["metadata"]
