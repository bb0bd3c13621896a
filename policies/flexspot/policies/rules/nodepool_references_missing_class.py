"""A NodePool whose node class does not exist."""

from typing import Final

from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, not_applicable, undecided
from flexspot.policies.inventory.objects import KarpenterNodePool, KubernetesObject, NodeClass, named
from flexspot.policies.inventory.views import Inventory
from flexspot.policies.judging import Cloud, Parameters, Rule
from flexspot.policies.values.field import UNKNOWN, any_of
from flexspot.policies.values.finding import listed

_BUILT_IN = ("eks.amazonaws.com", "NodeClass", "default")
"""EKS Auto Mode makes this one by itself."""


def judge(pool: KarpenterNodePool, _: Parameters, inventory: Inventory) -> Outcome:  # noqa: PLR0911 -- a list of decisions, one a line
    """The class has the group, the kind and the name of the reference. That it is missing shows only beside others of its kind."""
    reference = pool.spec.at("template", "spec", "nodeClassRef")
    group, kind, name = (reference.at(part).text() for part in ("group", "kind", "name"))
    if not reference.known or UNKNOWN in (group, kind, name):
        return undecided("spec.template.spec.nodeClassRef is not known yet")
    if name is None:
        return not_applicable("it refers to no class, which the API server refuses")
    if (group, kind, name) == _BUILT_IN:
        return PASSES
    found = any_of(each.name.equals(str(name)) for each in named(NodeClass, name, inventory) if _is_of(each, group, kind))
    if found is True:
        return PASSES
    # Classes of another kind say nothing: those of AWS may be here, and those of a second provider in another stack.
    there = inventory.once("node classes of a kind", (group, kind), lambda: _listed(group, kind, inventory))
    if chart := inventory.once("charts that may make node classes", None, lambda: _chart(inventory)):
        return undecided(f"{kind} {name} is not in the input, but {chart} may create it")
    if found is UNKNOWN or not (inventory.closed or (there and not inventory.excerpt)):
        return undecided(f"{kind} {name} is not in the input, which may be incomplete")
    return fails(
        f"spec.template.spec.nodeClassRef names {kind} {name} of {group or 'no group'}, which does not exist; found: {there or 'none'}",
        f"declare {kind} {name}, or name one that exists",
        "spec.template.spec.nodeClassRef",
    )


_CHARTS: Final = frozenset({"HelmRelease", "HelmChart", "Application", "ApplicationSet", "Release"})
"""Kinds of Flux, of K3s, of Argo CD, and of Pulumi's provider: each brings a chart, or whatever a folder elsewhere holds."""

_WITHOUT_CLASSES: Final = (
    "karpenter",
    "kueue",
    "kube-",
    "aws-",
    "nvidia",
    "gpu-operator",
    "dcgm",
    "metrics-server",
    "prometheus",
    "cert-manager",
)
"""How the names of charts begin that make no node class, Karpenter's own among them (charts/karpenter of its provider, v1.14.1)."""


def _chart(inventory: Inventory) -> str:
    """What brings a chart that may make node classes; empty where nothing does."""
    for each in inventory.of(KubernetesObject):
        if each.identity.kind in _CHARTS:
            spec, own = each.spec, each.fields
            named = (own.at("chart"), spec.at("chart"), spec.at("chart", "spec", "chart"), spec.at("source", "chart"))
            chart = next((text for field in named if isinstance(text := field.text(), str)), each.identity.name)
            if not chart.rstrip("/").rpartition("/")[2].startswith(_WITHOUT_CLASSES):
                return each.identity.described
    return ""


def _is_of(each: NodeClass, group: object, kind: object) -> bool:
    return each.identity.kind == kind and group in {None, each.group}


def _listed(group: object, kind: object, inventory: Inventory) -> str:
    """The classes of a kind, as a sentence lists them."""
    names = listed(each.identity.name for each in inventory.of(NodeClass) if _is_of(each, group, kind))
    return f"{kind} {names}" if names else ""


RULE = Rule(
    code="FLX017",
    severity=Severity.HIGH,
    clouds=(Cloud.EKS,),
    judge_among=judge,
    why="Karpenter accepts the pool but never makes it ready: pods that need it wait, and no event on them says why.",
    remediation="Declare the node class that the pool refers to, or correct the name.",
    link="https://karpenter.sh/docs/concepts/nodepools/#spectemplatespecnodeclassref",
)
