"""A team's namespace, with the quota and the defaults that hold in it."""

from __future__ import annotations

from typing import TypedDict

import pulumi
from pulumi_kubernetes.core.v1 import (
    LimitRange,
    LimitRangeItemArgs,
    LimitRangeSpecArgs,
    Namespace,
    ResourceQuota,
    ResourceQuotaSpecArgs,
)
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from capacity.node_labels import GPU_RESOURCE


class TeamArgs(TypedDict):
    """Arguments of Team."""

    namespace: str
    """The namespace's name."""

    max_gpus: int
    """The most GPUs that the namespace's pods may request at once, borrowed ones included; at least zero."""

    labels: dict[str, str]
    """Labels of every object of the team."""


class Team(pulumi.ComponentResource):
    """A namespace in which no more GPUs can be requested than the team may use, and containers without requests get small ones.

    The quota is on `requests.nvidia.com/gpu`: Kubernetes accepts `limits.nvidia.com/gpu` and never counts it. The LimitRange names no
    GPU: a default would give one to every container, sidecars included. Raises ValueError for a negative `max_gpus`.
    """

    namespace: pulumi.Output[str]
    """The namespace's name, known once it exists."""

    def __init__(self, name: str, args: TeamArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        if args["max_gpus"] < 0:
            raise ValueError(f"Team {name}: max_gpus is {args['max_gpus']}; use 0 for a team without GPUs, or a ceiling")
        super().__init__("flexspot:index:Team", name, {**args}, opts)
        child = pulumi.ResourceOptions(parent=self)
        namespace = Namespace(f"{name}-namespace", metadata=ObjectMetaArgs(name=args["namespace"], labels=args["labels"]), opts=child)
        self.namespace = namespace.metadata.apply(lambda metadata: str(metadata.name))
        ResourceQuota(
            f"{name}-gpus",
            metadata=ObjectMetaArgs(name="gpus", namespace=self.namespace, labels=args["labels"]),
            spec=ResourceQuotaSpecArgs(hard={f"requests.{GPU_RESOURCE}": str(args["max_gpus"])}),
            opts=child,
        )
        LimitRange(
            f"{name}-defaults",
            metadata=ObjectMetaArgs(name="defaults", namespace=self.namespace, labels=args["labels"]),
            spec=LimitRangeSpecArgs(
                limits=[
                    LimitRangeItemArgs(
                        type="Container",
                        default={"cpu": "1", "memory": "2Gi"},
                        default_request={"cpu": "250m", "memory": "512Mi"},
                    )
                ]
            ),
            opts=child,
        )
        self.register_outputs({"namespace": self.namespace})
