"""Machine types and node labels that imply an accelerator known to rules: NVIDIA's GPUs, AWS's Trainium and Inferentia, Google's TPUs.

AMD's GPUs (g4ad) are excluded: they have another resource, and no row in flexspot/capacity/catalog/accelerators.py.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from flexspot.capacity.catalog.accelerators import ACCELERATORS, NVIDIA, ON_EC2, ON_GKE, Accelerator
from flexspot.capacity.catalog.node_labels import INSTANCE_TYPE_LABEL
from flexspot.policies.values.field import UNKNOWN, Field, Tri, negated

if TYPE_CHECKING:
    from collections.abc import Callable


EC2_FAMILY = "|".join(each.ec2_family for each in ON_EC2)
"""A pattern without look-ahead, which the API server's regular expressions (RE2) lack: the cluster's policies use it, too."""

AMD_FAMILY = "g4ad"
"""A family with AMD's GPUs that is named like one with NVIDIA's."""

EC2_CATEGORIES = tuple(category for each in ON_EC2 for category in each.ec2_categories)

GENERAL_CATEGORIES = ("c", "m", "r", "t")
"""Categories that run nearly everything.

A pool that refuses all of them wants special machines, and gets GPUs unless it refuses those, too.
"""

_OF_FAMILY = "-[a-z0-9-]+"

GCE_MACHINE = f"(?:{'|'.join(each.gce_family for each in ON_GKE)}){_OF_FAMILY}"
"""Pattern of Compute Engine's machines that come with accelerators."""

GKE_LABELS = {each.gke_label: each for each in ON_GKE}
"""GKE's labels for the device of a node. Nodes without a label have no such device."""

MACHINE_LABELS = (INSTANCE_TYPE_LABEL, "beta.kubernetes.io/instance-type")
MACHINE_FAMILY_LABEL = "cloud.google.com/machine-family"

PREFIXES = ("karpenter.k8s.aws/instance-", "eks.amazonaws.com/instance-")
"""Karpenter's own prefix, and the one of EKS Auto Mode."""


Kinds = tuple[Accelerator, ...]


def is_gpu_family(name: str, kinds: Kinds = ACCELERATORS) -> bool:
    """Return whether an EC2 family such as g6, p5en or trn1 has accelerators of the given kinds."""
    return any(each.ec2_family and re.fullmatch(each.ec2_family, name) for each in kinds) and not name.startswith(AMD_FAMILY)


def is_gpu_machine(name: str, kinds: Kinds = ACCELERATORS) -> bool:
    """Return whether an EC2 or Compute Engine machine type comes with accelerators of the given kinds."""
    family, dot, _ = name.partition(".")
    if dot:
        return is_gpu_family(family, kinds)
    return any(each.gce_family and re.fullmatch(f"(?:{each.gce_family}){_OF_FAMILY}", name) for each in kinds)


def _names_machines(key: str, kinds: Kinds) -> Callable[[str], bool] | None:
    """Return a test of values for a label that names machines with and without accelerators. None for other labels."""
    if key in MACHINE_LABELS:
        return lambda value: is_gpu_machine(value, kinds)
    if key == MACHINE_FAMILY_LABEL:
        return lambda value: is_gpu_machine(f"{value}-any", kinds)
    if key in FAMILY_LABELS:
        return lambda value: is_gpu_family(value, kinds)
    if key in CATEGORY_LABELS:
        return lambda value: any(value in each.ec2_categories for each in kinds)
    return None


FAMILY_LABELS, CATEGORY_LABELS = (tuple(f"{prefix}{end}" for prefix in PREFIXES) for end in ("family", "category"))


def _names_gpus(key: str, kinds: Kinds) -> Callable[[str], bool] | None:
    """Return a test of values for a label that only nodes with accelerators carry. None for other labels."""
    if key in GKE_LABELS:
        return (lambda _: True) if GKE_LABELS[key] in kinds else None
    for kind in kinds:
        if key == kind.resource or key.startswith(f"{kind.resource}."):
            return lambda value: value not in {"false", "0"}
        for prefix in PREFIXES if kind.instance_label else ():
            if found := _tells_of(kind, key, f"{prefix}{kind.instance_label}-"):
                return found
    return None


def _tells_of(kind: Accelerator, key: str, begins: str) -> Callable[[str], bool] | None:
    if not key.startswith(begins):
        return None
    if key == f"{begins}manufacturer":
        return lambda value: value == kind.manufacturer
    return (lambda value: not value.startswith("radeon")) if key == f"{begins}name" else lambda value: value != "0"


@lru_cache(maxsize=4096)
def _meaning(key: str, kinds: Kinds) -> tuple[Callable[[str], bool] | None, Callable[[str], bool] | None]:
    """Return tests for the values that mean accelerators: of a label that only nodes with some carry, and of one that names machines."""
    return _names_gpus(key, kinds), _names_machines(key, kinds)


@dataclass(frozen=True)
class GpuSelection:
    """The meaning of one requirement on a node label for GPUs. All three fields are False for an unrelated label."""

    names: Tri
    """The allowed values name a GPU machine."""
    demands: Tri
    """Only GPU machines are allowed."""
    excludes: Tri
    """No GPU machine is allowed."""


_SILENT = GpuSelection(names=False, demands=False, excludes=False)
_UNDECIDED = GpuSelection(names=UNKNOWN, demands=UNKNOWN, excludes=False)
_GPUS_ONLY = GpuSelection(names=True, demands=True, excludes=False)
_NO_GPUS = GpuSelection(names=False, demands=False, excludes=True)


def gpu_selection(requirement: Field, kinds: Kinds = ACCELERATORS) -> GpuSelection:
    """Return the meaning of `{key, operator, values}` for GPUs of the given kinds, in Karpenter's requirements and in node affinity."""
    key, operator = requirement.at("key").text(), requirement.at("operator").text()
    if key is UNKNOWN:
        return _UNDECIDED
    labels_gpus, names_machines = _meaning(key or "", kinds)
    means_gpu = labels_gpus or names_machines
    if means_gpu is None:
        return _SILENT
    if operator is UNKNOWN:
        return _UNDECIDED
    values = requirement.at("values")
    if operator == "NotIn" or (operator == "In" and key not in GKE_LABELS):
        return _one_of(values, means_gpu) if operator == "In" else _all_but(str(key), values, kinds)
    if labels_gpus is None:
        return _SILENT
    # Every value of GKE's labels is an accelerator, so an unknown value is one, too. The remaining operators (Lt) also match nodes without
    # the label.
    return {"DoesNotExist": _NO_GPUS}.get(operator or "", _GPUS_ONLY if operator in {"In", "Exists", "Gt", "Gte"} else _SILENT)


def _all_but(key: str, values: Field, kinds: Kinds) -> GpuSelection:
    """Return the selection that remains after values are refused. NotIn also matches nodes without the label, so it never demands GPUs.

    Source: kubernetes-sigs/karpenter v1.14.1, pkg/scheduling/requirements.go (Intersects).
    """
    listed = values.parts()
    if not listed.complete or any(not each.known for each in listed.fields):
        return _UNDECIDED if key.endswith(("category", "-count", "-manufacturer")) else _SILENT
    refused = {each.text() for each in listed.fields}
    for prefix in PREFIXES:
        if key == f"{prefix}category":
            left = [each for each in kinds if each.ec2_categories and not refused >= set(each.ec2_categories)]
            # Refusing the categories that run nearly everything means GPUs. Neuron devices must be requested by name.
            return GpuSelection(names=NVIDIA in left and refused >= set(GENERAL_CATEGORIES), demands=False, excludes=not left)
        for kind in (each for each in kinds if each.instance_label):
            if key == f"{prefix}{kind.instance_label}-manufacturer" and kind.manufacturer in refused:
                return _NO_GPUS
            if key == f"{prefix}{kind.instance_label}-count" and "0" in refused:
                return GpuSelection(names=True, demands=False, excludes=False)
    return _SILENT


def _one_of(values: Field, means_gpu: Callable[[str], bool]) -> GpuSelection:
    def is_gpu(value: Field) -> Tri:
        text = value.text()
        return UNKNOWN if text is UNKNOWN else means_gpu(text or "")

    listed = values.parts()
    names = listed.any(is_gpu)
    return GpuSelection(names=names, demands=listed.every(is_gpu), excludes=negated(names))
