"""QueueWorkers, ModelServer, Notebook and ModelCache: they register the rendered objects, and Pulumi waits for some of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_type_hints

import pulumi
import pytest
from program_declarations import shipped

from flexspot.capacity.plan.build import build_plan
from flexspot.capacity.settings.stack_file import parse_settings
from flexspot.capacity.workloads.kinds import KINDS, objects_of
from flexspot.capacity.workloads.requests import WorkloadError
from flexspot.components.storage.gcs_bucket import GcsFuseVolume
from flexspot.components.storage.s3_bucket import S3MountpointVolume
from flexspot.components.workloads.services import (
    ModelCache,
    ModelCacheArgs,
    ModelServer,
    ModelServerArgs,
    Notebook,
    NotebookArgs,
    QueueWorkers,
    QueueWorkersArgs,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from component_types import Register


COMPONENTS: dict[str, Any] = {"queue-workers": QueueWorkers, "model-server": ModelServer, "notebook": Notebook, "model-cache": ModelCache}
ARGS = {"queue-workers": QueueWorkersArgs, "model-server": ModelServerArgs, "notebook": NotebookArgs, "model-cache": ModelCacheArgs}

USUAL: dict[str, dict[str, Any]] = {
    "queue-workers": {"workload_class": "best-effort", "image": "w:1", "queue": "https://sqs.us-east-1.amazonaws.com/111122223333/work"},
    "model-server": {"workload_class": "inference", "image": "s:1"},
    "notebook": {"workload_class": "interactive", "image": "n:1"},
    "model-cache": {"bucket": "acme-models"},
}


def fields(kind: str, **more: Any) -> dict[str, Any]:
    return {"name": "desk", "team": "search", **USUAL[kind], **more}


def component(kind: str, stack: str = "prod-eks", **more: Any) -> Callable[[], Any]:
    return lambda: COMPONENTS[kind]("mine", {"platform": shipped(stack), **fields(kind, **more)})


def bare(inputs: dict[str, Any]) -> dict[str, Any]:
    """Return an object without Pulumi's annotations."""
    metadata = {name: value for name, value in inputs["metadata"].items() if name != "annotations"}
    return {**inputs, "metadata": metadata}


@pytest.mark.parametrize(
    "kind,more",
    [
        ("queue-workers", {}),
        ("queue-workers", {"keda": True, "items_per_worker": 5, "lease_seconds": 120}),
        ("queue-workers", {"keda": True, "workload_class": "inference"}),
        ("model-server", {}),
        ("model-server", {"max_replicas": 4, "callers": ["gateway"], "model_cache": "weights", "drain_seconds": 20}),
        ("notebook", {"home_gib": 10, "nightly_stop": "18:30"}),
        ("notebook", {"workload_class": "inference"}),
        ("model-cache", {"cache_gib": 5, "folder": "shared/llama"}),
    ],
)
def test_a_service_is_registered_as_it_is_rendered(kind: str, more: dict[str, Any], register: Register) -> None:
    made = register(component(kind, **more))

    expected = objects_of(build_plan(parse_settings(shipped("prod-eks"), "platform")), kind, fields(kind, **more))
    assert [bare(inputs) for token, _, inputs in made.resources if token.startswith("kubernetes:")] == [bare(each) for each in expected]
    assert made.names(f"flexspot:index:{KINDS[kind].component}") == ["mine"]
    assert all(name.startswith("mine-") for token, name, _ in made.resources if token.startswith("kubernetes:"))


def test_pulumi_waits_for_a_server_as_long_as_a_node_boots_and_for_no_service_before_its_pods(register: Register) -> None:
    made = register(component("model-server", start_seconds=600))

    [deployment], [service] = made.of("kubernetes:apps/v1:Deployment"), made.of("kubernetes:core/v1:Service")
    assert deployment["metadata"]["annotations"] == {"pulumi.com/timeoutSeconds": "2400"}
    assert service["metadata"]["annotations"] == {"pulumi.com/skipAwait": "true"}


def test_a_running_notebook_is_left_running_and_its_disk_waits_for_its_first_pod(register: Register) -> None:
    ignored: dict[str, Any] = {}

    def note(each: pulumi.ResourceTransformationArgs) -> None:
        ignored[each.type_] = each.opts.ignore_changes

    args: Any = {"platform": shipped("prod-eks"), **fields("notebook", workload_class="inference")}
    made = register(lambda: Notebook("mine", args, pulumi.ResourceOptions(transformations=[note])))

    assert ignored["kubernetes:apps/v1:Deployment"] == ["spec.replicas"]
    [claim] = made.of("kubernetes:core/v1:PersistentVolumeClaim")
    assert claim["metadata"]["annotations"] == {"pulumi.com/skipAwait": "true"}


@pytest.mark.parametrize(
    "kind,more,output,value",
    [
        ("queue-workers", {"keda": True}, "workload", "ScaledJob/desk"),
        ("model-server", {}, "address", "http://desk.search.svc"),
        ("notebook", {}, "start", "kubectl -n search create job desk --from=cronjob/desk"),
        ("notebook", {"workload_class": "inference"}, "start", "kubectl -n search scale deployment desk --replicas=1"),
        ("model-cache", {}, "volume", "search.desk"),
        ("model-cache", {}, "claim", "desk"),
    ],
)
def test_outputs_have_the_users_next_step(kind: str, more: dict[str, Any], output: str, value: str, register: Register) -> None:
    values: list[str] = []

    register(lambda: getattr(component(kind, **more)(), output).apply(values.append))

    assert values == [value]


@pytest.mark.parametrize(
    "kind,more,message",
    [
        ("queue-workers", {"queue": "work"}, "QueueWorkers desk: 1 problem"),
        ("model-server", {"workload_class": "training"}, "waits in a queue"),
        ("notebook", {"idle_seconds": 1}, "idle_seconds"),
        ("model-cache", {"bucket_region": "eu-west-1"}, "is not the cluster's region"),
    ],
)
def test_workloads_that_cannot_work_are_refused_before_anything_is_registered(
    kind: str, more: dict[str, Any], message: str, register: Register
) -> None:
    def declare() -> None:
        with pytest.raises(WorkloadError, match=message):
            component(kind, **more)()

    assert register(declare).resources == []


@pytest.mark.parametrize("kind", sorted(COMPONENTS))
def test_the_arguments_are_the_requests_inputs_and_the_platform(kind: str) -> None:
    assert set(get_type_hints(ARGS[kind])) == {*KINDS[kind].model.model_fields, "platform"}


@pytest.mark.parametrize("stack,volume", [("prod-gke", GcsFuseVolume), ("prod-eks", S3MountpointVolume)])
def test_a_cache_is_mounted_with_the_options_of_the_data_sets(stack: str, volume: Any, register: Register) -> None:
    region = {} if stack == "prod-gke" else {"region": "us-east-1"}
    mount: dict[str, Any] = {"team": "search", "namespace": "search", "bucket": "acme-models", "purpose": "datasets", "labels": {}}

    [other] = register(lambda: volume("data", {**mount, **region, "claim": "desk", "folder": "shared/models", "file_cache_gib": 100})).of(
        "kubernetes:core/v1:PersistentVolume"
    )
    [cache] = register(component("model-cache", stack)).of("kubernetes:core/v1:PersistentVolume")

    assert cache["spec"]["mountOptions"] == other["spec"]["mountOptions"]
    assert cache["spec"]["csi"] == other["spec"]["csi"]
    assert cache["metadata"]["name"] == other["metadata"]["name"]
