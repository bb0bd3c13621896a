"""Arguments that all workload components have, the plan and the request that follow from them, and their objects as resources."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NotRequired, TypedDict, TypeVar

import pulumi

from flexspot.capacity.catalog.data_files import Record
from flexspot.capacity.plan.build import build_plan
from flexspot.capacity.plan.model import Plan
from flexspot.capacity.settings.stack_file import parse_settings
from flexspot.capacity.workloads.pods import KubeObject
from flexspot.capacity.workloads.requests import read_request

_SKIP_AWAIT = {"pulumi.com/skipAwait": "true"}
"""Annotation against Pulumi's wait for a Job to complete. A Job that waits in its queue, or trains for a week, would block it."""

_KUEUE_FIELDS = ["spec.suspend", "spec.template.spec.nodeSelector", "spec.template.spec.tolerations"]
"""Fields that Kueue changes when it admits a Job. A later run must not revert them."""

_IMMUTABLE = ("Job", "JobSet")
"""Kinds whose pods cannot be changed. A different image needs a new object, and its name is only free once the old one is gone."""


def declare_objects(
    name: str, parent: pulumi.Resource, objects: Sequence[KubeObject], ignoring: Mapping[str, list[str]] | None = None
) -> list[pulumi.Resource]:
    """Register the objects under `parent`, each after the one before it, named after the component, their own name and their kind.

    `ignoring` has paths of fields that others change, by kind, in addition to those that Kueue changes.
    """
    ignored = {"Job": _KUEUE_FIELDS, **(ignoring or {})}
    declared: list[pulumi.Resource] = []
    for each in objects:
        fixed = each["kind"] in _IMMUTABLE
        metadata = dict(each["metadata"])
        if fixed:
            metadata["annotations"] = {**metadata.get("annotations", {}), **_SKIP_AWAIT}
        declared.append(
            pulumi.CustomResource(
                type_token(each),
                f"{name}-{metadata['name']}-{each['kind'].lower()}",
                {**each, "metadata": metadata},
                pulumi.ResourceOptions(
                    parent=parent,
                    depends_on=declared[-1:],
                    ignore_changes=ignored.get(each["kind"]),
                    delete_before_replace=fixed or None,
                ),
            )
        )
    return declared


def type_token(each: KubeObject) -> str:
    """Return the Kubernetes provider's type of the object's resource."""
    api_version = each["apiVersion"] if "/" in each["apiVersion"] else f"core/{each['apiVersion']}"
    return f"kubernetes:{api_version}:{each['kind']}"


_WAITING_FOR_PODS = ("Service", "PersistentVolumeClaim")
"""Pulumi waits until a Service has endpoints and a claim has a volume. Both need the pods, which are declared after them."""


def declare_service_objects(
    name: str, parent: pulumi.Resource, objects: Sequence[KubeObject], *, wakes: bool = False
) -> list[pulumi.Resource]:
    """Register the objects as declare_objects does. With `wakes`, Pulumi ignores its number of replicas.

    Users and the idle watch scale such a Deployment. Pulumi waits up to a Deployment's progress deadline, in which a GPU node can boot.
    """
    ignoring = {"Deployment": ["spec.replicas"]} if wakes else None
    return declare_objects(name, parent, [_marked(each, wakes=wakes) for each in objects], ignoring)


def _marked(each: KubeObject, *, wakes: bool) -> KubeObject:
    if each["kind"] in _WAITING_FOR_PODS or (wakes and each["kind"] == "Deployment"):
        return _annotated(each, _SKIP_AWAIT)
    seconds = each.get("spec", {}).get("progressDeadlineSeconds")
    return _annotated(each, {"pulumi.com/timeoutSeconds": str(seconds)}) if seconds else each


def _annotated(each: KubeObject, annotations: dict[str, str]) -> KubeObject:
    metadata = each["metadata"]
    return {**each, "metadata": {**metadata, "annotations": {**metadata.get("annotations", {}), **annotations}}}


class SecretKeyArgs(TypedDict):
    """A key of a Secret in the team's namespace."""

    secret: str
    """The Secret's name."""

    key: str
    """The key in it."""


class ConfigMapKeyArgs(TypedDict):
    """A key of a ConfigMap in the team's namespace."""

    config_map: str
    """The ConfigMap's name."""

    key: str
    """The key in it."""


class EnvironmentSourceArgs(TypedDict):
    """All keys of a Secret or of a ConfigMap, as environment variables."""

    secret: NotRequired[str]
    """The Secret's name. Default: it is a ConfigMap."""

    config_map: NotRequired[str]
    """The ConfigMap's name. Default: it is a Secret."""

    prefix: str
    """Prefix of each variable, such as WANDB_.

    A prefix with which NVIDIA_VISIBLE_DEVICES starts is not allowed, because a container could use it to see others' GPUs."""


class OwnVolumeArgs(TypedDict):
    """A volume of the team: exactly one of claim, secret and config_map."""

    claim: NotRequired[str]
    """Name of a PersistentVolumeClaim. Default: it is not a claim."""

    secret: NotRequired[str]
    """Name of a Secret whose keys become files. Default: it is not a Secret."""

    config_map: NotRequired[str]
    """Name of a ConfigMap whose keys become files. Default: it is not a ConfigMap."""

    read_only: NotRequired[bool]
    """If true, a claim is mounted read-only, as Secrets and ConfigMaps always are. Default: false."""


class WorkloadArgs(TypedDict):
    """Arguments of every workload. Those that are omitted follow from the class, the team and the capacity of the stack."""

    platform: dict[str, Any]
    """The settings of the stack whose cluster it runs on: the contents of `flexspot:platform` in the stack file."""

    name: str
    """Name of the objects: lower-case letters, digits and inner hyphens, 40 at most."""

    team: str
    """The team whose quota and namespace it uses."""

    workload_class: str
    """The workload class, which determines its priority and the capacity on which it may run."""

    image: str
    """The image, with a release tag or a digest."""

    command: NotRequired[list[str] | None]
    """The program. Default: the image's own."""

    args: NotRequired[list[str] | None]
    """Its arguments. Default: none."""

    env: NotRequired[dict[str, str] | None]
    """Environment variables by name. Default: only the derived ones."""

    secrets: NotRequired[dict[str, SecretKeyArgs] | None]
    """Environment variables from Secrets, by name. Default: none."""

    config_maps: NotRequired[dict[str, ConfigMapKeyArgs] | None]
    """Environment variables from ConfigMaps, by name. Default: none."""

    env_from: NotRequired[list[EnvironmentSourceArgs] | None]
    """Secrets and ConfigMaps whose keys all become environment variables. Default: none."""

    volumes: NotRequired[dict[str, OwnVolumeArgs] | None]
    """The team's own volumes, by mount path. Default: none."""

    image_pull_secrets: NotRequired[list[str] | None]
    """Secrets for pulling its image. Default: none; nodes may pull from the cloud's own registry."""

    resources: NotRequired[dict[str, str] | None]
    """Additional resources, such as ephemeral-storage: 200Gi, as request and limit. Default: none."""

    gpus: NotRequired[int | None]
    """GPUs per pod. 0, only for a QueuedJob: work without GPUs, which runs on other machines. Default: 1."""

    cpu: NotRequired[str | None]
    """vCPU per pod, such as 8 or 500m.

    Default: three quarters of the CPU that belongs to its GPUs on the smallest machine, or 1 without GPUs."""

    memory: NotRequired[str | None]
    """Memory per pod, such as 32Gi. Default: as for cpu, or 4Gi without GPUs."""

    project: NotRequired[str | None]
    """The project to which reports bill it, in addition to the team. Default: nothing."""

    labels: NotRequired[dict[str, str] | None]
    """Your own labels on every object. Default: none."""

    capacity: NotRequired[list[str] | None]
    """Capacity types that it may use, from its class's. Default: all that suit it."""

    gpu_models: NotRequired[list[str] | None]
    """GPU models that it may use, from its class's, such as h100 or a100-80gb. Default: all."""

    gpu_memory_gb: NotRequired[int | None]
    """Minimum memory of one GPU, in GB as its vendor names it. Default: any."""

    fast_network: NotRequired[bool | None]
    """If true, its pods get EFA interfaces, and so only use pools that have them.

    Default: true if pods train together and all their pools have EFA."""

    grace_seconds: NotRequired[int | None]
    """Seconds from SIGTERM to the kill, at most the class's value on its capacity. Default: that value."""

    checkpoints: NotRequired[bool | None]
    """If true, the team's checkpoint folder is mounted. Default: as the class says, if the platform has buckets."""

    checkpoint_folder: NotRequired[str | None]
    """This workload's subfolder of the checkpoint folder. Default: its name, so that work resubmitted under the same name resumes."""

    datasets: NotRequired[bool | None]
    """If true, the shared datasets are mounted read-only. Default: false."""

    run_as_user: NotRequired[int | None]
    """User id of the process, at least 1. Its group is that of mounted buckets, which may write. Default: 1000, which owns their files."""

    writable_root: NotRequired[bool | None]
    """If true, it may write to its image's file system and not only to /tmp. Default: false."""

    allow_moving_image: NotRequired[bool | None]
    """If true, an image that is not pinned is accepted. Default: false."""


RequestT = TypeVar("RequestT", bound=Record)


def request_of(kind: str, model: type[RequestT], args: Mapping[str, Any]) -> RequestT:
    """Return the request that the arguments describe. Raises WorkloadError that lists each problem."""
    return read_request(kind, model, {name: value for name, value in args.items() if name != "platform"})


def plan_of(args: Mapping[str, Any]) -> Plan:
    """Return the plan of the stack that the arguments name. Raises SettingsError for settings that cannot work."""
    return _plan_of(json.dumps(args["platform"], sort_keys=True))


@lru_cache(maxsize=8)
def _plan_of(platform: str) -> Plan:
    """Return a cached plan, because a program declares many workloads on one platform."""
    return build_plan(parse_settings(json.loads(platform), "platform"))
