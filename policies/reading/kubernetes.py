"""Kubernetes objects as they are, each under its kind; and Karpenter's installation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policies import objects
from policies.unknown import UNKNOWN, Tri, any_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policies.field import Field
    from policies.inventory import View
    from policies.reading.source import Source

_KINDS: dict[tuple[str, str], type[objects.KubernetesObject]] = {
    ("", "LimitRange"): objects.LimitRange,
    ("", "Namespace"): objects.Namespace,
    ("", "PersistentVolumeClaim"): objects.PersistentVolumeClaim,
    ("", "ResourceQuota"): objects.ResourceQuota,
    ("autoscaling.x-k8s.io", "ProvisioningRequest"): objects.ProvisioningRequest,
    ("cloud.google.com", "ComputeClass"): objects.ComputeClass,
    ("karpenter.sh", "NodePool"): objects.KarpenterNodePool,
    ("kueue.x-k8s.io", "AdmissionCheck"): objects.AdmissionCheck,
    ("kueue.x-k8s.io", "ClusterQueue"): objects.ClusterQueue,
    ("kueue.x-k8s.io", "Cohort"): objects.Cohort,
    ("kueue.x-k8s.io", "LocalQueue"): objects.LocalQueue,
    ("kueue.x-k8s.io", "ProvisioningRequestConfig"): objects.ProvisioningRequestConfig,
    ("kueue.x-k8s.io", "ResourceFlavor"): objects.ResourceFlavor,
    ("kueue.x-k8s.io", "WorkloadPriorityClass"): objects.PriorityClass,
    ("policy", "PodDisruptionBudget"): objects.PodDisruptionBudget,
    ("scheduling.k8s.io", "PriorityClass"): objects.PriorityClass,
}

_NODE_CLASS = "NodeClass"
"""How the name of every provider's class ends: EC2NodeClass, KWOKNodeClass, NodeClass of EKS Auto Mode."""

_RELEASE = ("helm.sh", "Release")
_DEPLOYMENT = ("apps", "Deployment")
_QUEUE_VARIABLE = "INTERRUPTION_QUEUE"


def read(source: Source) -> Iterator[View]:
    """One view of every Kubernetes object, and one of what installs Karpenter: the chart's release, or its Deployment."""
    if ":" in source.family or not source.kind:
        return
    kind = (source.family, source.kind)
    other = objects.NodeClass if source.kind.endswith(_NODE_CLASS) else objects.KubernetesObject
    yield _KINDS.get(kind, other)(
        identity=source.identity,
        concerned=True,
        partial=source.fields.partial,
        group=source.family,
        version=source.identity.api_version.rpartition("/")[2],
        fields=source.fields,
    )
    if kind == _RELEASE:
        yield from _release(source)
    elif kind == _DEPLOYMENT:
        yield from _deployment(source)


def _release(source: Source) -> Iterator[objects.KarpenterController]:
    chart = source.fields.at("chart").text()
    if not isinstance(chart, str) or chart.rstrip("/").rpartition("/")[2] != "karpenter":
        return
    settings = source.fields.at("values", "settings")
    told = _names_queue(settings.at("interruptionQueue")) if settings.known else UNKNOWN
    if told is False and not source.fields.at("valueYamlFiles").absent:
        told = UNKNOWN
    yield _controller(source, "values.settings.interruptionQueue", told)


def _deployment(source: Source) -> Iterator[objects.KarpenterController]:
    for container in source.fields.at("spec", "template", "spec", "containers").parts().fields:
        image = container.at("image").text()
        if not isinstance(image, str) or "/karpenter/controller" not in image:
            continue
        variables = container.at("env").parts()
        named = [each for each in variables.fields if each.at("name").text() == _QUEUE_VARIABLE]
        # valueFrom names a place that holds the name.
        told = any_of(any_of([_names_queue(each.at("value")), not each.at("valueFrom").absent]) for each in named)
        if told is False and not (variables.complete and container.at("envFrom").absent):
            told = UNKNOWN
        yield _controller(source, f"the variable {_QUEUE_VARIABLE} of its container", told)


def _names_queue(name: Field) -> bool:
    """A name that is known only later is one: it comes from a queue that is made in the same run."""
    return not name.known or bool(name.text())


def _controller(source: Source, queue_field: str, told: Tri) -> objects.KarpenterController:
    return objects.KarpenterController(source.identity, True, source.fields.partial, queue_field, told)
