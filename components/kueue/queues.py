"""ResourceFlavors, and a ClusterQueue with its LocalQueue for each team, in a tree of cohorts."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types.
import pulumi
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from components.kueue.queue_args import QueuesArgs
from components.kueue.queue_checks import check_queues
from components.kueue.queue_specs import cluster_queue_spec, cohort_spec, flavor_spec, local_queue_spec

API_VERSION = "kueue.x-k8s.io/v1beta2"


class Queues(pulumi.ComponentResource):
    """Guaranteed shares with borrowing: a team that wants its share back preempts what was borrowed of it.

    What is idle is shared out by weight (Kueue's fair sharing). Within a queue, higher priority preempts lower. Only the team's own
    namespace may submit. Raises ValueError for names that lead nowhere and for what Kueue would refuse: see queue_checks.py.
    """

    cluster_queues: pulumi.Output[list[str]]
    """Names of the ClusterQueues."""

    def __init__(self, name: str, args: QueuesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        check_queues(name, args)
        super().__init__("flexspot:index:Queues", name, {**args}, opts)
        child = pulumi.ResourceOptions(parent=self)
        flavors = [
            CustomResource(
                f"{name}-{flavor['name']}",
                api_version=API_VERSION,
                kind="ResourceFlavor",
                metadata=ObjectMetaArgs(name=flavor["name"], labels=args["labels"]),
                spec=flavor_spec(flavor),
                opts=child,
            )
            for flavor in args["flavors"]
        ]
        for cohort in args["cohorts"]:
            # A root that owns nothing needs no object: its name alone forms the cohort.
            if cohort["parent"] is not None or cohort["quotas"]:
                CustomResource(
                    f"{name}-{cohort['name']}-cohort",
                    api_version=API_VERSION,
                    kind="Cohort",
                    metadata=ObjectMetaArgs(name=cohort["name"], labels=args["labels"]),
                    spec=cohort_spec(cohort),
                    opts=pulumi.ResourceOptions(parent=self, depends_on=flavors),
                )
        queues = [
            CustomResource(
                f"{name}-{queue['name']}",
                api_version=API_VERSION,
                kind="ClusterQueue",
                metadata=ObjectMetaArgs(name=queue["name"], labels={**args["labels"], **queue["labels"]}),
                spec=cluster_queue_spec(queue),
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
                metadata=ObjectMetaArgs(
                    name=queue["local_queue"], namespace=queue["namespace"], labels={**args["labels"], **queue["labels"]}
                ),
                spec=local_queue_spec(queue),
                opts=pulumi.ResourceOptions(parent=self, depends_on=[cluster_queue]),
            )
        self.cluster_queues = pulumi.Output.from_input([queue["name"] for queue in args["queues"]])
        self.register_outputs({"cluster_queues": self.cluster_queues})
