"""Karpenter that somebody else runs, on a cluster of theirs."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NotRequired, TypedDict

import pulumi

from flexspot.capacity.catalog.versions import minor_version, shipped_versions, version_order
from flexspot.components.in_cluster import ReadObject, answered
from flexspot.components.shared_args import publish

DEPLOYMENT, DEFINITION = "apps/v1:Deployment", "apiextensions.k8s.io/v1:CustomResourceDefinition"

NODE_CLASSES = "ec2nodeclasses.karpenter.k8s.aws"
"""The definition of Karpenter's node classes."""

VERSION_LABEL = "app.kubernetes.io/version"
"""Where the chart writes Karpenter's version (charts/karpenter/templates/_helpers.tpl of v1.14.1)."""


class ExistingKarpenterArgs(TypedDict):
    """Arguments of ExistingKarpenter."""

    cluster: str
    """The cluster's name, as configured in Karpenter."""

    kubernetes_version: pulumi.Input[str]
    """The cluster's Kubernetes version; empty if unknown."""

    deployment: str
    """The Deployment of its controller, NAMESPACE/NAME."""

    reserved: NotRequired[bool]
    """Whether a pool uses a reservation, which Karpenter's feature gate ReservedCapacity can disable. Default: False."""

    fields: NotRequired[list[str]]
    """The node class spec fields that are used. Default: none."""


@dataclass(frozen=True)
class FoundKarpenter:
    """What the cluster says of its Karpenter. What nobody could read is None: of all in an offline preview, of environment variables where
    they come from elsewhere than the Deployment, as with a chart of somebody's own.
    """

    version: str | None
    environment: dict[str, str] | None
    fields: frozenset[str] | None
    kubernetes: str | None


def _version(metadata: dict[str, Any] | None) -> str | None:
    return ((metadata or {}).get("labels") or {}).get(VERSION_LABEL)


def _environment(spec: dict[str, Any] | None) -> dict[str, str] | None:
    """The variables of the container that is told its cluster's name; None where there is none."""
    containers = (((spec or {}).get("template") or {}).get("spec") or {}).get("containers") or []
    told = [{each["name"]: each["value"] for each in container.get("env") or [] if each.get("value")} for container in containers]
    return next((each for each in told if "CLUSTER_NAME" in each), None)


def _fields(spec: dict[str, Any] | None) -> frozenset[str] | None:
    """The fields of a spec in the version v1 of a definition; none where that is not served."""
    if spec is None:
        return None
    schemas = [each["schema"]["openAPIV3Schema"] for each in spec["versions"] if each["name"] == "v1" and each.get("served", True)]
    return frozenset(key for schema in schemas for key in schema["properties"]["spec"]["properties"])


def problems(args: ExistingKarpenterArgs, found: FoundKarpenter) -> Iterator[str]:
    """What pools cannot do with, each with what fixes it; nothing of what nobody has read."""
    called, settings = f"Karpenter in {args['deployment']}", "its owner sets {} in the values of its chart"
    table = shipped_versions().karpenter
    if found.version is not None:
        known, oldest = table.range_of(found.version), min(table.kubernetes, key=version_order)
        if version_order(minor_version(found.version)) < version_order(oldest):
            yield (
                f"{called} is {found.version}; its node pools and classes need {oldest} or newer; its owner upgrades the charts "
                "karpenter-crd and karpenter"
            )
        elif known is not None and found.kubernetes is not None and not known.has(found.kubernetes):
            yield (
                f"{called} is {found.version}, which works with Kubernetes {known.least} to {known.most}, and the cluster has "
                f"{found.kubernetes}; its owner upgrades Karpenter before the cluster"
            )
    if found.fields is not None and (missing := sorted({*args.get("fields", [])} - found.fields)):
        yield (
            f"the definition of EC2NodeClass on {args['cluster']} lacks {', '.join(missing)}, which the API server would drop in silence; "
            f"its owner upgrades the chart karpenter-crd to {minor_version(table.chart.version)}, or leave out what needs it "
            "(pools.*.efa, pools.*.compact_placement, pools.*.reservation)"
        )
    environment = found.environment
    if environment is None:
        return
    if environment["CLUSTER_NAME"] != args["cluster"]:
        yield (
            f"{called} is told the cluster's name {environment['CLUSTER_NAME']}, not {args['cluster']}; it must be the controller of "
            f"{args['cluster']} itself; name its Deployment, NAMESPACE/NAME, in cluster.existing_karpenter.deployment"
        )
    if not environment.get("INTERRUPTION_QUEUE"):
        yield (
            f"{called} has no interruption queue: it would not know of any interruption of Spot, nor end nodes in time; "
            + settings.format("settings.interruptionQueue")
        )
    if args.get("reserved") and "ReservedCapacity=false" in environment.get("FEATURE_GATES", ""):
        yield f"{called} has the feature gate ReservedCapacity off, and a pool is reserved; " + settings.format(
            "settings.featureGates.reservedCapacity"
        )


class ExistingKarpenter(pulumi.ComponentResource):
    """An existing Karpenter, which is only read and never changed: its owner manages its version, its queue, the role of its nodes and who
    may use that role.

    After reading it, also in a preview, the run ends with pulumi.RunError and one line per problem if it does not support the NodePools and
    node classes; nothing that waits for `deployment` is then created. If the Deployment or Karpenter's CRDs do not exist, the provider ends
    the run. Raises ValueError for a `deployment` without its namespace.
    """

    deployment: pulumi.Output[str]
    """The Deployment's name, known once it was found in order."""

    def __init__(self, name: str, args: ExistingKarpenterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        where = f"ExistingKarpenter {name}:"
        namespace, _, own = args["deployment"].partition("/")
        if not namespace or not own or "/" in own:
            raise ValueError(f"{where} deployment is {args['deployment']!r}; it must be NAMESPACE/NAME; write kube-system/karpenter")
        super().__init__("flexspot:index:ExistingKarpenter", name, {**args}, opts)
        child = pulumi.ResourceOptions(parent=self)
        controller = ReadObject(f"{name}-controller", DEPLOYMENT, args["deployment"], child)
        definition = ReadObject(f"{name}-node-classes", DEFINITION, NODE_CLASSES, child)

        def in_order(parts: dict[str, Any]) -> str:
            found = FoundKarpenter(**parts | {"kubernetes": parts["kubernetes"] or None})
            if told := [f"{where} {each}" for each in problems(args, found)]:
                # Not ValueError, which the SDK would wrap in the name and the address of every Output on its way.
                raise pulumi.RunError("\n".join(told))
            return args["deployment"]

        self.deployment = pulumi.Output.all(
            version=answered(controller.metadata, _version),
            environment=answered(controller.spec, _environment),
            fields=answered(definition.spec, _fields),
            kubernetes=args["kubernetes_version"],
        ).apply(in_order)
        publish(self)
