"""The pod templates of whatever makes pods."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policies.inventory import PodSet

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policies.field import Field
    from policies.reading.source import Source

# Where each kind keeps its pods' specs; * stands for every element of a list or every entry of a mapping.
_TEMPLATE = "spec.template.spec"
_POD_SPECS: dict[tuple[str, str], tuple[str, ...]] = {
    ("", "Pod"): ("spec",),
    ("", "PodTemplate"): ("template.spec",),
    ("", "ReplicationController"): (_TEMPLATE,),
    ("apps", "DaemonSet"): (_TEMPLATE,),
    ("apps", "Deployment"): (_TEMPLATE,),
    ("apps", "ReplicaSet"): (_TEMPLATE,),
    ("apps", "StatefulSet"): (_TEMPLATE,),
    ("batch", "Job"): (_TEMPLATE,),
    ("batch", "CronJob"): ("spec.jobTemplate.spec.template.spec",),
    ("jobset.x-k8s.io", "JobSet"): ("spec.replicatedJobs.*.template.spec.template.spec",),
    ("kubeflow.org", "PyTorchJob"): ("spec.pytorchReplicaSpecs.*.template.spec",),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): (
        "spec.leaderWorkerTemplate.leaderTemplate.spec",
        "spec.leaderWorkerTemplate.workerTemplate.spec",
    ),
    ("ray.io", "RayCluster"): ("spec.headGroupSpec.template.spec", "spec.workerGroupSpecs.*.template.spec"),
    ("ray.io", "RayJob"): (
        "spec.rayClusterSpec.headGroupSpec.template.spec",
        "spec.rayClusterSpec.workerGroupSpecs.*.template.spec",
    ),
    ("ray.io", "RayService"): (
        "spec.rayClusterConfig.headGroupSpec.template.spec",
        "spec.rayClusterConfig.workerGroupSpecs.*.template.spec",
    ),
}


def read(source: Source) -> Iterator[PodSet]:
    """One view for each pod template of the object."""
    for path in _POD_SPECS.get((source.family, source.kind), ()):
        for where, pod in _places(source.fields, path.split(".")):
            if not pod.absent:
                yield PodSet(
                    identity=source.identity,
                    concerned=True,
                    partial=source.fields.partial,
                    where=where,
                    kind=source.kind,
                    namespace=source.fields.at("metadata", "namespace"),
                    pod=pod,
                )


def _places(field: Field, path: list[str], walked: str = "") -> Iterator[tuple[str, Field]]:
    if "*" not in path:
        yield ".".join(filter(None, [walked, *path])), field.at(*path)
        return
    star = path.index("*")
    listed = ".".join(filter(None, [walked, *path[:star]]))
    members = field.at(*path[:star])
    if not members.known:
        yield listed, members
    for key, member in members.parts().named:
        yield from _places(member, path[star + 1 :], f"{listed}[{key}]")
