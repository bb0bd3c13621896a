"""The paths to pod specs in each kind of work, and the GPUs that a pod requests or is placed on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from flexspot.capacity.catalog.accelerators import PARTITION_PREFIX, RESOURCES
from flexspot.policies.inventory.gpu_machines import gpu_selection
from flexspot.policies.values.field import UNKNOWN, Field, Tri, all_of, any_of, negated

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


ELEMENTS, ENTRIES = "*", "{}"
"""Path steps: every element of a list, and every entry of a mapping."""

_TEMPLATE = "spec.template.spec"


@dataclass(frozen=True)
class ObjectKind:
    """A kind of object."""

    group: str
    kind: str
    resource: str
    """Name in the API server's paths."""


@dataclass(frozen=True)
class PodMaker(ObjectKind):
    """A kind of object that creates pods, or is one."""

    paths: tuple[str, ...] = (_TEMPLATE,)
    """Paths to the pods' specs."""
    suspended: bool = False
    """True if Kueue starts and stops the object, and then writes into its pod templates."""
    makes_jobs: bool = False
    """True if the pod template is part of the spec of a Job."""
    queued_as: tuple[str, ...] = ("metadata",)
    """Path to the metadata whose labels and annotations Kueue reads."""


_MAKERS = (
    PodMaker("", "Pod", "pods", ("spec",)),
    PodMaker("", "PodTemplate", "podtemplates", ("template.spec",)),
    PodMaker("", "ReplicationController", "replicationcontrollers"),
    PodMaker("apps", "DaemonSet", "daemonsets"),
    PodMaker("apps", "Deployment", "deployments"),
    PodMaker("apps", "ReplicaSet", "replicasets"),
    PodMaker("apps", "StatefulSet", "statefulsets"),
    PodMaker("batch", "Job", "jobs", suspended=True, makes_jobs=True),
    PodMaker(
        "batch",
        "CronJob",
        "cronjobs",
        ("spec.jobTemplate.spec.template.spec",),
        makes_jobs=True,
        queued_as=("spec", "jobTemplate", "metadata"),
    ),
    PodMaker(
        "jobset.x-k8s.io",
        "JobSet",
        "jobsets",
        (f"spec.replicatedJobs.{ELEMENTS}.template.spec.template.spec",),
        suspended=True,
        makes_jobs=True,
    ),
    PodMaker("kubeflow.org", "Notebook", "notebooks"),
    PodMaker("kubeflow.org", "PyTorchJob", "pytorchjobs", (f"spec.pytorchReplicaSpecs.{ENTRIES}.template.spec",), suspended=True),
    PodMaker(
        "leaderworkerset.x-k8s.io",
        "LeaderWorkerSet",
        "leaderworkersets",
        ("spec.leaderWorkerTemplate.leaderTemplate.spec", "spec.leaderWorkerTemplate.workerTemplate.spec"),
    ),
    *(
        PodMaker(
            "ray.io",
            kind,
            f"{kind.lower()}s",
            (f"{cluster}.headGroupSpec.template.spec", f"{cluster}.workerGroupSpecs.{ELEMENTS}.template.spec"),
            suspended=True,
        )
        for kind, cluster in {"RayCluster": "spec", "RayJob": "spec.rayClusterSpec", "RayService": "spec.rayClusterConfig"}.items()
    ),
)

POD_MAKERS: Mapping[tuple[str, str], PodMaker] = {(each.group, each.kind): each for each in _MAKERS}
"""Every kind, by API group and kind."""


GPU_PREFIXES = (*RESOURCES, PARTITION_PREFIX)
"""Prefixes of resource names that are GPUs: whole, shared or sliced ones, and single cores of Neuron devices."""

GPU_RUNTIME = "nvidia"
"""The RuntimeClass that gives a container the GPUs of its node."""

REQUIRED_TERMS = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
"""Path to the terms of a node affinity that must hold."""

SYSTEM_NAMESPACE, SYSTEM_PRIORITY = "kube-system", "system-"
"""The namespace, and the prefix of priority classes, of pods that serve the nodes themselves."""

# Labels that name one pool or one class of nodes. Combined with a toleration of the GPU taint, they mean a pool of GPUs.
POOL_LABELS = frozenset(
    {
        "cloud.google.com/gke-nodepool",
        "cloud.google.com/compute-class",
        "eks.amazonaws.com/nodegroup",
        "karpenter.sh/nodepool",
    }
)


def serve_nodes(kind: str, namespace: Field, pod: Field) -> bool:
    """Return whether the pods of an object of `kind` serve the nodes themselves, so that they may run on GPU nodes without a GPU.

    Such agents are DaemonSets, in kube-system, or of a system priority. All three are literals in practice, so an unknown namespace or
    class does not count as one.
    """
    priority = pod.at("priorityClassName").text()
    of_system = isinstance(priority, str) and priority.startswith(SYSTEM_PRIORITY)
    return kind == "DaemonSet" or namespace.equals(SYSTEM_NAMESPACE) is True or of_system


def containers(pod: Field) -> Iterator[tuple[str, Field]]:
    """Yield the containers of a pod, init containers included, each with its name for a sentence."""
    for field in ("initContainers", "containers"):
        for place, container in pod.at(field).parts().named:
            name = container.at("name").text()
            yield f"container {name if isinstance(name, str) else f'{field}[{place}]'}", container


def unbacked_request(pod: Field) -> tuple[Tri, str, str]:
    """Return whether a container requests GPUs without a limit, its name, and the resource.

    gpu-request-differs-from-limit handles a limit of another number.
    """
    # Most containers request no GPUs.
    asking = [
        (name, resources) for name, container in containers(pod) if not (resources := container.at("resources")).at("requests").absent
    ]
    answers: list[tuple[Tri, str, str]] = [
        (_unbacked(resources, resource), name, resource) for resource in RESOURCES for name, resources in asking
    ]
    found = any_of(answer for answer, _, _ in answers)
    return next((each for each in answers if each[0] is found), (found, "", ""))


def _unbacked(resources: Field, resource: str) -> Tri:
    request, limits = resources.at("requests", resource), resources.at("limits")
    if request.absent or not resources.at("requests").known:
        return False
    return limits.at(resource).absent if limits.known else UNKNOWN


def requests_gpus(pod: Field) -> Tri:
    """Return whether a container has a limit on GPUs, whole, shared or sliced, or the pod a claim on devices (DRA)."""
    answers: list[Tri] = [_limits_gpus(container.at("resources", "limits")) for _, container in containers(pod)]
    answers.append(pod.at("resourceClaims").parts().any(lambda _: True))
    answers += [UNKNOWN for field in ("initContainers", "containers") if not pod.at(field).parts().complete]
    return any_of(answers)


def _limits_gpus(limits: Field) -> Tri:
    return any_of([*(answer for _, answer in _limited(limits)), *([] if limits.parts().complete else [UNKNOWN])])


def _limited(limits: Field) -> Iterator[tuple[str, Tri]]:
    """Yield the GPU resources that limits name, each with whether its amount is above zero."""
    for resource, amount in limits.parts().named:
        if resource.startswith(GPU_PREFIXES):
            number = amount.number()
            yield resource, UNKNOWN if number is UNKNOWN else number is not None and number > 0


def gpu_resources(pod: Field) -> list[str]:
    """Return the resources by which the pod certainly requests GPUs: whole, shared or sliced. A claim on devices (DRA) names none."""
    limits = (container.at("resources", "limits") for _, container in containers(pod))
    return sorted({resource for each in limits for resource, answer in _limited(each) if answer is True})


def placed_on_gpus(pod: Field) -> tuple[Tri, str]:
    """Return whether the pod can run only on GPU nodes, and the field that shows it.

    A toleration alone proves nothing: it allows GPU nodes without requiring them. Together with a selector that names a pool it does.
    """
    selector = pod.at("nodeSelector")
    selected = [
        (gpu_selection(Field({"key": key, "operator": "In", "values": [value.value]})).demands, f"nodeSelector {key}")
        for key, value in selector.parts().named
    ]
    named_pool = any_of(key in POOL_LABELS for key, _ in selector.parts().named)
    terms = pod.at(*REQUIRED_TERMS)
    answers: list[tuple[Tri, str]] = [
        *selected,
        (False if selector.parts().complete else UNKNOWN, "nodeSelector"),
        # Terms are joined by "or", the expressions of one by "and".
        (terms.parts().every(lambda term: term.at("matchExpressions").parts().any(_demands)), "node affinity"),
        (pod.at("runtimeClassName").equals(GPU_RUNTIME), "runtimeClassName"),
        (
            all_of([named_pool, pod.at("tolerations").parts().any(tolerates_gpus)]),
            "a selector of a pool and a toleration of its GPU taint",
        ),
    ]
    placed = any_of(answer for answer, _ in answers)
    return placed, next((field for answer, field in answers if answer is placed), "")


def _demands(expression: Field) -> Tri:
    return gpu_selection(expression).demands


def tolerates_gpus(toleration: Field) -> Tri:
    """Return whether a toleration names the taint of GPU nodes. One without a key tolerates everything and does not mean GPUs."""
    return all_of([toleration.at("key").equals(*RESOURCES), negated(toleration.at("effect").equals("PreferNoSchedule"))])
