"""The topology of nodes by which Kueue places pods."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
from typing import TypedDict

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from capacity.catalog.node_labels import HOSTNAME_LABEL

API_VERSION = "kueue.x-k8s.io/v1beta2"
"""Of every object of Kueue's that is declared here."""

_MOST_LEVELS = 16


class TopologyArgs(TypedDict):
    """Arguments of Topology."""

    name: str
    """Name of the object, as flavors refer to it. Different levels need a new name: Kueue does not allow changes to them."""

    levels: list[str]
    """Node labels, the widest first, 1 to 16; kubernetes.io/hostname can only be the last. A node without one of them is ignored.

    On GKE cloud.google.com/gce-topology-block, -subblock and -host, then kubernetes.io/hostname; on EKS topology.kubernetes.io/zone (and
    topology.k8s.aws/network-node-layer-1 to -3 on machines that have them), then kubernetes.io/hostname."""

    labels: dict[str, str]
    """Labels of the object."""


class Topology(pulumi.ComponentResource):
    """A Topology, by which Kueue places jobs on existing nodes; use it for nodes that always run or come by ProvisioningRequest.

    Raises ValueError for levels that Kueue would refuse.
    """

    topology: pulumi.Output[str]
    """Name of the object, known once it exists."""

    def __init__(self, name: str, args: TopologyArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        _check(name, args["levels"])
        super().__init__("flexspot:index:Topology", name, {**args}, opts)
        made = CustomResource(
            f"{name}-topology",
            api_version=API_VERSION,
            kind="Topology",
            metadata=ObjectMetaArgs(name=args["name"], labels=args["labels"]),
            spec={"levels": [{"nodeLabel": level} for level in args["levels"]]},
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.topology = made.id.apply(lambda _: args["name"])
        self.register_outputs({"topology": self.topology})


def _check(name: str, levels: list[str]) -> None:
    written = ", ".join(levels) or "(none)"
    if not 1 <= len(levels) <= _MOST_LEVELS:
        raise ValueError(f"Topology {name}: levels are {written}; give 1 to {_MOST_LEVELS}")
    if len(set(levels)) < len(levels):
        raise ValueError(f"Topology {name}: levels are {written}; each once")
    if HOSTNAME_LABEL in levels[:-1]:
        raise ValueError(f"Topology {name}: levels are {written}; {HOSTNAME_LABEL} is the last or none of them")
