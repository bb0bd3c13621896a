"""The PriorityClasses that workload classes have."""

from __future__ import annotations

from typing import TypedDict

import pulumi
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs
from pulumi_kubernetes.scheduling.v1 import PriorityClass


class PriorityArgs(TypedDict):
    """One PriorityClass. With `preempts` false its pods wait for free room and take nothing from others."""

    name: str
    value: int
    preempts: bool
    description: str


class PrioritiesArgs(TypedDict):
    """Arguments of Priorities."""

    classes: list[PriorityArgs]
    """The classes, in any order."""

    labels: dict[str, str]
    """Labels of every object."""


class Priorities(pulumi.ComponentResource):
    """One PriorityClass a workload class; none is the cluster's default, so a pod without a class is unchanged."""

    names: pulumi.Output[list[str]]
    """Names of the PriorityClasses, highest first."""

    def __init__(self, name: str, args: PrioritiesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
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
