"""Readers of Kubernetes objects, each as its kind; of Kueue's configuration; and of the monthly cost that a program declares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from flexspot.policies.inventory import objects
from flexspot.policies.inventory.cloud_resources import MonthlyCostView
from flexspot.policies.inventory.objects import KueueConfiguration
from flexspot.policies.values.field import UNKNOWN, Field, Tri, any_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexspot.policies.inventory.reading.source import ObjectSource
    from flexspot.policies.inventory.views import View


_KINDS: dict[tuple[str, str], type[objects.KubernetesObject]] = {
    ("", "LimitRange"): objects.LimitRange,
    ("", "Namespace"): objects.Namespace,
    ("", "PersistentVolumeClaim"): objects.PersistentVolumeClaim,
    ("", "ResourceQuota"): objects.ResourceQuota,
    ("autoscaling.x-k8s.io", "ProvisioningRequest"): objects.ProvisioningRequest,
    ("cloud.google.com", "ComputeClass"): objects.ComputeClassView,
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
"""Suffix of every provider's class: EC2NodeClass, KWOKNodeClass, NodeClass of EKS Auto Mode."""

_DEPLOYMENT = ("apps", "Deployment")
_QUEUE_VARIABLE = "INTERRUPTION_QUEUE"


def read(source: ObjectSource) -> Iterator[View]:
    """Yield one view of every Kubernetes object, and one of an installation of Karpenter: the chart's release, or its Deployment."""
    if ":" in source.family or not source.kind:
        return
    kind = (source.family, source.kind)
    other = objects.NodeClass if source.kind.endswith(_NODE_CLASS) else objects.KubernetesObject
    yield _KINDS.get(kind, other)(
        *source.seen,
        group=source.family,
        version=source.identity.api_version.rpartition("/")[2],
        fields=source.fields,
    )
    if source.chart == "karpenter":
        yield _release(source)
    elif kind == _DEPLOYMENT:
        yield from _deployment(source)


def _release(source: ObjectSource) -> objects.KarpenterControllerView:
    settings = source.fields.at("values", "settings")
    names_queue = _names_queue(settings.at("interruptionQueue")) if settings.known else UNKNOWN
    if names_queue is False and not source.fields.at("valueYamlFiles").absent:
        names_queue = UNKNOWN
    return objects.KarpenterControllerView(*source.seen, "values.settings.interruptionQueue", names_queue)


def _deployment(source: ObjectSource) -> Iterator[objects.KarpenterControllerView]:
    for image, container in source.containers():
        if "/karpenter/controller" not in image:
            continue
        variables = container.at("env").parts()
        named = [each for each in variables.fields if each.at("name").text() == _QUEUE_VARIABLE]
        # valueFrom refers to a place with the name.
        names_queue = any_of(any_of([_names_queue(each.at("value")), not each.at("valueFrom").absent]) for each in named)
        if names_queue is False and not (variables.complete and container.at("envFrom").absent):
            names_queue = UNKNOWN
        yield objects.KarpenterControllerView(*source.seen, f"the variable {_QUEUE_VARIABLE} of its container", names_queue)


def _names_queue(name: Field) -> bool:
    """Return whether a queue is named. A name that is known only later counts: its queue is created in the same run."""
    return not name.known or bool(name.text())


_GROUP = "config.kueue.x-k8s.io"
_ENTRY = "controller_manager_config.yaml"
"""The entry of Kueue's ConfigMap. Other programs use the same name."""

_VALUE = ("values", "managerConfig", "controllerManagerConfigYaml")


def read_kueue_configuration(source: ObjectSource) -> Iterator[KueueConfiguration]:
    """Yield the configuration in the object, if it has one."""
    kind = (source.family, source.kind)
    if kind == (_GROUP, "Configuration"):
        yield _configuration(source, "", source.fields)
    elif kind == ("", "ConfigMap"):
        written = source.fields.at("data", _ENTRY)
        parsed = _parsed(written)
        if str(parsed.at("apiVersion").text()).startswith(f"{_GROUP}/"):
            yield _configuration(source, f"data[{_ENTRY}].", parsed)
    elif source.chart == "kueue":
        yield _kueue_release(source)


def _kueue_release(source: ObjectSource) -> KueueConfiguration:
    """Return the configuration of a release. The chart's default has fair sharing off (charts/kueue of Kueue 0.19)."""
    where, written = f"{'.'.join(_VALUE)}.", source.fields.at(*_VALUE)
    if written.absent:
        elsewhere = not source.fields.at("valueYamlFiles").absent
        return _configuration(source, where, Field(UNKNOWN if elsewhere else {}))
    return _configuration(source, where, _parsed(written))


def _parsed(written: Field) -> Field:
    """Return the configuration in a text. UNKNOWN if it is not known yet, or is not YAML."""
    text = written.value
    if not isinstance(text, str):
        return Field(text if text is UNKNOWN else None)
    try:
        parsed: Any = yaml.load(text, Loader=yaml.CSafeLoader)
    except yaml.YAMLError:
        return Field(UNKNOWN)
    return Field(parsed)


def _configuration(source: ObjectSource, where: str, fields: Field) -> KueueConfiguration:
    fair_sharing = _fair_sharing(fields)
    return KueueConfiguration(*source.seen, f"{where}fairSharing", fair_sharing, fields.at("resources"))


def _fair_sharing(fields: Field) -> Tri:
    """Return whether fair sharing is on: its stanza exists. v1beta1 also has a switch in it, which is off by default."""
    stanza = fields.at("fairSharing")
    if not stanza.known:
        return UNKNOWN
    if stanza.absent:
        return False
    old = fields.at("apiVersion").equals(f"{_GROUP}/v1beta1")
    return stanza.at("enable").equals("true") if old is True else True


def read_spending(source: ObjectSource) -> Iterator[MonthlyCostView]:
    """Yield the view of the component."""
    if (source.family, source.kind) == ("flexspot:index", "MonthlyCost"):
        teams = source.fields.at("teams").parts().named
        spenders = (("environment", source.fields.at("environment")), *((f"teams[{place}]", team) for place, team in teams))
        yield MonthlyCostView(source.identity, True, False, spenders)
