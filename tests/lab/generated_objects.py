"""Random objects of every kind that rules check in the cluster, generated from the values that decide the verdicts. Not a test."""

from __future__ import annotations

import copy
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

from admission_fixtures import CORE_GROUPS

from flexspot.capacity.catalog.node_labels import GPU_RESOURCE
from flexspot.policies.inventory.pod_gpus import ELEMENTS, ENTRIES, POD_MAKERS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from flexspot.capacity.plan.model import Plan
    from flexspot.lab.cluster import KubeObject
    from flexspot.policies.inventory.pod_gpus import PodMaker

Chosen = TypeVar("Chosen")

_AMOUNTS: tuple[int | str, ...] = (1, "1", 0, "0", 2, "2", 8, "8", 9, "9", 16, 17, "1k", "1000m", "9000m", "500m", "0.5")
_WHOLE: tuple[int | str, ...] = (1, "1", 0, "0", 2, "2", 8, "8", 9, "9", 16, 17, "1k")
"""The API server accepts only whole numbers for an extended resource, and normalizes their spelling."""

_RESOURCES = (GPU_RESOURCE, GPU_RESOURCE, GPU_RESOURCE, "nvidia.com/mig-1g.5gb", "nvidia.com/gpu.shared", "amd.com/gpu")
_SECONDS = (0, 1, 15, 16, 25, 30, 31, 90, 91, 105, 106, 120, 121, 600)
_SELECTORS: tuple[dict[str, str], ...] = (
    {"cloud.google.com/gke-spot": "true"},
    {"cloud.google.com/gke-spot": "false"},
    {"karpenter.sh/capacity-type": "spot"},
    {"karpenter.sh/capacity-type": "on-demand"},
    {"eks.amazonaws.com/capacityType": "SPOT"},
    {"cloud.google.com/gke-flex-start": "true"},
    {"cloud.google.com/gke-accelerator": "nvidia-l4"},
    {"karpenter.k8s.aws/instance-gpu-name": "l4"},
    {"node.kubernetes.io/instance-type": "p5.48xlarge"},
    {"node.kubernetes.io/instance-type": "m6i.large"},
    {"kubernetes.io/os": "linux"},
    {"topology.kubernetes.io/zone": "us-central1-a"},
    {"cloud.google.com/compute-class": "inference"},
    {"cloud.google.com/machine-family": "g2"},
    {"example.com/unheard-of": "yes"},
)
_TOLERATIONS: tuple[dict[str, Any], ...] = (
    {"key": GPU_RESOURCE, "operator": "Exists", "effect": "NoSchedule"},
    {"key": GPU_RESOURCE, "value": "present", "effect": "NoSchedule"},
    {"key": GPU_RESOURCE, "operator": "Exists"},
    {"operator": "Exists"},
    {"key": "cloud.google.com/gke-spot", "value": "true", "effect": "NoSchedule"},
    {"key": "flexspot.dev/class", "value": "training", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30},
)
_IMAGES = (
    "work:1",
    "work",
    "work:latest",
    "registry.example.com:5000/work",
    f"work@sha256:{'0' * 64}",
    "a/b/work:1.2.3",
    f"work:1@sha256:{'1' * 64}",
)
_PLACES = ("/data", "/data/run", "/scratch", "/scratch/deep/er", "/tmp", "/other", "relative", "gs://bucket/run", "/datafile")  # noqa: S108 -- of a container that never runs
_NAMED = ("CHECKPOINT_DIR", "CHECKPOINT_PATH", "OUTPUT_DIR", "SAVE_DIR", "MODEL_DIR", "LOG_DIR")
_OPTIONS = ("--checkpoint-dir", "--checkpoint_dir", "--output-dir", "--save-dir", "--resume-from", "--data")
_VOLUMES: tuple[dict[str, Any], ...] = (
    {"emptyDir": {}},
    {"emptyDir": {"medium": "Memory"}},
    {"persistentVolumeClaim": {"claimName": "own"}},
    {"configMap": {"name": "own"}},
    {"ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}}},
    {"nfs": {"server": "nfs", "path": "/"}},
    {"csi": {"driver": "gcsfuse.csi.storage.gke.io"}},
    {"hostPath": {"path": "/mnt"}},
)
FEW = (1, 1, 1, 1, 1, 2, 2, 3, 5)
MANY = (*FEW, 20, 33, 64)
"""Numbers of containers: teams' namespaces accept 64."""

_HARD = (
    "requests.nvidia.com/gpu", "limits.nvidia.com/gpu", "nvidia.com/gpu", "requests.nvidia.com/mig-1g.5gb", "limits.cpu", "pods",
    "requests.amd.com/gpu", "limits.amd.com/gpu", "count/jobs.batch", "limits.example.com/thing", "requests.storage",
)  # fmt: skip


class Generator:
    """Random objects of a namespace, the same ones for the same seed. `plan` provides real names of priorities, selectors and queues."""

    def __init__(self, seed: int, namespace: str, plan: Plan, sizes: tuple[int, ...] = MANY) -> None:
        self._random = Random(seed)  # noqa: S311 -- no secret
        self._namespace, self._sizes = namespace, sizes
        self._priorities = ["", "", "system-node-critical", *(route.priority_class for route in plan.routes)]
        self._selectors = [*_SELECTORS, *(route.node_selector for route in plan.routes if route.node_selector)]
        self._queues = ["none-such", *(queue.local_queue for queue in plan.queues)]
        self._makers: dict[PodMaker, Callable[[], KubeObject]] = {each: partial(self._work, each) for each in POD_MAKERS.values()}

    def objects(self, count: int) -> list[KubeObject]:
        """Return `count` objects: the same number of each kind, but twice as many Jobs, and some of a namespace's limits."""
        job = POD_MAKERS["batch", "Job"]
        makers = [*self._makers.values(), self._makers[job], partial(self._quota), partial(self._range)]
        return [makers[number % len(makers)]() for number in range(count)]

    def _one(self, choices: Sequence[Chosen]) -> Chosen:
        return self._random.choice(choices)

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    def _metadata(self) -> dict[str, Any]:
        labels: dict[str, str] = {}
        if self._chance(0.5):
            labels["kueue.x-k8s.io/queue-name"] = self._one(self._queues)
        for label in ("team", "owner", "environment"):
            if self._chance(0.4):
                labels[f"flexspot.dev/{label}"] = "somebody"
        return {"labels": labels} if labels or self._chance(0.5) else {}

    def _work(self, maker: PodMaker) -> KubeObject:
        core = maker.group in CORE_GROUPS
        created: KubeObject = {
            "apiVersion": f"{maker.group}/v1" if maker.group else "v1",
            "kind": maker.kind,
            "metadata": {"name": "made", "namespace": self._namespace, **self._metadata()},
        }
        priority = self._one(self._priorities)
        for path in maker.paths:
            self._fill(created, path.split("."), maker, core=core, priority=priority)
        if maker.kind == "CronJob":
            created["spec"] |= {"schedule": "0 4 * * *"}
            created["spec"]["jobTemplate"] |= {"metadata": self._metadata()}
        if maker.kind in {"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController"}:
            created["spec"]["template"].setdefault("metadata", {}).setdefault("labels", {})["app"] = "made"
            selector: dict[str, Any] = {"app": "made"}
            created["spec"]["selector"] = selector if maker.kind == "ReplicationController" else {"matchLabels": selector}
        if maker.kind == "JobSet" and self._chance(0.5):
            created["spec"]["failurePolicy"] = {"maxRestarts": self._one((0, 2, 3, 10))}
        if maker.kind in {"PyTorchJob", "RayJob"} and self._chance(0.3):
            created["spec"].setdefault("runPolicy", {})["activeDeadlineSeconds"] = self._one((3600, 604_800, 604_801))
        return created

    def _fill(self, into: dict[str, Any], path: list[str], maker: PodMaker, *, core: bool, priority: str) -> None:
        """Put a pod's spec at a path, and the surrounding fields of a Job."""
        step, rest = path[0], path[1:]
        if not rest:
            into[step] = self._pod(maker, core=core, priority=priority)
            return
        if rest[0] in {ELEMENTS, ENTRIES}:
            listed = into.setdefault(step, [] if rest[0] == ELEMENTS else {})
            for number in range(self._one((1, 1, 2, 3))):
                member: dict[str, Any] = {"name": f"m{number}"} if rest[0] == ELEMENTS else {}
                self._fill(member, rest[1:], maker, core=core, priority=priority)
                if isinstance(listed, list):
                    listed.append(member)
                else:
                    listed[("Master", "Worker", "Other")[number]] = member
            return
        inner = into.setdefault(step, {})
        self._fill(inner, rest, maker, core=core, priority=priority)
        if maker.makes_jobs and rest == ["template", "spec"]:
            inner.update(self._of_job(inner["template"]["spec"]))
        if rest == ["spec"] and self._chance(0.4):
            inner.setdefault("metadata", {}).update(self._metadata())

    def _of_job(self, pod: dict[str, Any]) -> dict[str, Any]:
        said: dict[str, Any] = {}
        if self._chance(0.6):
            said["backoffLimit"] = self._one((0, 1, 2, 3, 6, 10))
        if self._chance(0.2):
            said |= {"completionMode": "Indexed", "completions": 4, "backoffLimitPerIndex": self._one((0, 2, 3))}
        if self._chance(0.4):
            said["activeDeadlineSeconds"] = self._one((60, 604_800, 604_801, 2_000_000))
        if pod["restartPolicy"] == "Never" and self._chance(0.3):
            action = self._one(("Ignore", "Count", "FailJob"))
            said["podFailurePolicy"] = {
                "rules": [{"action": action, "onPodConditions": [{"type": self._one(("DisruptionTarget", "Other")), "status": "True"}]}]
            }
        if self._chance(0.3):
            said["suspend"] = self._chance(0.5)
        return said

    def _pod(self, maker: PodMaker, *, core: bool, priority: str) -> dict[str, Any]:
        volumes = [{"name": f"v{number}", **copy.deepcopy(self._one(_VOLUMES))} for number in range(self._one((0, 1, 2, 4)))]
        pod: dict[str, Any] = {"containers": self._containers(volumes, self._one(self._sizes), core=core)}
        if maker.makes_jobs or maker.kind == "Pod":
            pod["restartPolicy"] = self._one(("Never", "OnFailure"))
        if self._chance(0.2):
            pod["initContainers"] = self._containers(volumes, self._one((1, 2)), core=core, prefix="i")
        if volumes:
            pod["volumes"] = volumes
        if self._chance(0.6):
            pod["terminationGracePeriodSeconds"] = self._one(_SECONDS)
        # The API server itself requires that a pod's class exists.
        if priority and maker.kind != "Pod":
            pod["priorityClassName"] = priority
        if self._chance(0.5):
            pod["nodeSelector"] = {key: value for _ in range(self._one((1, 1, 2, 3))) for key, value in self._one(self._selectors).items()}
        if self._chance(0.5):
            pod["tolerations"] = [copy.deepcopy(self._one(_TOLERATIONS)) for _ in range(self._one((1, 1, 2, 3)))]
        if self._chance(0.35):
            pod["affinity"] = {"nodeAffinity": self._affinity()}
        if maker.kind != "Pod" and self._chance(0.05):
            pod["runtimeClassName"] = "nvidia"
        return pod

    def _affinity(self) -> dict[str, Any]:
        terms = [{"matchExpressions": [self._expression() for _ in range(self._one((1, 1, 2)))]} for _ in range(self._one((1, 1, 2)))]
        if self._chance(0.75):
            return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        return {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": each} for each in terms]}

    def _expression(self) -> dict[str, Any]:
        key, value = self._one(list(self._one(self._selectors).items()))
        operator = self._one(("In", "In", "In", "NotIn", "Exists", "DoesNotExist"))
        values = {"values": [value, *(["other"] if self._chance(0.3) else [])]} if operator in {"In", "NotIn"} else {}
        return {"key": key, "operator": operator, **values}

    def _containers(self, volumes: list[dict[str, Any]], count: int, *, core: bool, prefix: str = "c") -> list[dict[str, Any]]:
        return [self._container(f"{prefix}{number}", volumes, core=core, plain=number not in {0, count - 1}) for number in range(count)]

    def _container(self, name: str, volumes: list[dict[str, Any]], *, core: bool, plain: bool) -> dict[str, Any]:
        container: dict[str, Any] = {"name": name, "image": self._one(_IMAGES)}
        if plain and self._chance(0.9):
            return container
        resources = self._resources(core=core)
        if resources or self._chance(0.3):
            container["resources"] = resources
        mounted = [each for each in volumes if self._chance(0.6)]
        if mounted:
            paths = self._random.sample(("/data", "/data/run", "/scratch", "/tmp/", "/", "/other/"), k=len(mounted))  # noqa: S108
            container["volumeMounts"] = [{"name": each["name"], "mountPath": path} for each, path in zip(mounted, paths, strict=True)]
        if self._chance(0.4):
            container["env"] = [{"name": self._one(_NAMED), "value": self._one(_PLACES)}]
        if self._chance(0.4):
            option, place = self._one(_OPTIONS), self._one(_PLACES)
            container[self._one(("args", "command"))] = [f"{option}={place}"] if self._chance(0.5) else [option, place]
        return container

    def _resources(self, *, core: bool) -> dict[str, dict[str, Any]]:
        resources: dict[str, dict[str, Any]] = {}
        for resource in dict.fromkeys(self._one(_RESOURCES) for _ in range(self._one((0, 1, 1, 2)))):
            amount = self._one(_WHOLE if core else _AMOUNTS)
            # The API server rejects a request of an extended resource without the same limit.
            kept = self._one(("limits", "both") if core else ("limits", "both", "requests", "differ"))
            if kept in {"limits", "both", "differ"}:
                resources.setdefault("limits", {})[resource] = amount
            if kept in {"requests", "both"}:
                resources.setdefault("requests", {})[resource] = amount
            if kept == "differ":
                resources.setdefault("requests", {})[resource] = self._one(_AMOUNTS)
        if self._chance(0.3):
            resources.setdefault("limits", {})["cpu"] = self._one(("500m", 1, "1", 2))
        return resources

    def _quota(self) -> KubeObject:
        hard = {key: self._one((1, "1", 0, "8")) for key in self._random.sample(_HARD, k=self._one((1, 2, 4)))}
        return {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "made", "namespace": self._namespace},
            "spec": {"hard": hard},
        }

    def _range(self) -> KubeObject:
        keys = ("cpu", "nvidia.com/gpu", "nvidia.com/mig-1g.5gb", "memory")
        limits = [
            {"type": self._one(("Container", "Pod")), self._one(("max", "min")): {self._one(keys): self._one((1, "1"))}}
            for _ in range(self._one((1, 2)))
        ]
        return {
            "apiVersion": "v1",
            "kind": "LimitRange",
            "metadata": {"name": "made", "namespace": self._namespace},
            "spec": {"limits": limits},
        }
