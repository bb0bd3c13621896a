"""Notebooks: a session that a queue admits and that ends when idle, or a Deployment that is scaled to zero; one disk, one pod."""

from __future__ import annotations

from typing import Any

import pytest
from service_plans import of_kind, service, standing_plan

from flexspot.capacity.plan.queues import STAY_ANNOTATION
from flexspot.capacity.workloads.notebook_stop import LIMIT_VARIABLE, SCALE_VARIABLE


def session(stack: str = "prod-eks", **fields: Any) -> dict[str, Any]:
    """Return the Job that a session is created from."""
    return of_kind(service(stack, "notebook", **fields), "CronJob")["spec"]["jobTemplate"]


def sidecar(template: dict[str, Any]) -> dict[str, Any]:
    [found] = template["spec"]["initContainers"]
    return found


def variables_of(container: dict[str, Any]) -> dict[str, Any]:
    return {each["name"]: each.get("value", each.get("valueFrom")) for each in container["env"]}


def test_a_queued_notebook_is_a_suspended_pattern_of_jobs() -> None:
    made = service("prod-eks", "notebook")

    assert [each["kind"] for each in made] == ["PersistentVolumeClaim", "Service", "CronJob"]
    pattern = made[2]["spec"]
    assert (pattern["suspend"], pattern["concurrencyPolicy"]) == (True, "Forbid")
    labels = pattern["jobTemplate"]["metadata"]["labels"]
    assert (labels["kueue.x-k8s.io/queue-name"], labels["kueue.x-k8s.io/priority-class"]) == ("default", "gpu-development")
    job = pattern["jobTemplate"]["spec"]
    assert (job["suspend"], job["activeDeadlineSeconds"], job["ttlSecondsAfterFinished"]) == (True, 12 * 3600, 60)


def test_without_a_queue_a_notebook_is_a_deployment_created_with_no_pod_and_at_most_one() -> None:
    deployment = of_kind(service(standing_plan(), "notebook"), "Deployment")["spec"]

    assert (deployment["replicas"], deployment["strategy"]) == (0, {"type": "Recreate"})
    watch = variables_of(sidecar(deployment["template"]))
    assert watch[SCALE_VARIABLE] == "/apis/apps/v1/namespaces/search/deployments/desk/scale"
    assert watch[LIMIT_VARIABLE] == str(12 * 3600)


def test_the_server_culls_what_is_idle_even_in_an_open_tab_and_asks_for_its_token() -> None:
    [main] = session(idle_seconds=1800)["spec"]["template"]["spec"]["containers"]

    assert main["command"] == ["jupyter", "lab"]
    assert {
        "--ServerApp.shutdown_no_activity_timeout=1800",
        "--MappingKernelManager.cull_idle_timeout=1800",
        "--MappingKernelManager.cull_connected=True",
        "--TerminalManager.cull_inactive_timeout=1800",
    } <= set(main["args"])
    assert variables_of(main)["JUPYTER_TOKEN"] == {"secretKeyRef": {"name": "desk-token", "key": "token"}}


def test_another_command_options_and_secret_are_the_authors() -> None:
    fields: dict[str, Any] = {
        "command": ["start-notebook.py"],
        "args": ["--ServerApp.base_url=/ann"],
        "token_secret": "ann",
        "env": {"HOME": "/scratch/ann"},
    }

    [main] = session(**fields)["spec"]["template"]["spec"]["containers"]

    assert (main["command"], main["args"][-1]) == (["start-notebook.py"], "--ServerApp.base_url=/ann")
    assert variables_of(main)["JUPYTER_TOKEN"]["secretKeyRef"]["name"] == "ann"
    assert variables_of(main)["HOME"] == "/scratch/ann"


def test_the_home_is_a_disk_of_its_own_that_the_process_may_write_to() -> None:
    made = service("prod-eks", "notebook", home_gib=20, storage_class="gp3")

    claim = of_kind(made, "PersistentVolumeClaim")
    assert claim["spec"]["accessModes"] == ["ReadWriteOnce"]
    assert (claim["spec"]["resources"]["requests"], claim["spec"]["storageClassName"]) == ({"storage": "20Gi"}, "gp3")
    pod = of_kind(made, "CronJob")["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert {"name": "home", "persistentVolumeClaim": {"claimName": claim["metadata"]["name"]}} in pod["volumes"]
    assert pod["securityContext"]["fsGroup"] == pod["securityContext"]["runAsUser"] == 1000


def test_a_sessions_sidecar_has_no_kubernetes_token_and_lets_its_job_end() -> None:
    template = session()["spec"]["template"]

    watch = sidecar(template)
    assert (watch["restartPolicy"], watch["volumeMounts"]) == ("Always", [])
    assert SCALE_VARIABLE not in variables_of(watch)
    assert template["spec"]["automountServiceAccountToken"] is False
    assert not [each for each in template["spec"]["volumes"] if "projected" in each]


def test_only_the_sidecar_of_a_deployed_notebook_has_a_kubernetes_token() -> None:
    template = of_kind(service(standing_plan(), "notebook"), "Deployment")["spec"]["template"]

    [credentials] = [each["name"] for each in template["spec"]["volumes"] if "projected" in each]
    assert [each["name"] for each in sidecar(template)["volumeMounts"]] == [credentials]
    assert credentials not in {each["name"] for each in template["spec"]["containers"][0]["volumeMounts"]}


def test_the_rights_to_stop_and_start_are_for_this_object_only() -> None:
    made = service(standing_plan(), "notebook")

    rules = {each["metadata"]["name"]: each["rules"] for each in made if each["kind"] == "Role"}
    subjects = {each["metadata"]["name"]: each["subjects"] for each in made if each["kind"] == "RoleBinding"}
    assert rules["desk-stop"] == [
        {"apiGroups": ["apps"], "resources": ["deployments/scale"], "resourceNames": ["desk"], "verbs": ["patch"]}
    ]
    assert {name for each in rules["desk-start"] for name in each["resourceNames"]} == {"desk"}
    assert [each["name"] for each in subjects["desk-stop"]] == ["workloads"]
    assert [(each["kind"], each["name"]) for each in subjects["desk-start"]] == [("Group", "ml-search")]


MOVED = {"remove": "underutilized", "idle_seconds": 600}


def test_a_notebook_is_not_moved_to_save_a_node_where_the_pool_has_its_work_moved() -> None:
    moved, kept = standing_plan(disruption=MOVED), standing_plan()

    [on_moved, on_kept] = [of_kind(service(plan, "notebook"), "Deployment")["spec"]["template"]["metadata"] for plan in (moved, kept)]

    assert on_moved["annotations"] == {"karpenter.sh/do-not-disrupt": "true"}
    assert "annotations" not in on_kept, "a drain of its node would wait for it without a limit"


@pytest.mark.parametrize(
    "stack,annotations", [("prod-eks", {"karpenter.sh/do-not-disrupt": "true"}), ("prod-gke", {STAY_ANNOTATION: "false"})]
)
def test_each_autoscaler_has_its_own_annotation(stack: str, annotations: dict[str, str]) -> None:
    deployment = of_kind(service(stack, "notebook", workload_class="inference"), "Deployment")

    assert deployment["spec"]["template"]["metadata"]["annotations"] == annotations
