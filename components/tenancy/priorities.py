"""The PriorityClasses that workload classes have."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types.
from typing import TypedDict

import pulumi
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs
from pulumi_kubernetes.scheduling.v1 import PriorityClass

from components.tenancy.priority_args import PriorityArgs, check_priorities


class PrioritiesArgs(TypedDict):
    """Arguments of Priorities."""

    classes: list[PriorityArgs]
    """The classes, in any order."""

    labels: dict[str, str]
    """Labels of every object."""


class Priorities(pulumi.ComponentResource):
    """One PriorityClass a workload class; none is the cluster's default, so a pod without a class is unchanged.

    Raises ValueError for a value below -10, for which Cluster Autoscaler makes no node, one that Kubernetes keeps for itself, and a name
    that is the cluster's own or stands twice.
    """

    names: pulumi.Output[list[str]]
    """Names of the PriorityClasses, highest first."""

    def __init__(self, name: str, args: PrioritiesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        check_priorities(f"Priorities {name}", args["classes"])
        super().__init__("flexspot:index:Priorities", name, {**args}, opts)
        for each in args["classes"]:
            PriorityClass(
                f"{name}-{each['name']}",
                metadata=ObjectMetaArgs(name=each["name"], labels=args["labels"]),
                value=each["value"],
                preemption_policy="PreemptLowerPriority" if each["preempts"] else "Never",
                description=each["description"],
                # globalDefault is left out: the server drops a false, and would then see a conflict in every later apply of it.
                opts=pulumi.ResourceOptions(parent=self),
            )
        ordered = sorted(args["classes"], key=lambda each: -each["value"])
        self.names = pulumi.Output.from_input([each["name"] for each in ordered])
        self.register_outputs({"names": self.names})
