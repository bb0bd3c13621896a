"""Queue workers: jobs where their class waits in a queue, a Deployment where it does not, and KEDA where it is installed."""

from __future__ import annotations

from typing import Any

from service_plans import PUBSUB, SQS, of_kind, service

from flexspot.capacity.workloads.workers import LEASE_VARIABLE, QUEUE_VARIABLE


def variables(pod: dict[str, Any]) -> dict[str, str]:
    return {each["name"]: each.get("value", "") for each in pod["containers"][0]["env"]}


def test_each_worker_of_a_queued_class_is_a_job_that_ends_when_there_is_no_more_work() -> None:
    jobs = service("prod-eks", "queue-workers", team="nlp", workers=3)

    assert [(each["kind"], each["metadata"]["name"]) for each in jobs] == [("Job", f"desk-{index}") for index in range(3)]
    for job in jobs:
        assert (job["spec"]["parallelism"], job["spec"]["completions"]) == (1, 1)
        labels = job["metadata"]["labels"]
        assert (labels["kueue.x-k8s.io/queue-name"], labels["flexspot.dev/workload-type"]) == ("default", "worker")
        assert job["spec"]["template"]["metadata"]["labels"]["flexspot.dev/workload-type"] == "worker"


def test_a_worker_has_variables_for_its_queue_lease_and_grace_and_the_lease_outlasts_the_grace() -> None:
    [job] = service("prod-eks", "queue-workers", lease_seconds=120)

    environment = variables(job["spec"]["template"]["spec"])
    assert (environment[QUEUE_VARIABLE], environment[LEASE_VARIABLE], environment["FLEXSPOT_GRACE_SECONDS"]) == (SQS, "120", "60")


def test_with_keda_a_queued_class_has_a_pattern_of_jobs_that_the_queue_admits_one_by_one() -> None:
    authentication, scaled = service("prod-gke", "queue-workers", team="nlp", keda=True, items_per_worker=50)

    assert scaled["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "default"
    assert "kueue.x-k8s.io/queue-name" not in authentication["metadata"]["labels"]
    spec = scaled["spec"]
    assert (spec["jobTargetRef"]["parallelism"], spec["minReplicaCount"], spec["maxReplicaCount"]) == (1, 0, 24)
    assert spec["triggers"] == [
        {
            "type": "gcp-pubsub",
            "metadata": {"subscriptionName": PUBSUB, "mode": "SubscriptionSize", "value": "50"},
            "authenticationRef": {"name": authentication["metadata"]["name"]},
        }
    ]
    assert authentication["spec"] == {"podIdentity": {"provider": "gcp"}}


def test_a_class_without_a_queue_has_a_deployment_that_keda_takes_to_none() -> None:
    made = service("prod-eks", "queue-workers", workload_class="inference", keda=True, workers=4)

    deployment, scaled = of_kind(made, "Deployment")["spec"], of_kind(made, "ScaledObject")["spec"]
    assert "replicas" not in deployment
    assert (scaled["scaleTargetRef"], scaled["minReplicaCount"], scaled["maxReplicaCount"]) == ({"name": "desk"}, 0, 4)
    [trigger] = scaled["triggers"]
    assert trigger["metadata"] == {"queueURL": SQS, "queueLength": "20", "awsRegion": "us-east-1", "scaleOnInFlight": "true"}
    assert of_kind(made, "TriggerAuthentication")["spec"] == {"podIdentity": {"provider": "aws"}}


def test_without_keda_a_deployment_has_the_requested_workers_and_needs_no_spare_gpu() -> None:
    [deployment] = service("prod-eks", "queue-workers", workload_class="inference", workers=4, run_seconds=600)

    assert deployment["spec"]["replicas"] == 4
    assert deployment["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": "25%"}
    assert QUEUE_VARIABLE in variables(deployment["spec"]["template"]["spec"])
