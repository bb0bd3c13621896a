"""Which machines and which node labels mean an NVIDIA GPU. AMD's (g4ad), TPUs and Trainium are not meant: they have other resources."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from capacity.catalog.node_labels import GKE_ACCELERATOR_LABEL, GPU_RESOURCE, INSTANCE_TYPE_LABEL
from policies.values.field import UNKNOWN, Tri, negated

if TYPE_CHECKING:
    from collections.abc import Callable

    from policies.values.field import Field


# Patterns without look-ahead, which the API server's regular expressions (RE2) do not have: the cluster's own rules use them too.
EC2_FAMILY = r"(?:g\d+[a-z]*|gr\d+[a-z]*|p\d+[a-z]*)(?:-[a-z0-9]+)?"
"""g5, g6e, gr6, p4d, p5en, p6-b200, and what will be named like them. https://docs.aws.amazon.com/ec2/latest/instancetypes/ac.html"""

AMD_FAMILY = "g4ad"
"""The one that looks like them and holds AMD's GPUs."""

EC2_CATEGORIES = ("g", "gr", "p")

GENERAL_CATEGORIES = ("c", "m", "r", "t")
"""Those that nearly everything runs on: who refuses all of them wants special machines, and gets GPUs unless those are refused, too."""

GCE_MACHINE = r"(?:a[2-9]x?|g[2-9])-[a-z0-9-]+"
"""The accelerator-optimised families; a g1-small has no GPU.

https://docs.cloud.google.com/compute/docs/accelerator-optimized-machines
"""

MACHINE_LABELS = (INSTANCE_TYPE_LABEL, "beta.kubernetes.io/instance-type")
MACHINE_FAMILY_LABEL = "cloud.google.com/machine-family"

PREFIXES = ("karpenter.k8s.aws/instance-", "eks.amazonaws.com/instance-")
"""Karpenter's own prefix, and that of EKS Auto Mode."""


def is_gpu_family(name: str) -> bool:
    """Whether an EC2 family such as g6 or p5en has NVIDIA GPUs."""
    return re.fullmatch(EC2_FAMILY, name) is not None and not name.startswith(AMD_FAMILY)


def is_gpu_machine(name: str) -> bool:
    """Whether an EC2 or a Compute Engine machine type comes with NVIDIA GPUs."""
    family, dot, _ = name.partition(".")
    return is_gpu_family(family) if dot else re.fullmatch(GCE_MACHINE, name) is not None


def _is_gce_gpu_family(name: str) -> bool:
    return is_gpu_machine(f"{name}-any")


# Labels that name machines: some values have GPUs, others have not.
_NAMES_MACHINES: dict[str, Callable[[str], bool]] = {
    **dict.fromkeys(MACHINE_LABELS, is_gpu_machine),
    MACHINE_FAMILY_LABEL: _is_gce_gpu_family,
    **{f"{prefix}family": is_gpu_family for prefix in PREFIXES},
    **{f"{prefix}category": EC2_CATEGORIES.__contains__ for prefix in PREFIXES},
}


def _names_gpus(key: str) -> Callable[[str], bool] | None:
    """For a label that only nodes with accelerators carry: which of its values mean an NVIDIA GPU."""
    if key == GKE_ACCELERATOR_LABEL:
        return lambda _: True
    if key == GPU_RESOURCE or key.startswith(f"{GPU_RESOURCE}."):
        return lambda value: value not in {"false", "0"}
    for prefix in PREFIXES:
        if key == f"{prefix}gpu-manufacturer":
            return lambda value: value == "nvidia"
        if key == f"{prefix}gpu-name":
            return lambda value: not value.startswith("radeon")
        if key.startswith(f"{prefix}gpu-"):
            return lambda value: value != "0"
    return None


@dataclass(frozen=True)
class GpuSelection:
    """What one requirement on a node label says of GPUs. All three are no where it says nothing.

    names: a GPU machine is among what it allows by name. demands: it allows nothing but GPU machines. excludes: it allows none.
    """

    names: Tri
    demands: Tri
    excludes: Tri


_SILENT = GpuSelection(names=False, demands=False, excludes=False)
_UNDECIDED = GpuSelection(names=UNKNOWN, demands=UNKNOWN, excludes=False)
_GPUS_ONLY = GpuSelection(names=True, demands=True, excludes=False)
_NO_GPUS = GpuSelection(names=False, demands=False, excludes=True)


def gpu_selection(requirement: Field) -> GpuSelection:
    """What `{key, operator, values}` says of GPUs: the form of Karpenter's requirements and of node affinity alike."""
    key, operator = requirement.at("key").text(), requirement.at("operator").text()
    if key is UNKNOWN:
        return _UNDECIDED
    labels_gpus = _names_gpus(key or "")
    means_gpu = labels_gpus or _NAMES_MACHINES.get(key or "")
    if means_gpu is None:
        return _SILENT
    if operator is UNKNOWN:
        return _UNDECIDED
    values = requirement.at("values")
    if operator == "NotIn" or (operator == "In" and key != GKE_ACCELERATOR_LABEL):
        return _one_of(values, means_gpu) if operator == "In" else _all_but(str(key), values)
    if labels_gpus is None:
        return _SILENT
    # Every value of GKE's label is an accelerator, so one that is not known yet is one too. The operators that are left (Lt) hold
    # for nodes without the label as well.
    return {"DoesNotExist": _NO_GPUS}.get(operator or "", _GPUS_ONLY if operator in {"In", "Exists", "Gt", "Gte"} else _SILENT)


def _all_but(key: str, values: Field) -> GpuSelection:
    """What is left where values are refused. NotIn holds for nodes without the label as well, so that it never demands GPUs.

    Source: kubernetes-sigs/karpenter v1.14.1, pkg/scheduling/requirements.go (Intersects).
    """
    listed = values.parts()
    if not listed.complete or any(not each.known for each in listed.fields):
        return _UNDECIDED if key.endswith(("category", "gpu-count", "gpu-manufacturer")) else _SILENT
    refused = {each.text() for each in listed.fields}
    for prefix in PREFIXES:
        if key == f"{prefix}category":
            left = not refused >= set(EC2_CATEGORIES)
            return GpuSelection(names=left and refused >= set(GENERAL_CATEGORIES), demands=False, excludes=not left)
        if key == f"{prefix}gpu-manufacturer" and "nvidia" in refused:
            return _NO_GPUS
        if key == f"{prefix}gpu-count" and "0" in refused:
            return GpuSelection(names=True, demands=False, excludes=False)
    return _SILENT


def _one_of(values: Field, means_gpu: Callable[[str], bool]) -> GpuSelection:
    def is_gpu(value: Field) -> Tri:
        text = value.text()
        return UNKNOWN if text is UNKNOWN else means_gpu(text or "")

    listed = values.parts()
    names = listed.any(is_gpu)
    return GpuSelection(names=names, demands=listed.every(is_gpu), excludes=negated(names))
