"""The priorities of workload classes: PriorityClasses for the scheduler, WorkloadPriorityClasses for Kueue."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
from typing import TypedDict

import pulumi
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs
from pulumi_kubernetes.scheduling.v1 import PriorityClass

from flexspot.capacity.catalog.workload_classes import HIGHEST_PRIORITY, SCALE_UP_CUTOFF
from flexspot.capacity.values.errors import SettingsProblem
from flexspot.components.shared_args import publish, refuse


class PriorityArgs(TypedDict):
    """One PriorityClass. If `preempts` is false its pods wait for free capacity and preempt nothing, which suits all queued work."""

    name: str
    """The object's name."""

    value: int
    """The priority. Pods with a higher value are scheduled first."""

    preempts: bool
    """If true, its pods preempt pods with a lower priority."""

    description: str
    """Description, for people."""


def check_priorities(owner: str, classes: list[PriorityArgs]) -> None:
    """Raise ValueError, beginning with `owner`, for priorities that Kubernetes rejects or for which no node is ever created."""
    seen: set[str] = set()
    remedy = f"use {SCALE_UP_CUTOFF} to {HIGHEST_PRIORITY}"
    for each in classes:
        path, value = f"classes.{each['name']}", str(each["value"])
        if each["value"] < SCALE_UP_CUTOFF:
            low = f"Cluster Autoscaler creates no nodes for pods below {SCALE_UP_CUTOFF}"
            refuse(owner, SettingsProblem(f"{path}.value", value, low, remedy))
        if each["value"] > HIGHEST_PRIORITY:
            refuse(owner, SettingsProblem(f"{path}.value", value, f"Kubernetes reserves values above {HIGHEST_PRIORITY}", remedy))
        if each["name"].startswith("system-"):
            refuse(owner, SettingsProblem(path, "", "has a reserved name", "choose one that does not begin with system-"))
        if each["name"] in seen:
            refuse(owner, SettingsProblem(path, "", "is listed twice", "give each class a different name"))
        seen.add(each["name"])


class PrioritiesArgs(TypedDict):
    """Arguments of Priorities."""

    classes: list[PriorityArgs]
    """The classes, in any order."""

    labels: dict[str, str]
    """Labels of every object."""


class Priorities(pulumi.ComponentResource):
    """One PriorityClass per workload class. None is the cluster's default, so pods without a class are unaffected.

    Raises ValueError for a value below -10, for which Cluster Autoscaler creates no node, one that Kubernetes reserves, and a name that is
    the cluster's own or appears twice.
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
                # globalDefault is omitted: the server drops a false, and would see a conflict in every later apply of it. The API server
                # changes neither (kubernetes, pkg/apis/scheduling/validation: ValidatePriorityClassUpdate). Running pods keep the values
                # that they were created with.
                opts=pulumi.ResourceOptions(parent=self, replace_on_changes=["value", "preemptionPolicy"], delete_before_replace=True),
            )
        ordered = sorted(args["classes"], key=lambda each: -each["value"])
        self.names = pulumi.Output.from_input([each["name"] for each in ordered])
        publish(self)


API_VERSION = "kueue.x-k8s.io/v1beta2"
KIND = "WorkloadPriorityClass"


class WorkloadPrioritiesArgs(TypedDict):
    """Arguments of WorkloadPriorities."""

    classes: list[PriorityArgs]
    """The classes, in any order. `preempts` applies to pods and has no effect here: the queue's own settings decide about preemption."""

    labels: dict[str, str]
    """Labels of every object."""


class WorkloadPriorities(pulumi.ComponentResource):
    """One WorkloadPriorityClass per workload class, with the name and value of its PriorityClass.

    A job whose label kueue.x-k8s.io/priority-class names one keeps this place in the queue whatever priority its pods have, and the label
    can be changed while the job waits. The kind is Kueue's: pass its controller in `depends_on`.

    Raises ValueError for the same problems as Priorities.
    """

    names: pulumi.Output[list[str]]
    """Names of the WorkloadPriorityClasses, highest first."""

    def __init__(self, name: str, args: WorkloadPrioritiesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        check_priorities(f"WorkloadPriorities {name}", args["classes"])
        super().__init__("flexspot:index:WorkloadPriorities", name, {**args}, opts)
        for each in args["classes"]:
            # Its value is next to the metadata and not in a spec, which is all that pulumi_kubernetes' CustomResource accepts.
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
        publish(self)
