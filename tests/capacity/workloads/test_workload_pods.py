"""Contents of every pod: its owner, requests, placement, mounts and end."""

from __future__ import annotations

from typing import Any

import pytest
from workload_plans import IMAGE, job_of, objects, pod_of, pools_of, variables

from flexspot.capacity.catalog.node_labels import USER_LABEL
from flexspot.capacity.workloads.requests import WorkloadError
from flexspot.capacity.workloads.suitable_pools import mebibytes, millicores


@pytest.mark.parametrize(
    "gpus,pools",
    [(1, ["l4-spot"]), (4, ["a100-flex"]), (8, ["h100-reserved", "h100-queued"])],
)
def test_a_pod_goes_to_nodes_that_it_uses_as_a_whole_or_that_have_one_gpu(gpus: int, pools: list[str]) -> None:
    assert pools_of(pod_of("prod-gke", gpus=gpus)) == pools


def test_tolerations_are_those_of_the_pools_that_are_left_so_that_none_is_dead() -> None:
    keys = {each["key"] for each in pod_of("prod-eks", team="search", gpus=8)["tolerations"]}

    assert keys == {"flexspot.dev/class", "flexspot.dev/whole-node", "nvidia.com/gpu"}, "search has no share of the pool on Spot"


@pytest.mark.parametrize("stack,grace", [("dev-gke", "90"), ("prod-eks", "90")])
def test_a_variable_has_the_seconds_from_sigterm_to_the_kill(stack: str, grace: str) -> None:
    pod = pod_of(stack)

    assert (pod["terminationGracePeriodSeconds"], variables(pod)["FLEXSPOT_GRACE_SECONDS"]) == (int(grace), grace)


def test_on_gke_spot_the_grace_period_is_what_the_pool_gives_and_not_what_the_class_wishes() -> None:
    pod = pod_of("dev-gke", "queued-job", workload_class="spot-low")

    assert pod["terminationGracePeriodSeconds"] == 15


def test_pods_are_fit_for_restricted_pod_security_and_for_processes_without_a_home() -> None:
    pod = pod_of("local", run_as_user=2000)
    [container] = pod["containers"]

    assert pod["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": 2000,
        # The mounts' group may write there: the mounts have one owner, whatever the request says.
        "runAsGroup": 1000,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }
    assert variables(pod)["HOME"] == "/tmp"  # noqa: S108 -- the pod's own
    assert variables(pod)["USER"] == "flexspot"
    assert {each["mountPath"] for each in container["volumeMounts"]} == {"/tmp", "/dev/shm"}  # noqa: S108 -- likewise
    assert pod_of("local", writable_root=True)["containers"][0]["securityContext"]["readOnlyRootFilesystem"] is False


@pytest.mark.parametrize("stack,annotation", [("prod-gke", "true"), ("prod-eks", None)])
def test_checkpoints_and_data_sets_are_mounted_by_the_teams_claims(stack: str, annotation: str | None) -> None:
    job = job_of(stack, datasets=True, checkpoint_folder="bert/run-3")
    pod = job["spec"]["template"]["spec"]

    claims = {each["name"]: each["persistentVolumeClaim"] for each in pod["volumes"] if "persistentVolumeClaim" in each}
    assert claims == {"checkpoints": {"claimName": "checkpoints"}, "datasets": {"claimName": "datasets", "readOnly": True}}
    mounts = {each["name"]: each["mountPath"] for each in pod["containers"][0]["volumeMounts"]}
    assert (mounts["checkpoints"], mounts["datasets"]) == ("/checkpoints", "/datasets")
    assert variables(pod)["CHECKPOINT_DIR"] == "/checkpoints/bert/run-3"
    assert variables(pod)["FLEXSPOT_JOB"] == "nlp/bert/run-3", "their owner depends on the folder, not on the name"
    annotations = job["spec"]["template"]["metadata"].get("annotations", {})
    assert annotations.get("gke-gcsfuse/volumes") == annotation, "GKE mounts a bucket through a sidecar that it adds for this annotation"


def test_a_class_without_checkpoints_gets_them_only_on_request() -> None:
    assert "CHECKPOINT_DIR" not in variables(pod_of("prod-eks", "queued-job", workload_class="best-effort"))
    assert "CHECKPOINT_DIR" in variables(pod_of("prod-eks", "queued-job", workload_class="best-effort", checkpoints=True))


def test_the_authors_variables_come_last_may_refer_to_others_and_replace_derived_ones() -> None:
    pod = pod_of(
        "prod-eks",
        env={"OUT": "$(CHECKPOINT_DIR)/out", "HOME": "/scratch/ann"},
        secrets={"WANDB_API_KEY": {"secret": "wandb", "key": "token"}},
    )

    assert variables(pod) == {
        "FLEXSPOT_GRACE_SECONDS": "90",
        "USER": "flexspot",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "29500",
        "NNODES": "1",
        "NODE_RANK": "0",
        "NPROC_PER_NODE": "8",
        "CHECKPOINT_DIR": "/checkpoints/bert",
        "FLEXSPOT_JOB": "nlp/bert",
        "HOME": "/scratch/ann",
        "OUT": "$(CHECKPOINT_DIR)/out",
        "WANDB_API_KEY": {"secretKeyRef": {"name": "wandb", "key": "token"}},
    }


def test_labels_name_owner_kind_and_dimensions_of_reports() -> None:
    job = job_of("prod-gke", project="search-ranking", labels={"example.com/run": "7"})

    assert job["spec"]["template"]["metadata"]["labels"] == {
        "example.com/run": "7",
        "flexspot.dev/environment": "prod",
        "flexspot.dev/owner": "ml-platform",
        "flexspot.dev/team": "nlp",
        "flexspot.dev/class": "training",
        "flexspot.dev/workload-type": "training",
        "app.kubernetes.io/name": "bert",
        "flexspot.dev/project": "search-ranking",
    }
    assert job_of("prod-gke", "queued-job", workload_class="spot-low")["metadata"]["labels"]["flexspot.dev/workload-type"] == "batch"


@pytest.mark.parametrize(
    "stack,gpus,expected",
    [
        ("local", 1, {"cpu": "3", "memory": "12Gi"}),
        ("prod-eks", 8, {"cpu": "72", "memory": "864Gi"}),
        ("prod-gke", 8, {"cpu": "156", "memory": "1404Gi"}),
        ("prod-gke", 1, {"cpu": "9", "memory": "36Gi"}),
    ],
)
def test_a_pod_asks_for_three_quarters_of_its_gpus_share_of_the_smallest_machine(stack: str, gpus: int, expected: dict[str, str]) -> None:
    resources = pod_of(stack, gpus=gpus)["containers"][0]["resources"]

    assert resources["requests"] == {**expected, "nvidia.com/gpu": str(gpus)}
    assert resources["limits"] == {"memory": expected["memory"], "nvidia.com/gpu": str(gpus)}


@pytest.mark.parametrize("written,amount", [("8", 8000), ("1.5", 1500), ("500m", 500), ("0.0001", None), ("0.5m", None), ("8Gi", None)])
def test_vcpu_is_read_in_thousandths(written: str, amount: int | None) -> None:
    assert millicores(written) == amount


@pytest.mark.parametrize("written,amount", [("512Mi", 512), ("1.5Gi", 1536), ("2Ti", 2_097_152), ("0.1Mi", None), ("8", None)])
def test_memory_is_read_in_mebibytes(written: str, amount: int | None) -> None:
    assert mebibytes(written) == amount


@pytest.mark.parametrize("fields", [{"image": f"{IMAGE}@sha256:{'0' * 64}"}, {"image": "trainer:latest", "allow_moving_image": True}])
def test_an_image_by_digest_is_pinned_and_a_moving_one_needs_consent(fields: dict[str, Any]) -> None:
    assert pod_of("local", **fields)["containers"][0]["image"] == fields["image"]


@pytest.mark.parametrize(
    "stack,stays",
    [
        ("local", {"karpenter.sh/do-not-disrupt": "true"}),
        ("dev-eks", {"karpenter.sh/do-not-disrupt": "true"}),
        ("dev-gke", {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}),
    ],
)
def test_work_without_gpus_is_in_its_own_queue_and_names_no_node_and_no_taint(stack: str, stays: dict[str, str]) -> None:
    job = job_of(stack, "queued-job", gpus=0, checkpoints=False)
    pod = job["spec"]["template"]["spec"]

    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "cpu"
    assert not {"nodeSelector", "affinity", "tolerations"} & pod.keys()
    [container] = pod["containers"]
    assert container["resources"] == {"requests": {"cpu": "1", "memory": "4Gi"}, "limits": {"memory": "4Gi"}}
    assert job["spec"]["template"]["metadata"]["annotations"] == stays
    assert pod["priorityClassName"] == "gpu-training"
    assert job["spec"]["activeDeadlineSeconds"] == 604800


def test_work_without_gpus_has_the_vcpu_and_memory_that_it_asks_for_in_each_part_of_a_batch() -> None:
    jobs = objects("dev-eks", "queued-job", gpus=0, cpu="3500m", memory="7Gi", pods=3)

    assert [each["metadata"]["name"] for each in jobs] == ["bert-0", "bert-1", "bert-2"]
    asked = [each["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"] for each in jobs]
    assert asked == [{"cpu": "3500m", "memory": "7Gi"}] * 3


@pytest.mark.parametrize("stack,kind", [("prod-gke", "checkpointed-job"), ("prod-eks", "queued-job")])
def test_pods_carry_the_requests_user_label(stack: str, kind: str) -> None:
    labels = job_of(stack, kind, labels={USER_LABEL: "ana"})["spec"]["template"]["metadata"]["labels"]

    assert labels[USER_LABEL] == "ana"
    with pytest.raises(WorkloadError):
        job_of(stack, kind, labels={USER_LABEL: "no label value"})
