"""Inputs of a team for the pods of every kind of workload, and refusals of those that would wait, fail or be rejected later."""

from __future__ import annotations

from typing import Any

import pytest
from service_plans import service
from workload_plans import job_of, objects, plan_of, pod_of, pod_specs, variables

from flexspot.capacity.workloads.kinds import KINDS, objects_of
from flexspot.capacity.workloads.requests import WorkloadError

OWN: dict[str, Any] = {
    "secrets": {"WANDB_API_KEY": {"secret": "wandb.prod", "key": "token"}},
    "config_maps": {"LEVEL": {"config_map": "logging", "key": "level"}},
    "env_from": [{"config_map": "tuning", "prefix": "TUNE_"}, {"secret": "hub", "prefix": "HF_"}],
    "volumes": {
        "/data/train": {"claim": "corpus", "read_only": True},
        "/data/eval": {"claim": "corpus", "read_only": True},
        "/work": {"claim": "scratch-1"},
        "/etc/tuning": {"config_map": "tuning"},
        "/keys": {"secret": "hub"},
    },
    "image_pull_secrets": ["registry.prod", "mirror"],
    "resources": {"ephemeral-storage": "200Gi", "example.com/device": "2"},
}


def refused(**fields: Any) -> list[str]:
    with pytest.raises(WorkloadError) as error:
        objects("prod-eks", "checkpointed-job", **fields)
    return [str(each) for each in error.value.problems]


def test_pods_are_given_keys_volumes_pull_secrets_and_resources() -> None:
    pod = pod_of("prod-eks", **OWN)
    [container] = pod["containers"]

    found = variables(pod)
    assert found["WANDB_API_KEY"] == {"secretKeyRef": {"name": "wandb.prod", "key": "token"}}
    assert found["LEVEL"] == {"configMapKeyRef": {"name": "logging", "key": "level"}}
    assert container["envFrom"] == [
        {"prefix": "TUNE_", "configMapRef": {"name": "tuning"}},
        {"prefix": "HF_", "secretRef": {"name": "hub"}},
    ]
    sources = {each.pop("name"): each for each in pod["volumes"]}
    mounts = {each["mountPath"]: (sources[each["name"]], each.get("readOnly", False)) for each in container["volumeMounts"]}
    assert {path: mounts[path] for path in OWN["volumes"]} == {
        "/data/train": ({"persistentVolumeClaim": {"claimName": "corpus", "readOnly": True}}, True),
        "/data/eval": ({"persistentVolumeClaim": {"claimName": "corpus", "readOnly": True}}, True),
        "/work": ({"persistentVolumeClaim": {"claimName": "scratch-1"}}, False),
        "/etc/tuning": ({"configMap": {"name": "tuning"}}, True),
        "/keys": ({"secret": {"secretName": "hub"}}, True),
    }
    assert sum("persistentVolumeClaim" in each for each in sources.values()) == 3, "a claim that is mounted twice is one volume"
    assert pod["imagePullSecrets"] == [{"name": "registry.prod"}, {"name": "mirror"}]
    for sort in ("requests", "limits"):
        assert {key: container["resources"][sort][key] for key in OWN["resources"]} == OWN["resources"]


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"model-cache", "checkpointed-job", "queued-job", "flex-start-job"}))
def test_every_kind_gives_its_own_container_the_same(kind: str) -> None:
    made = service("prod-eks", kind, **OWN)

    containers = [container for pod in pod_specs(list(made)) for container in pod["containers"]]
    given = [each for each in containers if "envFrom" in each]
    assert given, "the author's container"
    assert all({"/work", "/keys"} <= {mount["mountPath"] for mount in each["volumeMounts"]} for each in given)
    assert all(each["resources"]["limits"]["ephemeral-storage"] == "200Gi" for each in given)


@pytest.mark.parametrize(
    "fields,message",
    [
        ({"resources": {"memory": "4Gi"}}, "resources.memory (is 4Gi): has a separate input; use memory"),
        ({"resources": {"nvidia.com/gpu": "4"}}, "resources.nvidia.com/gpu (is 4): has a separate input; use gpus"),
        ({"resources": {"aws.amazon.com/neuron": "4"}}, "resources.aws.amazon.com/neuron (is 4): has a separate input; use gpus"),
        ({"resources": {"aws.amazon.com/neuroncore": "2"}}, "is a device that no queue counts; use gpus, for whole GPUs"),
        ({"resources": {"nvidia.com/mig-1g.10gb": "1"}}, "is a device that no queue counts; use gpus, for whole GPUs"),
        ({"resources": {"vpc.amazonaws.com/efa": "4"}}, "has a separate input; use fast_network"),
        ({"resources": {"hugepages-2Mi": "5120Mi"}}, "neither Karpenter nor GKE's autoscaler creates one for a pod; leave it out"),
        (
            {"resources": {"ephemeral-storage": "0"}},
            "resources.ephemeral-storage (is '0'): does not have the required form; allowed: a whole amount above 0, such as 4 or 200Gi",
        ),
        ({"volumes": {"/checkpoints": {"claim": "mine"}}}, "volumes./checkpoints: would hide the pod's own volume at /checkpoints"),
        (
            {"volumes": {"/dev": {"claim": "mine"}}},
            "volumes./dev: would hide the pod's own volume at /dev/shm; choose another path, such as",
        ),
        ({"volumes": {"/data/": {"claim": "mine"}}}, "a path from the root without a slash at its end, such as /data"),
        ({"volumes": {"/data/../tmp": {"claim": "mine"}}}, "a path from the root without a slash at its end, such as /data"),
        ({"volumes": {"/data": {}}}, "must have exactly one of claim, secret and config_map; set one of them"),
        ({"volumes": {"/data": {"claim": "a", "secret": "b"}}}, "must have exactly one of claim, secret and config_map; set one of them"),
        ({"env_from": [{"prefix": "A_"}]}, "must have exactly one of secret and config_map; set one of them"),
        ({"env_from": [{"secret": "a"}]}, "env_from.0.prefix: is missing; add it"),
        (
            {"env_from": [{"secret": "a", "prefix": "NVIDIA_"}]},
            "env_from.0: has prefix NVIDIA_, with which the rejected variable NVIDIA_VISIBLE_DEVICES begins; choose another prefix",
        ),
        ({"env": {"NVIDIA_VISIBLE_DEVICES": "all"}}, "would expose other containers' GPUs, and the cluster rejects it; leave it out"),
        ({"env": {"A": "1"}, "config_maps": {"A": {"config_map": "s", "key": "k"}}}, "A is in env and in config_maps; set it in one"),
        ({"image_pull_secrets": ["My_Secret"]}, "the name of an object of Kubernetes: lower-case letters, digits, inner hyphens and dots"),
    ],
)
def test_inputs_that_would_wait_or_fail_later_are_refused(fields: dict[str, Any], message: str) -> None:
    [problem] = refused(**fields)

    assert message in problem


def test_a_jobset_and_work_without_gpus_get_the_same_inputs() -> None:
    [jobset] = objects("prod-eks", "checkpointed-job", pods=2, jobset=True, **OWN)
    [pod] = list(pod_specs(jobset))
    assert pod["imagePullSecrets"] == [{"name": "registry.prod"}, {"name": "mirror"}]

    [cpu_job] = objects_of(
        plan_of("dev-eks"),
        "queued-job",
        {"name": "prepare", "team": "research", "workload_class": "training", "image": "prepare:3", "gpus": 0, **OWN},
    )
    assert cpu_job["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["ephemeral-storage"] == "200Gi"
    assert job_of("prod-eks")["metadata"]["name"] == "bert"
