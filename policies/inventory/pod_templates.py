"""Where each kind of work keeps its pods' specs: one table, for reading objects and for asking the API server about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

ELEMENTS, ENTRIES = "*", "{}"
"""In a path: every element of a list, and every entry of a mapping."""

_TEMPLATE = "spec.template.spec"


@dataclass(frozen=True)
class PodMaker:
    """A kind of object that makes pods, or is one.

    `resource` is how the API server's paths call it, `paths` lead to the pods' specs. `suspended` kinds are started and stopped by Kueue,
    which then writes into their pod templates. `makes_jobs` says that what holds a pod template is the spec of a Job. `queued_as` leads to
    the metadata whose labels and annotations Kueue reads.
    """

    group: str
    kind: str
    resource: str
    paths: tuple[str, ...] = (_TEMPLATE,)
    suspended: bool = False
    makes_jobs: bool = False
    queued_as: tuple[str, ...] = ("metadata",)


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
