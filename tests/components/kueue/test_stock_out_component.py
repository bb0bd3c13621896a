"""StockOutWatch: its permissions and its pod."""

from __future__ import annotations

import ast
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest

from flexspot.components.kueue.stock_outs import StockOutWatch, StockOutWatchArgs

if TYPE_CHECKING:
    from component_types import Refusal, Register
    from mock_fixtures import Registered


def watch(register: Register, **more: Any) -> Registered:
    given: dict[str, Any] = {"namespace": "flexspot-queueing", "labels": {"flexspot.dev/owner": "ml-platform"}}
    args = StockOutWatchArgs(**given, **more)
    return register(lambda: StockOutWatch("watch", args))


def test_it_reads_events_and_queues_and_only_changes_flavors(register: Register) -> None:
    made = watch(register)
    [role] = made.of("kubernetes:rbac.authorization.k8s.io/v1:ClusterRole")

    assert [(each["apiGroups"], each["resources"], each["verbs"], *each.get("resourceNames", ())) for each in role["rules"]] == [
        ([""], ["events"], ["list"]),
        ([""], ["pods", "persistentvolumeclaims"], ["get"]),
        (["kueue.x-k8s.io"], ["clusterqueues", "workloads"], ["list"]),
        (["kueue.x-k8s.io"], ["resourceflavors"], ["list", "patch"]),
    ]


def test_its_pod_has_its_own_account_and_meets_restricted_pod_security(register: Register) -> None:
    tolerations = [{"key": "CriticalAddonsOnly", "operator": "Exists"}]
    made = watch(register, hold_minutes=45, node_selector={"flexspot.dev/system": "true"}, tolerations=tolerations)

    [deployment] = made.of("kubernetes:apps/v1:Deployment")
    pod = deployment["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert (deployment["spec"]["replicas"], deployment["spec"]["strategy"]) == (1, {"type": "Recreate"})
    assert (pod["nodeSelector"], pod["tolerations"]) == ({"kubernetes.io/os": "linux", "flexspot.dev/system": "true"}, tolerations)
    assert (pod["serviceAccountName"], pod["automountServiceAccountToken"]) == ("stock-out-watch", True)
    assert pod["securityContext"] == {"runAsNonRoot": True, "runAsUser": 65534, "seccompProfile": {"type": "RuntimeDefault"}}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["resources"] == {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "64Mi"}}
    assert {each["name"]: each["value"] for each in container["env"]}["FLEXSPOT_HOLD_SECONDS"] == "2700"


def test_its_program_is_a_file_of_a_config_map_and_a_change_restarts_the_pod(register: Register) -> None:
    made = watch(register)
    [file] = made.of("kubernetes:core/v1:ConfigMap")
    [deployment] = made.of("kubernetes:apps/v1:Deployment")
    template = deployment["spec"]["template"]
    [container] = template["spec"]["containers"]
    [(name, program)] = file["data"].items()

    ast.parse(program, feature_version=(3, 9))
    assert template["metadata"]["annotations"] == {"flexspot.dev/program-sha256": sha256(program.encode()).hexdigest()}
    assert template["spec"]["volumes"] == [{"name": "program", "configMap": {"name": file["metadata"]["name"]}}]
    [mount] = container["volumeMounts"]
    assert (mount["name"], mount["readOnly"]) == ("program", True)
    assert container["command"] == ["python3", f"{mount['mountPath']}/{name}"]


@pytest.mark.parametrize(
    "given,problem",
    [
        ({"hold_minutes": 1}, "hold_minutes (is 1): should be at least 5"),
        ({"image": "Python:3"}, "StockOutWatch watch: image"),
    ],
)
def test_the_component_refuses_what_the_settings_refuse(refusal: Refusal, given: dict[str, Any], problem: str) -> None:
    assert problem in refusal(StockOutWatch, "watch", {"namespace": "a", "labels": {}, **given})
