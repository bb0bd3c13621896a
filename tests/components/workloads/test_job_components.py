"""CheckpointedJob, QueuedJob and FlexStartJob: they register the rendered objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_type_hints

import pytest
from program_declarations import shipped

from flexspot.capacity.plan.build import build_plan
from flexspot.capacity.settings.stack_file import parse_settings
from flexspot.capacity.workloads.kinds import objects_of
from flexspot.capacity.workloads.requests import GANG_LABEL, GANG_SERVICE, JobRequest, WorkloadError
from flexspot.components.workloads.services import CheckpointedJob, FlexStartJob, JobArgs, QueuedJob

if TYPE_CHECKING:
    import pulumi
    from component_types import Outputs, Register

SKIP_AWAIT = {"pulumi.com/skipAwait": "true"}


def args(stack: str, **more: Any) -> JobArgs:
    team = "nlp" if stack.startswith("prod") else "research"
    fields = {"platform": shipped(stack), "name": "bert", "team": team, "workload_class": "training", "image": "trainer:1"}
    return JobArgs(**{**fields, **more})  # pyrefly: ignore[bad-argument-type] -- checked by the tested code


def test_a_job_is_registered_as_it_is_rendered_and_pulumi_does_not_wait_for_its_end(register: Register) -> None:
    made = register(lambda: CheckpointedJob("trainer", args("dev-eks")))

    plan = build_plan(parse_settings(shipped("dev-eks"), "platform"))
    fields = {"name": "bert", "team": "research", "workload_class": "training", "image": "trainer:1"}
    [expected] = objects_of(plan, "checkpointed-job", fields)
    [job] = made.of("kubernetes:batch/v1:Job")
    assert job["metadata"].pop("annotations") == SKIP_AWAIT
    assert job == expected
    assert made.names("flexspot:index:CheckpointedJob") == ["trainer"]
    assert made.names("kubernetes:batch/v1:Job") == ["trainer-bert-job"]


def test_options_of_a_job_are_in_its_objects(register: Register) -> None:
    made = register(lambda: CheckpointedJob("trainer", args("prod-eks", pods=2, gpus=8, jobset=True, retries=5, cpu="64")))

    [jobset] = made.of("kubernetes:jobset.x-k8s.io/v1alpha2:JobSet")
    assert jobset["spec"]["failurePolicy"]["maxRestarts"] == 5
    assert jobset["metadata"]["annotations"].items() >= SKIP_AWAIT.items()


def test_a_gang_is_one_job_whose_pods_have_names_in_the_teams_service(register: Register) -> None:
    [job] = register(lambda: FlexStartJob("gang", args("prod-gke", pods=2, gpus=8))).of("kubernetes:batch/v1:Job")

    template = job["spec"]["template"]
    assert (template["spec"]["subdomain"], template["metadata"]["labels"][GANG_LABEL]) == (GANG_SERVICE, "true")


def test_a_batch_is_a_job_for_each_pod_and_outputs_all_names(register: Register, outputs: Outputs) -> None:
    def batch() -> QueuedJob:
        return QueuedJob("batch", args("dev-gke", workload_class="spot-low", pods=3))

    jobs = ["bert-0", "bert-1", "bert-2"]
    assert outputs(batch) == {"namespace": "research", "job": "bert-0", "jobs": jobs}
    assert register(batch).names("kubernetes:batch/v1:Job") == [f"batch-bert-{index}-job" for index in range(3)]


def test_a_batch_without_gpus_is_in_the_queue_without_any(register: Register) -> None:
    [job] = register(lambda: QueuedJob("batch", args("dev-gke", workload_class="spot-low", gpus=0))).of("kubernetes:batch/v1:Job")

    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "cpu"
    assert "nvidia.com/gpu" not in str(job)


@pytest.mark.parametrize(
    "component,more,message",
    [
        (CheckpointedJob, {"workload_class": "spot-low"}, "CheckpointedJob bert: 1 problem"),
        (QueuedJob, {"gpus": 9}, "gpus \\(is 9\\): does not fit a node"),
        (FlexStartJob, {}, "has no flex-start or queued capacity in this stack"),
        (QueuedJob, {"surprise": 1}, "surprise: is not an input"),
    ],
)
def test_jobs_that_cannot_run_are_refused_before_anything_is_registered(
    register: Register, component: type[pulumi.ComponentResource], more: dict[str, Any], message: str
) -> None:
    def declare() -> None:
        with pytest.raises(WorkloadError, match=message):
            component("refused", args("dev-gke", **more))  # pyrefly: ignore[bad-argument-type] -- each takes JobArgs

    assert register(declare).resources == []


def test_the_arguments_are_the_requests_inputs_and_the_platform() -> None:
    assert set(get_type_hints(JobArgs)) == {*JobRequest.model_fields, "platform"}
