"""Requests that cannot run are refused before any object is created, with the input, its value, what is allowed and a remedy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import plan_settings
import pytest
from autopilot_settings import autopilot_settings
from plan_settings import local, pool, team
from service_plans import PUBSUB, SQS, service
from workload_plans import IMAGE, objects, plan_of

from flexspot.capacity.plan.build import build_plan
from flexspot.capacity.settings.stack_file import parse_settings
from flexspot.capacity.workloads.kinds import objects_of
from flexspot.capacity.workloads.requests import WorkloadError


def problems_of(stack: str, kind: str = "checkpointed-job", **fields: Any) -> list[str]:
    with pytest.raises(WorkloadError) as refused:
        objects(stack, kind, **fields)
    return [str(each) for each in refused.value.problems]


@pytest.mark.parametrize(
    "stack,fields,message",
    [
        ("prod-gke", {"team": "npl"}, "team (is 'npl'): is not a team; did you mean nlp? allowed: ads, nlp, search, vision"),
        ("dev-eks", {"workload_class": "inference"}, "is not a class that a pool of this stack serves; did you mean interactive? allowed:"),
        ("prod-gke", {"workload_class": "inference", "checkpoints": True}, "is for services and has no queue; allowed: best-effort"),
        ("prod-gke", {"workload_class": "spot-low"}, "choose a class that does (training), set checkpoints, or make it a QueuedJob"),
        ("prod-gke", {"gpus": 9}, "h100-queued has 8 to use as a whole, l4-spot has 1), and a pod runs on one node; request 1 or 4 or 8"),
        ("prod-gke", {"team": "ads", "gpus": 4}, "gpus (is 4): does not fit a node of class training (l4-spot has 1)"),
        ("prod-eks", {"gpus": 1}, "a100-spot has 8 to use as a whole), and a pod runs on one node; request 8 per pod"),
        (
            "prod-eks",
            {"team": "ads"},
            "has no share of the pools of class training (h100-reserved, a100-spot); use a class in which it has a",
        ),
        ("local", {"pods": 5}, "need 5 GPUs at once (1 per pod), but team team-alpha can use 4 of one kind; request 4 pods or fewer"),
        ("local", {"image": "trainer"}, "image (is 'trainer'): has neither tag nor digest, which means latest"),
        ("local", {"image": "localhost:5000/trainer:latest"}, "has the tag latest, which moves: a replacement pod may run another image"),
        ("local", {"image": "Trainer:1"}, "image (is 'Trainer:1'): does not have the required form"),
        ("local", {"grace_seconds": 91}, "is more than the grace period of class training on its capacity; allowed: 1 to 90"),
        ("prod-gke", {"run_seconds": 600_000}, "run_seconds (is 600000): is more than class training and its capacity allow"),
        (
            "local",
            {"cpu": "4"},
            "4 and the default): is more than a node with 1 GPU(s) of class training has for a pod; request less (its machines",
        ),
        ("local", {"memory": "16Gi"}, "the default and 16Gi): is more than a node"),
        ("local", {"cpu": "many"}, "is not a number of vCPU above 0; write one such as 8, 1.5 or 500m"),
        ("local", {"memory": "0Gi"}, "is not an amount of memory above 0; write one such as 512Mi or 32Gi"),
        ("local", {"capacity": ["reserved"]}, "is not capacity of class training in which team team-alpha has a share; use spot"),
        ("local", {"capacity": ["sport"]}, "is not one of the allowed values; did you mean spot?"),
        ("local", {"datasets": True}, "datasets (is true): cannot be mounted: the local platform has no bucket; leave it out: only"),
        ("local", {"labels": {"flexspot.dev/team": "x"}}, "is derived from the plan; set team, project, workload_class or name"),
        ("local", {"labels": {"a key": "x"}}, "is not a valid label key; use one such as example.com/experiment"),
        ("local", {"env": {"FLEXSPOT_GRACE_SECONDS": "60"}}, "is derived from the grace period; set grace_seconds instead"),
        ("local", {"env": {"A": "1"}, "secrets": {"A": {"secret": "s", "key": "k"}}}, "A is in env and in secrets; set it in one"),
        (
            "local",
            {"fatal_exit_codes": [143]},
            "143 means that the program was interrupted: a reclaimed node would end the job; leave it out",
        ),
        ("local", {"pods": 2, "at_once": 1}, "is below the 2 pods, which train together: the first would wait for the others"),
        ("local", {"jobset": True}, "jobset (is true): is for several pods, and this job has one; leave it out, or set pods"),
        ("local", {"retries": 0}, "retries (is 0): should be at least 1"),
        ("local", {"epochs": 3}, "epochs: is not an input; did you mean pods? allowed: "),
        ("local", {"image": None}, "image: is missing; add it"),
        ("prod-eks", {"gpu_models": ["h200"]}, "allowed: h100-80gb (80 GB; h100-reserved), a100-40gb (40 GB; a100-spot); use one"),
        ("prod-eks", {"gpu_models": ["l4"]}, "pool l4-on-demand has it and serves inference; pool l4-reserved has it and serves inference"),
        ("prod-eks", {"gpu_memory_gb": 141}, "gpu_memory_gb (is 141): is above the memory of each GPU that team"),
        ("prod-eks", {"gpu_models": ["a100"], "gpu_memory_gb": 80}, "gpu_memory_gb (is 80): is above the memory of each GPU"),
        ("prod-eks", {"team": "search", "gpu_models": ["a100"]}, "allowed: h100-80gb (80 GB; h100-reserved); pool a100-spot has"),
        ("prod-gke", {"gpu_models": ["l4"], "gpus": 8}, "gpus (is 8): does not fit a node of class training (l4-spot has 1)"),
        ("local", {"gpu_models": ["H100"]}, "does not have the required form; allowed: the name of a GPU in lower case, such as h100"),
    ],
)
def test_a_job_that_cannot_run_is_refused_with_what_is_allowed(stack: str, fields: dict[str, Any], message: str) -> None:
    [problem] = problems_of(stack, **fields)

    assert message in problem


@pytest.mark.parametrize(
    "stack,kind,fields,message",
    [
        ("dev-gke", "flex-start-job", {}, "has no flex-start or queued capacity in this stack, which a FlexStartJob of 1 pod(s) needs"),
        ("prod-gke", "flex-start-job", {"pods": 2, "capacity": ["flex-start"]}, "has no queued capacity in this stack, which a"),
        ("prod-gke", "checkpointed-job", {"pods": 2, "capacity": ["flex-start"]}, "capacity (is flex-start): cannot serve 2"),
        ("prod-gke", "queued-job", {"pods": 4, "at_once": 2, "capacity": ["queued"]}, "capacity (is queued): cannot serve 4"),
        ("local", "queued-job", {"jobset": True}, "restarts all pods when one fails, and the pods of a batch are independent"),
        (
            "local",
            "checkpointed-job",
            {"gpus": 0},
            "gpus (is 0): is only possible for a QueuedJob; request 1 or more, or make it a QueuedJob",
        ),
        ("local", "queued-job", {"gpus": 0, "cpu": "32"}, "is more than a node without GPUs has for a pod: less than 32 vCPU and 256Gi"),
        ("local", "queued-job", {"gpus": 0, "capacity": ["spot"]}, "chooses among GPU pools, but this work has no GPUs; leave"),
        ("local", "queued-job", {"gpus": 0, "grace_seconds": 91}, "is more than the grace period of class training on its capacity"),
        ("local", "queued-job", {"gpus": 0, "cpu": "4", "pods": 10, "at_once": 10}, "36 vCPU, 147456Mi; request 9 pods or fewer"),
        ("local", "queued-job", {"gpus": -1}, "gpus (is -1): should be at least 0"),
        ("local", "model-server", {"gpus": 0, "workload_class": "inference"}, "gpus (is 0): should be at least 1"),
        ("local", "cron-job", {}, "kind (is 'cron-job'): is not a kind of workload; allowed: checkpointed-job, queued-job, flex-start-job"),
    ],
)
def test_a_kind_that_does_not_suit_is_refused_with_one_that_does(stack: str, kind: str, fields: dict[str, Any], message: str) -> None:
    [problem] = problems_of(stack, kind, **fields)

    assert message in problem


SERVER_EKS, NOTEBOOK = ("prod-eks", "model-server"), ("prod-eks", "notebook")
CACHE_GKE, CACHE_EKS, CACHE_LOCAL = (("prod-gke", "model-cache"), ("prod-eks", "model-cache"), ("local", "model-cache"))
WORKER_GKE, WORKER_EKS = ("prod-gke", "queue-workers"), ("prod-eks", "queue-workers")


@pytest.mark.parametrize(
    "asked,fields,message",
    [
        (SERVER_EKS, {"workload_class": "training"}, "waits in a queue, and a service would never return its quota; allowed"),
        (SERVER_EKS, {"replicas": 9}, "replicas (is 9): need 9 GPUs (1 each), but team search can use 8 for class inference"),
        (SERVER_EKS, {"max_replicas": 10}, "max_replicas (is 10): need 10 GPUs (1 each)"),
        (SERVER_EKS, {"team": "nlp"}, "has no share of the pools of class inference"),
        (SERVER_EKS, {"drain_seconds": 60}, "leaves the program no time before the kill, 60 seconds after"),
        (SERVER_EKS, {"replicas": 3, "max_replicas": 2}, "max_replicas (2) is below replicas (3); raise max_replicas"),
        (SERVER_EKS, {"metric": "waiting"}, "metric and metric_target need each other; set both"),
        (SERVER_EKS, {"ready_path": "health"}, "allowed: a path from the root such as /health"),
        (CACHE_GKE, {"bucket_region": "US"}, "bucket_region (is 'US'): is not the cluster's region, us-central1"),
        (CACHE_EKS, {"bucket_region": "eu-west-1"}, "copy the weights into a bucket in us-east-1"),
        (CACHE_LOCAL, {}, "cannot be mounted: the local platform has no bucket; use a stack on gke or eks"),
        (CACHE_EKS, {"team": "serach"}, "is not a team; did you mean search?"),
        (CACHE_EKS, {"bucket": "s3://models"}, "allowed: the name of a bucket, without gs:// or s3://"),
        (CACHE_EKS, {"folder": "/models/"}, "allowed: a folder of lower-case names"),
        (CACHE_EKS, {"size": 3}, "size: is not an input"),
        (WORKER_GKE, {"queue": SQS}, "is not a queue for workers of this platform; use a subscription such as projects/"),
        (WORKER_EKS, {"queue": PUBSUB}, "use a URL such as https://sqs.us-east-1.amazonaws.com/111122223333/prod_nlp_work"),
        (WORKER_EKS, {"lease_seconds": 89}, "must be 30 s above the grace period, 60 s, and within the longest lease; allowed: 90"),
        (WORKER_GKE, {"lease_seconds": 601}, "allowed: 90 to 600; longer tasks extend their lease"),
        (WORKER_EKS, {"team": "ads", "workers": 17}, "workers (is 17): need 17 GPUs (1 each), but team ads can use 16"),
        (WORKER_EKS, {"workers": 0}, "workers (is 0): should be at least 1"),
        (NOTEBOOK, {"idle_seconds": 60}, "idle_seconds (is 60): should be at least 300"),
        (NOTEBOOK, {"nightly_stop": "8 pm"}, "a time of day in UTC, in quotes, such as '02:00'"),
        (NOTEBOOK, {"gpus": 2}, "does not fit a node of class interactive"),
        (NOTEBOOK, {"home": "home"}, "a path from the root such as /home/jovyan"),
    ],
)
def test_an_impossible_service_is_refused_with_what_is_allowed(asked: tuple[str, str], fields: dict[str, Any], message: str) -> None:
    with pytest.raises(WorkloadError) as refused:
        service(*asked, **fields)

    assert message in str(refused.value)


def test_all_problems_are_reported_at_once_by_input() -> None:
    problems = problems_of("prod-gke", team="npl", workload_class="trainin", image="x:main", cpu="-1")

    assert [each.partition(" ")[0] for each in problems] == ["image", "cpu", "team", "workload_class"]


def test_without_a_limit_of_its_class_a_job_must_say_how_long_it_may_run() -> None:
    spot = pool("l4-spot", "g6.xlarge", "spot", 1, "training")
    plan = plan_settings.plan_of(local(spot, classes={"training": {"run_limit_hours": None}}, teams=[team("red", shares={"l4-spot": 1})]))
    fields = {"name": "bert", "team": "red", "workload_class": "training", "image": IMAGE}

    with pytest.raises(WorkloadError, match="class training has no run limit: the job might never end; set its longest"):
        objects_of(plan, "checkpointed-job", fields)
    [job] = objects_of(plan, "checkpointed-job", {**fields, "run_seconds": 3600})
    assert job["spec"]["activeDeadlineSeconds"] == 3600


def test_a_job_of_another_teams_project_is_refused_with_the_teams_own() -> None:
    plan = plan_of("local")
    owned = replace(plan, teams=tuple(replace(each, projects=("asr", "tts")) for each in plan.teams))
    written = {"name": "j", "team": "team-alpha", "workload_class": "training", "image": IMAGE}

    with pytest.raises(WorkloadError) as refused:
        objects_of(owned, "queued-job", {**written, "project": "ads"})
    [problem] = refused.value.problems
    assert str(problem) == "project (is 'ads'): is not a project of team-alpha; did you mean asr? allowed: asr, tts"
    assert objects_of(owned, "queued-job", {**written, "project": "tts"})
    assert objects_of(plan, "queued-job", {**written, "project": "ads"}), "a team without a list names any"


def test_on_autopilot_where_no_label_names_a_pool_a_pod_must_fit_on_every_node_of_its_class() -> None:
    settings = autopilot_settings()
    settings["pools"].append(
        {"name": "l4-large", "machine": "g2-standard-48", "capacity_type": "spot", "max_nodes": 2, "serves": ["training"]}
    )
    settings["teams"][0]["shares"]["l4-large"] = 8
    plan = build_plan(parse_settings(settings, "settings"))
    fields = {"name": "bert", "team": "research", "workload_class": "training", "image": IMAGE}

    [job] = objects_of(plan, "checkpointed-job", fields)
    assert "affinity" not in job["spec"]["template"]["spec"]
    assert job["spec"]["template"]["spec"]["nodeSelector"]["cloud.google.com/gke-accelerator"] == "nvidia-l4"
    with pytest.raises(WorkloadError, match="request 1 per pod"):
        objects_of(plan, "checkpointed-job", {**fields, "gpus": 4})


def test_without_a_queue_for_it_work_without_gpus_is_refused() -> None:
    plan = replace(plan_of("dev-eks"), cpu_work=None)
    fields = {"name": "prepare", "team": "research", "workload_class": "training", "image": IMAGE, "gpus": 0}
    with pytest.raises(WorkloadError, match=r"gpus .is 0.: requires nodes without GPUs, which this stack does not have"):
        objects_of(plan, "queued-job", fields)
