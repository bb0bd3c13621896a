"""The programs of the lab, one a file: each a function from lab.part.LabContext to lab.part.Part."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lab.parts.karpenter import karpenter, kwok
from lab.parts.kubernetes import etcd, kube_apiserver, kube_controller_manager, kube_scheduler
from lab.parts.kueue import kueue

if TYPE_CHECKING:
    from lab.part import LabContext, Part

PORTS = {
    "etcd": "etcd",
    "etcd-peer": "etcd",
    "kube-apiserver": "kube-apiserver",
    "kube-controller-manager": "kube-controller-manager",
    "kube-scheduler": "kube-scheduler",
    "kwok": "kwok",
    "kueue-health": "kueue",
    "kueue-webhook": "kueue",
    "kueue-metrics": "kueue",
    "karpenter-health": "karpenter",
    "karpenter-metrics": "karpenter",
}
"""The name of every port that a lab listens on, and the part that does."""


def store_and_server(lab: LabContext) -> list[Part]:
    """What must be ready, in this order, before anything else can start."""
    return [etcd(lab), kube_apiserver(lab)]


def controllers(lab: LabContext) -> list[Part]:
    """What works against the API server; these start side by side."""
    return [kube_controller_manager(lab), kube_scheduler(lab), kwok(lab), kueue(lab), karpenter(lab)]


def all_parts(lab: LabContext) -> list[Part]:
    """Every part, in the order of starting."""
    return [*store_and_server(lab), *controllers(lab)]
