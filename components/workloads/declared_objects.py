"""Kubernetes objects, as capacity.workloads derives them, as resources: what Pulumi waits for, and what it leaves to others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from capacity.workloads.pods import KubeObject


_NO_WAITING = {"pulumi.com/skipAwait": "true"}
"""Pulumi waits for a Job to be complete. One that waits in its queue, or trains for a week, would hold up the whole deployment."""

_BY_KUEUE = ["spec.suspend", "spec.template.spec.nodeSelector", "spec.template.spec.tolerations"]
"""What Kueue changes when it admits a Job: a later run must not take it back."""

_FIXED = ("Job", "JobSet")
"""Kinds whose pods cannot be changed: another image means another object, and the name is free only when the old one is gone."""


def declare_objects(
    name: str, parent: pulumi.Resource, objects: Sequence[KubeObject], ignoring: Mapping[str, list[str]] | None = None
) -> list[pulumi.Resource]:
    """Registers the objects under `parent`, each after the one before it, named after the component, their kind and their own name.

    `ignoring` are paths of fields that others change, by kind, beside those that Kueue does.
    """
    ignored = {"Job": _BY_KUEUE, **(ignoring or {})}
    declared: list[pulumi.Resource] = []
    for each in objects:
        fixed = each["kind"] in _FIXED
        metadata = dict(each["metadata"])
        if fixed:
            metadata["annotations"] = {**metadata.get("annotations", {}), **_NO_WAITING}
        declared.append(
            pulumi.CustomResource(
                type_token(each),
                f"{name}-{metadata['name']}-{each['kind'].lower()}",
                {**each, "metadata": metadata},
                pulumi.ResourceOptions(
                    parent=parent,
                    depends_on=declared[-1:],
                    ignore_changes=ignored.get(each["kind"]),
                    delete_before_replace=fixed or None,
                ),
            )
        )
    return declared


def type_token(each: KubeObject) -> str:
    """The type of the resource that the Kubernetes provider knows the object by."""
    api_version = each["apiVersion"] if "/" in each["apiVersion"] else f"core/{each['apiVersion']}"
    return f"kubernetes:{api_version}:{each['kind']}"


_WAITING_FOR_PODS = ("Service", "PersistentVolumeClaim")
"""Pulumi waits until a Service has endpoints and a claim has a volume. Both come with the pods, which are declared after them."""


def declare_service_objects(
    name: str, parent: pulumi.Resource, objects: Sequence[KubeObject], *, wakes: bool = False
) -> list[pulumi.Resource]:
    """Registers the objects as declare_objects does. With `wakes` people and the watch start and stop the Deployment.

    Pulumi waits for a Deployment as long as its own deadline says, in which a GPU node can boot.
    """
    ignoring = {"Deployment": ["spec.replicas"]} if wakes else None
    return declare_objects(name, parent, [_marked(each, wakes=wakes) for each in objects], ignoring)


def _marked(each: KubeObject, *, wakes: bool) -> KubeObject:
    if each["kind"] in _WAITING_FOR_PODS or (wakes and each["kind"] == "Deployment"):
        return _annotated(each, _NO_WAITING)
    seconds = each.get("spec", {}).get("progressDeadlineSeconds")
    return _annotated(each, {"pulumi.com/timeoutSeconds": str(seconds)}) if seconds else each


def _annotated(each: KubeObject, annotations: dict[str, str]) -> KubeObject:
    metadata = each["metadata"]
    return {**each, "metadata": {**metadata, "annotations": {**metadata.get("annotations", {}), **annotations}}}
