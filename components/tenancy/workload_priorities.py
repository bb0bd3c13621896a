"""The WorkloadPriorityClasses by which Kueue orders the work of the workload classes."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types.
from typing import TypedDict

import pulumi

from components.tenancy.priority_args import PriorityArgs, check_priorities

API_VERSION = "kueue.x-k8s.io/v1beta2"
KIND = "WorkloadPriorityClass"


class WorkloadPrioritiesArgs(TypedDict):
    """Arguments of WorkloadPriorities."""

    classes: list[PriorityArgs]
    """The classes, in any order; `preempts` is of pods and says nothing here: whom a queue preempts is written in the queue."""

    labels: dict[str, str]
    """Labels of every object."""


class WorkloadPriorities(pulumi.ComponentResource):
    """One WorkloadPriorityClass a workload class, of the name and value of its PriorityClass.

    A job whose label kueue.x-k8s.io/priority-class names one keeps this place in the queue whatever priority its pods have, and it can be
    changed while the job waits. The kind is Kueue's: hand its controller over in `depends_on`.

    Raises ValueError for what Priorities refuses.
    """

    names: pulumi.Output[list[str]]
    """Names of the WorkloadPriorityClasses, highest first."""

    def __init__(self, name: str, args: WorkloadPrioritiesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        check_priorities(f"WorkloadPriorities {name}", args["classes"])
        super().__init__("flexspot:index:WorkloadPriorities", name, {**args}, opts)
        for each in args["classes"]:
            # Its value stands beside the metadata and not in a spec, which is all that pulumi_kubernetes' CustomResource takes.
            pulumi.CustomResource(
                f"kubernetes:{API_VERSION}:{KIND}",
                f"{name}-{each['name']}",
                {
                    "apiVersion": API_VERSION,
                    "kind": KIND,
                    "metadata": {"name": each["name"], "labels": args["labels"]},
                    "value": each["value"],
                    "description": each["description"],
                },
                pulumi.ResourceOptions(parent=self),
            )
        ordered = sorted(args["classes"], key=lambda each: -each["value"])
        self.names = pulumi.Output.from_input([each["name"] for each in ordered])
        self.register_outputs({"names": self.names})
