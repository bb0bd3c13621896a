"""The kinds of accelerators that the platform counts, with their resource names, taints and labels."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, eq=False)
class Accelerator:
    """One kind of accelerator. The rest of the code calls one device of any kind a GPU.

    A field is empty where the cloud does not have this kind.
    """

    manufacturer: str
    """Name in the catalog and in Karpenter's labels."""
    resource: str
    """Extended resource that pods request for one device.

    It is also the key of the taint on its nodes: the API server adds the toleration to pods that request the resource of the same name
    (ExtendedResourceToleration).
    """
    noun: str
    """Name of one device in sentences."""
    instance_label: str = ""
    """Part of Karpenter's label keys that follows their prefix: NAME-name, NAME-count, NAME-manufacturer."""
    ec2_family: str = ""
    """Regular expression of the EC2 families that have it. It has no look-ahead, which the API server's expressions (RE2) lack."""
    ec2_categories: tuple[str, ...] = ()
    """Letters that these EC2 families begin with."""
    gce_family: str = ""
    """Regular expression of the Compute Engine families that have it."""
    gke_label: str = ""
    """Label in which GKE states the device of a node."""
    tells_memory: bool = False
    """True if Karpenter also sets the label NAME-memory."""
    parts: tuple[str, ...] = ()
    """Other resources under which the device plugin offers the same devices. They are not counted, so no team may have any."""

    @property
    def taint_key(self) -> str:
        """Key of the taint on its nodes."""
        return self.resource

    @property
    def quota_key(self) -> str:
        """Key under which a ResourceQuota counts its devices. Kubernetes also accepts `limits.` and never counts it."""
        return f"requests.{self.resource}"

    @property
    def series_value(self) -> str:
        """Resource name as it appears in metric series; see the function of this name."""
        return series_value(self.resource)

    def labels(self, begins: str) -> tuple[str, ...]:
        """Return the labels for a node's device name and, where Karpenter labels it, device memory.

        begins: prefix of the label keys.
        """
        return tuple(f"{begins}{self.instance_label}-{each}" for each in ("name", *(("memory",) if self.tells_memory else ())))


NVIDIA = Accelerator(
    "nvidia",
    "nvidia.com/gpu",
    "GPU",
    "gpu",
    r"(?:g\d+[a-z]*|gr\d+[a-z]*|p\d+[a-z]*)(?:-[a-z0-9]+)?",
    ("g", "gr", "p"),
    gce_family="a[2-9]x?|g[2-9]",
    gke_label="cloud.google.com/gke-accelerator",
    tells_memory=True,
)
"""NVIDIA's GPUs, whole ones.

The name of a partition (MIG) depends on its size. Partitions are read where they occur: pods in flexspot/policies/inventory/pod_gpus.py,
reports in flexspot/capacity/chargeback/nodes.py. Families: g5, g6e, gr6, p4d, p5en, p6-b200, and future ones named like them. One family,
g4ad, has such a name but contains AMD GPUs. https://docs.aws.amazon.com/ec2/latest/instancetypes/ac.html

On Compute Engine they are the accelerator-optimised families; a g1-small has no GPU.
https://docs.cloud.google.com/compute/docs/accelerator-optimized-machines
"""

NEURON = Accelerator(
    "aws",
    "aws.amazon.com/neuron",
    "Neuron device",
    "accelerator",
    r"(?:inf|trn)\d+[a-z]*(?:-[a-z0-9]+)?",
    ("inf", "trn"),
    parts=("aws.amazon.com/neuroncore", "aws.amazon.com/neurondevice"),
)
"""AWS's Trainium and Inferentia chips, counted as whole devices: a job that uses several cores of one gets the device.

Resources: AWS Neuron documentation, "Neuron device plugin" (v2.31.0: `neuron` and `neuroncore` for the same devices; older plugins had
`neurondevice` for `neuron`), read 2026-11-26. Labels: Karpenter's AWS provider v1.14.1, pkg/providers/instancetype/types.go.
"""

TPU = Accelerator(
    "google",
    "google.com/tpu",
    "TPU chip",
    gce_family=r"ct\d[a-z]*|tpu\d[a-z]*",
    gke_label="cloud.google.com/gke-tpu-accelerator",
)
"""Google's TPUs, counted in chips, on GKE only. A pod that requests chips requests all of its node, and names their kind and topology.

GKE documentation, "About TPUs in GKE" (read 2026-11-26). The taint has the value `present`: SkyPilot's provisioner
(sky/provision/kubernetes/instance.py) and a node of a ct6e-standard-1t as its owner wrote it down (public notes of 2026, read 2026-11-26).
Families: GoogleCloudPlatform/cluster-autoscaler, pkg/cloudprovider/gke/machinetypes/deprecated_tpu_config.go.
"""


def series_value(resource: str) -> str:
    """Return a resource name as kube-state-metrics writes it in the label `resource` (v2.20.0, internal/store/utils.go)."""
    return re.sub(r"[^a-zA-Z0-9_]", "_", resource)


ACCELERATORS = (NVIDIA, NEURON, TPU)
"""All kinds, in the order in which quotas name them."""

ON_EC2 = tuple(each for each in ACCELERATORS if each.ec2_family)
"""Kinds on EC2 machines, which Karpenter labels."""

ON_GKE = tuple(each for each in ACCELERATORS if each.gke_label)
"""Kinds on Compute Engine machines, which GKE labels."""

BY_MANUFACTURER = {each.manufacturer: each for each in ACCELERATORS}
BY_RESOURCE = {each.resource: each for each in ACCELERATORS}
RESOURCES = tuple(BY_RESOURCE)
"""Resources that pods request for whole devices of any kind."""

SERIES_VALUES = tuple(each.series_value for each in ACCELERATORS)
"""The same resources as they appear in series of kube-state-metrics."""


PARTITION_PREFIX = "nvidia.com/mig-"
"""Prefix of the resource names of GPU partitions."""

SHARED_SUFFIX = ".shared"
"""Suffix of resources that several pods share by time, if their plugin is configured to add it.

https://github.com/NVIDIA/k8s-device-plugin, README.md, `renameByDefault`: RESOURCE.shared (2026-11-26).
"""


def kind_of_resource(name: str) -> Accelerator | None:
    """Return the kind of a device, shared device or partition by its resource. None for others, such as cores of a Neuron device."""
    whole = name.removesuffix(SHARED_SUFFIX)
    return BY_RESOURCE.get(whole) or (NVIDIA if whole.startswith(PARTITION_PREFIX) else None)


def of_gce_machine(name: str) -> Accelerator:
    """Return the accelerator kind of a Compute Engine machine by its family. NVIDIA if the family is unknown."""
    family = name.partition("-")[0]
    return next((each for each in ON_GKE if re.fullmatch(each.gce_family, family)), NVIDIA)


def of_ec2_machine(name: str) -> Accelerator:
    """Return the accelerator kind of an EC2 machine by its family. NVIDIA if the family is unknown."""
    family = name.partition(".")[0]
    return next((each for each in ON_EC2 if re.fullmatch(each.ec2_family, family)), NVIDIA)
