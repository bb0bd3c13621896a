"""ResourceFlavors, and a ClusterQueue with its LocalQueue for each team, in one cohort."""

from __future__ import annotations

from typing import TypedDict

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from capacity.node_labels import GPU_RESOURCE

API_VERSION = "kueue.x-k8s.io/v1beta2"

# One order for both lists: Kueue refuses a flavor whose resources stand in another order than coveredResources.
_COVERED = ("cpu", "memory", GPU_RESOURCE)


class FlavorArgs(TypedDict):
    """A flavor. `tolerations` are added to the pods that Kueue admits with it, `node_labels` become their node selector."""

    name: str
    node_labels: dict[str, str]
    tolerations: list[dict[str, str]]


class QuotaArgs(TypedDict):
    """A team's own share of a flavor; `cpu` and `memory` as Kubernetes quantities."""

    flavor: str
    gpus: int
    cpu: str
    memory: str


class QueueArgs(TypedDict):
    """The queues of one team. `namespace` must exist before the LocalQueue: hand its resource over in `depends_on`."""

    name: str
    namespace: str
    local_queue: str
    quotas: list[QuotaArgs]


class QueuesArgs(TypedDict):
    """Arguments of Queues."""

    cohort: str
    """The cohort in which the teams lend and borrow what they do not use."""

    flavors: list[FlavorArgs]
    """Every flavor that a quota names."""

    queues: list[QueueArgs]
    """One a team; at least one quota each."""

    labels: dict[str, str]
    """Labels of every object."""


class Queues(pulumi.ComponentResource):
    """Guaranteed shares with borrowing: a team that wants its share back preempts what was borrowed of it.

    Within a queue, higher priority preempts lower. Only the team's own namespace may submit.
    Raises ValueError for a quota that names a flavor which is not there.
    """

    cluster_queues: pulumi.Output[list[str]]
    """Names of the ClusterQueues."""

    def __init__(self, name: str, args: QueuesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        known = {flavor["name"] for flavor in args["flavors"]}
        for queue in args["queues"]:
            for quota in queue["quotas"]:
                if quota["flavor"] not in known:
                    allowed = ", ".join(sorted(known))
                    raise ValueError(f"Queues {name}: queue {queue['name']} has a quota of flavor {quota['flavor']}; flavors are {allowed}")
        super().__init__("flexspot:index:Queues", name, {**args}, opts)
        child = pulumi.ResourceOptions(parent=self)
        flavors = [
            CustomResource(
                f"{name}-{flavor['name']}",
                api_version=API_VERSION,
                kind="ResourceFlavor",
                metadata=ObjectMetaArgs(name=flavor["name"], labels=args["labels"]),
                spec={"nodeLabels": flavor["node_labels"], "tolerations": flavor["tolerations"]},
                opts=child,
            )
            for flavor in args["flavors"]
        ]
        queues = [
            CustomResource(
                f"{name}-{queue['name']}",
                api_version=API_VERSION,
                kind="ClusterQueue",
                metadata=ObjectMetaArgs(name=queue["name"], labels=args["labels"]),
                spec=_cluster_queue(args["cohort"], queue),
                # Kueue holds a ClusterQueue inactive until its flavors are there, and a flavor in use cannot be deleted.
                opts=pulumi.ResourceOptions(parent=self, depends_on=flavors),
            )
            for queue in args["queues"]
        ]
        for queue, cluster_queue in zip(args["queues"], queues, strict=True):
            CustomResource(
                f"{name}-{queue['name']}-local",
                api_version=API_VERSION,
                kind="LocalQueue",
                metadata=ObjectMetaArgs(name=queue["local_queue"], namespace=queue["namespace"], labels=args["labels"]),
                spec={"clusterQueue": queue["name"]},
                opts=pulumi.ResourceOptions(parent=self, depends_on=[cluster_queue]),
            )
        self.cluster_queues = pulumi.Output.from_input([queue["name"] for queue in args["queues"]])
        self.register_outputs({"cluster_queues": self.cluster_queues})


def _cluster_queue(cohort: str, queue: QueueArgs) -> dict[str, object]:
    return {
        "cohortName": cohort,
        # Null would admit no namespace at all.
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": queue["namespace"]}},
        "preemption": {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"},
        "resourceGroups": [
            {
                "coveredResources": list(_COVERED),
                "flavors": [
                    {
                        "name": quota["flavor"],
                        "resources": [
                            {"name": resource, "nominalQuota": quantity}
                            for resource, quantity in zip(_COVERED, (quota["cpu"], quota["memory"], str(quota["gpus"])), strict=True)
                        ],
                    }
                    for quota in queue["quotas"]
                ],
            }
        ],
    }
