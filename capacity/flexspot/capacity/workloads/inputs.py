"""Inputs of a workload from the team's namespace: keys of Secrets and ConfigMaps, volumes, pull secrets and other resources of a node.

All of them must exist before the pods do. No queue has a quota for amounts other than vCPU, memory and GPUs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import Field, model_validator

from flexspot.capacity.catalog.accelerators import ACCELERATORS, RESOURCES
from flexspot.capacity.catalog.data_files import Record
from flexspot.capacity.catalog.node_labels import EFA_RESOURCE
from flexspot.capacity.values.errors import SettingsProblem
from flexspot.capacity.values.names import AMOUNT, MOUNT_PATH, OBJECT_NAME, RESOURCE_KEY, VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ObjectName = Annotated[str, Field(pattern=OBJECT_NAME)]
Key = Annotated[str, Field(min_length=1, max_length=253)]
MountPath = Annotated[str, Field(pattern=MOUNT_PATH)]
ResourceKey = Annotated[str, Field(pattern=RESOURCE_KEY)]
Amount = Annotated[str, Field(pattern=AMOUNT)]

VISIBLE_DEVICES = "NVIDIA_VISIBLE_DEVICES"
"""With this variable NVIDIA's runtime gives a container access to GPUs that were not allocated to it."""

HUGE_PAGES = "hugepages-"
"""Prefix of the resources for huge pages."""


class SecretKey(Record):
    """A key of a Secret in the team's namespace."""

    secret: ObjectName
    key: Key


class ConfigMapKey(Record):
    """A key of a ConfigMap in the team's namespace."""

    config_map: ObjectName
    key: Key


class EnvironmentSource(Record):
    """All keys of a Secret or a ConfigMap as variables."""

    secret: ObjectName | None = None
    config_map: ObjectName | None = None
    prefix: Annotated[str, Field(pattern=VARIABLE)]
    """Put before each variable's name.

    Without it, everyone who may write the ConfigMap could set any variable, also NVIDIA_VISIBLE_DEVICES, which the cluster rejects.
    """

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.secret is None) is (self.config_map is None):
            raise ValueError("must have exactly one of secret and config_map; set one of them")
        if VISIBLE_DEVICES.startswith(self.prefix):
            raise ValueError(f"has prefix {self.prefix}, with which the rejected variable {VISIBLE_DEVICES} begins; choose another prefix")
        return self


class OwnVolume(Record):
    """A volume of the team: one of a claim, a Secret or a ConfigMap."""

    claim: ObjectName | None = None
    """PersistentVolumeClaim."""
    secret: ObjectName | None = None
    """Secret with the files, mounted read-only."""
    config_map: ObjectName | None = None
    """ConfigMap with the files, mounted read-only."""
    read_only: bool = False

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if sum(each is not None for each in (self.claim, self.secret, self.config_map)) != 1:
            raise ValueError("must have exactly one of claim, secret and config_map; set one of them")
        return self

    def source(self) -> dict[str, Any]:
        """Return the fields of the pod's volume except its name."""
        if self.secret is not None:
            return {"secret": {"secretName": self.secret}}
        if self.config_map is not None:
            return {"configMap": {"name": self.config_map}}
        return {"persistentVolumeClaim": {"claimName": self.claim, **({"readOnly": True} if self.read_only else {})}}


def variables_of(secrets: Mapping[str, SecretKey], config_maps: Mapping[str, ConfigMapKey]) -> list[dict[str, Any]]:
    """Return the variables whose values are in a Secret or a ConfigMap, sorted by name."""
    from_secrets = {name: {"secretKeyRef": {"name": each.secret, "key": each.key}} for name, each in secrets.items()}
    from_maps = {name: {"configMapKeyRef": {"name": each.config_map, "key": each.key}} for name, each in config_maps.items()}
    return [{"name": name, "valueFrom": source} for name, source in sorted((from_secrets | from_maps).items())]


def environment_of(sources: Iterable[EnvironmentSource]) -> list[dict[str, Any]]:
    """Return the envFrom field of a container."""
    return [
        {"prefix": each.prefix, **({"secretRef": {"name": each.secret}} if each.secret else {"configMapRef": {"name": each.config_map}})}
        for each in sources
    ]


def volumes_of(volumes: Mapping[str, OwnVolume]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the pod's volumes and the mounts of its container, sorted by path.

    A claim that is mounted twice is one volume, because a pod can attach a disk only once.
    """
    created: list[dict[str, Any]] = []
    mounts: list[dict[str, Any]] = []
    for path, each in sorted(volumes.items()):
        source = each.source()
        name = next((volume["name"] for volume in created if {**volume, "name": None} == {"name": None, **source}), None)
        if name is None:
            name = f"own-{len(created)}"
            created.append({"name": name, **source})
        mounts.append({"name": name, "mountPath": path, **({} if each.claim and not each.read_only else {"readOnly": True})})
    return created, mounts


def resource_problems(resources: Mapping[str, str]) -> list[SettingsProblem]:
    """Return the problems of other resources: those with a separate input, and those of no node, for which pods would wait forever."""
    found: list[SettingsProblem] = []
    for key, amount in sorted(resources.items()):
        if key in _SEPARATE_INPUTS:
            found.append(SettingsProblem(f"resources.{key}", amount, "has a separate input", f"use {_SEPARATE_INPUTS[key]}"))
        elif key.startswith(HUGE_PAGES):
            problem = "needs a node with such pages, and neither Karpenter nor GKE's autoscaler creates one for a pod"
            found.append(SettingsProblem(f"resources.{key}", amount, problem, "leave it out"))
        elif key.startswith(_UNCOUNTED):
            found.append(SettingsProblem(f"resources.{key}", amount, "is a device that no queue counts", "use gpus, for whole GPUs"))
    return found


_SEPARATE_INPUTS = {"cpu": "cpu", "memory": "memory", **dict.fromkeys(RESOURCES, "gpus"), EFA_RESOURCE: "fast_network"}

_UNCOUNTED = ("nvidia.com/", *(part for each in ACCELERATORS for part in each.parts))
"""Prefixes of other names of the same devices."""


def mount_problems(volumes: Mapping[str, OwnVolume], taken: Iterable[str]) -> list[SettingsProblem]:
    """Return the volumes at or above a path where the pod has another volume. One of the two would hide the other."""
    found: list[SettingsProblem] = []
    for path in sorted(volumes):
        over = next((each for each in sorted(taken) if each == path or each.startswith(f"{path}/")), None)
        if over is not None:
            problem = f"would hide the pod's own volume at {over}"
            found.append(SettingsProblem(f"volumes.{path}", "", problem, "choose another path, such as /data"))
    return found
