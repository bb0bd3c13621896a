"""StockOutWatch: what it may do, and how its pod runs."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

import pytest

from components.kueue.stock_outs import StockOutWatch, StockOutWatchArgs

if TYPE_CHECKING:
    from component_types import Refusal, Register
    from mock_fixtures import Registered


def watch(register: Register, **more: Any) -> Registered:
    given: dict[str, Any] = {"namespace": "flexspot-queueing", "labels": {"flexspot.dev/owner": "ml-platform"}, "cohort": "ml-platform"}
    args = StockOutWatchArgs(**given, **more)
    return register(lambda: StockOutWatch("watch", args))


def test_it_reads_what_it_judges_by_and_changes_flavors_and_a_cohort_of_its_own_alone(register: Register) -> None:
    made = watch(register)
    [role] = made.of("kubernetes:rbac.authorization.k8s.io/v1:ClusterRole")
    [cohort] = made.of("kubernetes:kueue.x-k8s.io/v1beta2:Cohort")

    assert [(each["apiGroups"], each["resources"], each["verbs"], *each.get("resourceNames", ())) for each in role["rules"]] == [
        ([""], ["events"], ["list"]),
        ([""], ["pods"], ["get"]),
        (["kueue.x-k8s.io"], ["clusterqueues", "workloads"], ["list"]),
        (["kueue.x-k8s.io"], ["resourceflavors"], ["list", "patch"]),
        (["kueue.x-k8s.io"], ["cohorts"], ["patch"], "flexspot-stock-out-watch"),
    ]
    assert (cohort["metadata"]["name"], cohort["spec"]) == ("flexspot-stock-out-watch", {"parentName": "ml-platform"})


def test_its_pod_is_fit_for_restricted_pod_security_and_carries_its_program(register: Register) -> None:
    tolerations = [{"key": "CriticalAddonsOnly", "operator": "Exists"}]
    made = watch(register, hold_minutes=45, node_selector={"flexspot.dev/system": "true"}, tolerations=tolerations)

    [deployment] = made.of("kubernetes:apps/v1:Deployment")
    pod = deployment["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert (deployment["spec"]["replicas"], deployment["spec"]["strategy"]) == (1, {"type": "Recreate"})
    assert (pod["nodeSelector"], pod["tolerations"]) == ({"kubernetes.io/os": "linux", "flexspot.dev/system": "true"}, tolerations)
    assert pod["securityContext"] == {"runAsNonRoot": True, "runAsUser": 65534, "seccompProfile": {"type": "RuntimeDefault"}}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["resources"] == {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "64Mi"}}
    assert {each["name"]: each["value"] for each in container["env"]}["FLEXSPOT_HOLD_SECONDS"] == "2700"
    assert container["command"][:2] == ["python3", "-c"]
    ast.parse(container["command"][2], feature_version=(3, 9))


@pytest.mark.parametrize(
    "given,told",
    [
        ({"hold_minutes": 1}, "hold_minutes (is 1): should be at least 5"),
        ({"image": "Python:3"}, "StockOutWatch watch: image"),
    ],
)
def test_what_the_settings_refuse_the_component_refuses(refusal: Refusal, given: dict[str, Any], told: str) -> None:
    assert told in refusal(StockOutWatch, "watch", {"namespace": "a", "labels": {}, "cohort": "ml-platform", **given})
