"""The labels by which pods choose their nodes: in their selector, in that of a flavor, and in their affinities."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policies.field import Field
    from policies.inventory import PodSet
    from policies.ways import Way

_OF_THE_MACHINE = (
    *("kubernetes.io/", "beta.kubernetes.io/", "node.kubernetes.io/", "topology.kubernetes.io/", "failure-domain.", "topology.k8s.aws/"),
    *("nvidia.com/", "cloud.google.com/gke-accelerator", "cloud.google.com/gke-gpu", "cloud.google.com/machine-family"),
    *("karpenter.k8s.aws/instance-", "eks.amazonaws.com/instance-"),
)
"""Beginnings of labels that say what a machine is or where it stands, and not how it is paid for."""


def affinities(pods: PodSet, *, preferred: bool) -> Iterator[Field]:
    """The expressions of the pods' node affinity that must hold, and if wished those that had better hold."""
    affinity = pods.pod.at("affinity", "nodeAffinity")
    terms = list(affinity.at("requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms").parts().fields)
    if preferred:
        terms += [each.at("preference") for each in affinity.at("preferredDuringSchedulingIgnoredDuringExecution").parts().fields]
    for term in terms:
        yield from term.at("matchExpressions").parts().fields


def may_choose_capacity(pods: PodSet, way: Way) -> bool:
    """Whether a label that they choose by may tell how the node is paid for: any that is not known to be of the machine."""
    by_affinity = (str(each.at("key").text()) for each in affinities(pods, preferred=True))
    return any(not key.startswith(_OF_THE_MACHINE) for key in (*way.selector, *by_affinity))
