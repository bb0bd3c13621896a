"""The rows of planted defects that are about work: jobs, services, their priorities, volumes and disruption budgets. Not a test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from planted_defects import JOB, PLACED, Defect, job, spec

if TYPE_CHECKING:
    from planted_defects import Resources

SERVICE, BUDGET = "workspace", "finetune-budget"


def service(resources: Resources, namespace: str, limits: dict[str, str], image: str = "server:1", **pod: Any) -> None:
    """Adds a Deployment that keeps every rule, but for what is said."""
    container = {"name": "serve", "image": image, "resources": {"limits": limits}}
    labels = {"app": SERVICE, "team": namespace}
    pods = {"terminationGracePeriodSeconds": 15, "containers": [container], **pod}
    body = {
        "replicas": 1,
        "selector": {"matchLabels": {"app": SERVICE}},
        "template": {"metadata": {"labels": labels}, "spec": pods},
    }
    metadata = {"name": SERVICE, "namespace": namespace, "labels": labels}
    inputs = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": body}
    resources[SERVICE] = ("kubernetes:apps/v1:Deployment", inputs)


def container_of_the_job(resources: Resources) -> dict[str, Any]:
    job(resources)
    return spec(resources, JOB)["template"]["spec"]["containers"][0]


def budget(resources: Resources, **amount: Any) -> None:
    metadata = {"name": BUDGET, "namespace": "research"}
    body = {"selector": {"matchLabels": {"app": JOB}}, **amount}
    inputs = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": body}
    resources[BUDGET] = ("kubernetes:policy/v1:PodDisruptionBudget", inputs)


def checkpoints_in_memory(resources: Resources) -> None:
    container_of_the_job(resources)["volumeMounts"] = [{"name": "scratch", "mountPath": "/checkpoints"}]
    spec(resources, JOB)["template"]["spec"]["volumes"] = [{"name": "scratch", "emptyDir": {"medium": "Memory"}}]


def one_disk_for_two(resources: Resources) -> None:
    job(resources, pod={"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "disk"}}]}, parallelism=2)
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "10Gi"}}}
    metadata = {"name": "disk", "namespace": "research"}
    inputs = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": wanted}
    resources["disk"] = ("kubernetes:core/v1:PersistentVolumeClaim", inputs)


def budget_over_a_spot_job(resources: Resources) -> None:
    job(resources, parallelism=2)
    spec(resources, JOB)["template"]["metadata"] = {"labels": {"app": JOB}}
    budget(resources, minAvailable=1)


def notebook_that_nothing_scales(resources: Resources) -> None:
    """A scaler of something else says that scalers are declared in this run."""
    service(resources, "research", GPU, "quay.io/jupyter/pytorch-notebook:cuda12-2026-01-05", **PLACED)
    metadata = {"name": "another", "namespace": "research"}
    inputs = {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": metadata,
        "spec": {"scaleTargetRef": {"name": "another"}},
    }
    resources["another"] = ("kubernetes:keda.sh/v1alpha1:ScaledObject", inputs)


GPU = {"nvidia.com/gpu": "1"}
ON_GPUS = [{"key": "nvidia.com/gpu", "operator": "Exists"}]
ON_SPOT = [{"key": "cloud.google.com/gke-spot", "operator": "Exists"}, {"operator": "Exists"}]
ON_A_TIER = [{"key": "provisioning-tier", "value": "preemptible", "effect": "NoSchedule"}]
CLASS_AND_SPOT = {"cloud.google.com/compute-class": "inference", "cloud.google.com/gke-spot": "true"}
LOWEST, LOW = "priorities-gpu-best-effort", "priorities-spot-workload-low"
REQUEST = "dws-request"

WORKLOAD_DEFECTS = [
    Defect("missing-toleration", "dev-eks", SERVICE, lambda made: service(made, "research", GPU)),
    Defect("gpu-node-without-gpu-request", "dev-gke", SERVICE, lambda made: service(made, "research", {}, tolerations=ON_GPUS)),
    Defect("toleration-without-selector", "prod-gke", SERVICE, lambda made: service(made, "nlp", GPU, tolerations=ON_SPOT)),
    Defect("dead-toleration", "dev-gke", JOB, lambda made: job(made, pod={"tolerations": ON_A_TIER})),
    Defect("compute-class-with-extra-selector", "prod-gke", SERVICE, lambda made: service(made, "nlp", {}, nodeSelector=CLASS_AND_SPOT)),
    Defect("checkpoint-on-ephemeral-volume", "dev-eks", JOB, checkpoints_in_memory),
    Defect("shared-read-write-once-volume", "dev-eks", JOB, one_disk_for_two),
    Defect("restart-policy-forbids-failure-policy", "dev-eks", JOB, lambda made: job(made, pod={"restartPolicy": "OnFailure"})),
    Defect(
        *("flex-job-over-seven-days", "prod-gke", REQUEST),
        lambda made: spec(made, REQUEST).update(parameters={"maxRunDurationSeconds": "1209600"}),
    ),
    Defect(
        *("gpu-request-differs-from-limit", "dev-gke", JOB),
        lambda made: container_of_the_job(made)["resources"].update(requests={"nvidia.com/gpu": "2"}),
    ),
    Defect("priority-below-scale-up", "dev-gke", LOWEST, lambda made: made[LOWEST][1].update(value=-100)),
    Defect("preemptible-by-default-pods", "dev-eks", LOW, lambda made: made[LOW][1].update(value=-5)),
    Defect("image-not-pinned", "dev-eks", JOB, lambda made: container_of_the_job(made).update(image="trainer:latest")),
    Defect("blocking-disruption-budget", "dev-gke", BUDGET, lambda made: budget(made, maxUnavailable=0)),
    Defect("budget-does-not-stop-reclaim", "dev-eks", BUDGET, budget_over_a_spot_job),
    Defect("interactive-gpu-without-idle-limit", "dev-gke", SERVICE, notebook_that_nothing_scales),
]
