"""Pods that train together: how they find each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.workloads.names import COMPLETIONS_VARIABLE, GANG_SERVICE, INDEX_ANNOTATION

if TYPE_CHECKING:
    from capacity.workloads.job_request import JobRequest
    from capacity.workloads.pods import KubeObject

JOBSET_GROUP = "pods"
"""The name of the one group of pods in a JobSet."""


def rendezvous(request: JobRequest) -> list[KubeObject]:
    """The variables by which the pods of a gang meet at pod 0, as torchrun's options and others' are called.

    The host name of an Indexed Job's pod is the job's name and its index, in the domain of the team's Service of gangs. A JobSet has a
    Service of its own, of its own name, which its controller makes.
    """
    first = f"{request.name}-{JOBSET_GROUP}-0-0.{request.name}" if request.jobset else f"{request.name}-0.{GANG_SERVICE}"
    return [
        {"name": "MASTER_ADDR", "value": first},
        {"name": "MASTER_PORT", "value": str(request.port)},
        {"name": "NNODES", "value": str(request.pods)},
        own_index("NODE_RANK"),
    ]


def own_index(variable: str) -> KubeObject:
    """A variable with the pod's index. JOB_COMPLETION_INDEX has it too, but comes last: no other variable could be made of it."""
    return {"name": variable, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.annotations['{INDEX_ANNOTATION}']"}}}


def completions(request: JobRequest) -> KubeObject:
    """The variable that says how many pods the job has."""
    return {"name": COMPLETIONS_VARIABLE, "value": str(request.pods)}
