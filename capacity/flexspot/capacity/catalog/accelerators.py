"""The kinds of accelerators that the platform counts: what pods ask for them by, what their nodes are known and tainted by."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, eq=False)
class Accelerator:
    """One kind of accelerator, of which a device is what the rest of the code calls a GPU.

    `manufacturer` is the catalog's word for it, as Karpenter's labels have it too. `resource` is what pods ask for one device by; it is
    also the key of the taint on its nodes, as the API server adds the toleration of a taint to pods that ask for the resource of the same
    name (ExtendedResourceToleration). `parts` are other resources under which its plugin offers the same devices and which nothing counts,
    so that no team may have any. `instance_label` is how Karpenter's keys go on, after what all begin with, when it tells of the devices:
    NAME-name, NAME-count, NAME-manufacturer; `tells_memory` says that there is NAME-memory. `noun` is what a sentence calls one device.
    `ec2_family` is a pattern of the families of EC2 that have it, without look-ahead, which the API server's regular expressions (RE2) do
    not have; `ec2_categories` are the letters that these begin with. `gce_family` is the same of Compute Engine, and `gke_label` the label
    by which GKE says which device a node has. What a cloud does not have of it is empty.
    """

    manufacturer: str
    resource: str
    noun: str
    instance_label: str = ""
    ec2_family: str = ""
    ec2_categories: tuple[str, ...] = ()
    gce_family: str = ""
    gke_label: str = ""
    tells_memory: bool = False
    parts: tuple[str, ...] = ()

    @property
    def taint_key(self) -> str:
        """The key of the taint on its nodes."""
        return self.resource

    @property
    def quota_key(self) -> str:
        """The one key under which a ResourceQuota counts its devices. Kubernetes takes `limits.` as well and never counts it."""
        return f"requests.{self.resource}"

    @property
    def series_value(self) -> str:
        """The resource as series have it: see the function."""
        return series_value(self.resource)

    def labels(self, begins: str) -> tuple[str, ...]:
        """The labels that say which device a node has, where keys begin with `begins`: its name, and its memory where that is told."""
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
"""NVIDIA's GPUs, whole ones. What a partition (MIG) is called follows from its size and is read where partitions are: pods in
flexspot/policies/inventory/pod_gpus.py, reports in flexspot/capacity/chargeback/nodes.py. Families: g5, g6e, gr6, p4d, p5en, p6-b200, and
what will be named like them; one, g4ad, looks like them and holds AMD's. https://docs.aws.amazon.com/ec2/latest/instancetypes/ac.html
Compute Engine's are the accelerator-optimised families; a g1-small has no GPU.
https://docs.cloud.google.com/compute/docs/accelerator-optimized-machines"""

NEURON = Accelerator(
    "aws",
    "aws.amazon.com/neuron",
    "Neuron device",
    "accelerator",
    r"(?:inf|trn)\d+[a-z]*(?:-[a-z0-9]+)?",
    ("inf", "trn"),
    parts=("aws.amazon.com/neuroncore", "aws.amazon.com/neurondevice"),
)
"""AWS's Trainium and Inferentia chips, in whole devices: a job of several cores of one has the device.

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
"""Google's TPUs, in chips, on GKE alone. A pod that asks for some asks for all of its node, and names their kind and topology.

GKE documentation, "About TPUs in GKE" (read 2026-11-26). The taint has the value `present`: SkyPilot's provisioner
(sky/provision/kubernetes/instance.py) and a node of a ct6e-standard-1t as its owner wrote it down (public notes of 2026, read 2026-11-26).
Families: GoogleCloudPlatform/cluster-autoscaler, pkg/cloudprovider/gke/machinetypes/deprecated_tpu_config.go.
"""


def series_value(resource: str) -> str:
    """A resource as kube-state-metrics writes it in the label `resource` of its series (v2.20.0, internal/store/utils.go)."""
    return re.sub(r"[^a-zA-Z0-9_]", "_", resource)


ACCELERATORS = (NVIDIA, NEURON, TPU)
"""In the order in which quotas name them."""

ON_EC2 = tuple(each for each in ACCELERATORS if each.ec2_family)
"""Those that machines of EC2 have, and of which Karpenter tells."""

ON_GKE = tuple(each for each in ACCELERATORS if each.gke_label)
"""Those that machines of Compute Engine have, and of which GKE tells."""

BY_MANUFACTURER = {each.manufacturer: each for each in ACCELERATORS}
BY_RESOURCE = {each.resource: each for each in ACCELERATORS}
RESOURCES = tuple(BY_RESOURCE)
"""What pods ask for whole devices by, of whatever kind."""

SERIES_VALUES = tuple(each.series_value for each in ACCELERATORS)
"""The same as series of kube-state-metrics have them."""


PARTITION_PREFIX = "nvidia.com/mig-"
"""How the names of resources begin that are parts of a GPU."""

SHARED_SUFFIX = ".shared"
"""How the names of resources end that several pods share by time, where their plugin is told to say so.

https://github.com/NVIDIA/k8s-device-plugin, README.md, `renameByDefault`: RESOURCE.shared (2026-11-26).
"""


def kind_of_resource(name: str) -> Accelerator | None:
    """The kind of what a resource is a device, a shared device or a partition of; None for any other, such as cores of a Neuron device."""
    whole = name.removesuffix(SHARED_SUFFIX)
    return BY_RESOURCE.get(whole) or (NVIDIA if whole.startswith(PARTITION_PREFIX) else None)


def of_gce_machine(name: str) -> Accelerator:
    """Which kind a machine of Compute Engine with accelerators has, by its family; NVIDIA's where nothing else is known."""
    family = name.partition("-")[0]
    return next((each for each in ON_GKE if re.fullmatch(each.gce_family, family)), NVIDIA)


def of_ec2_machine(name: str) -> Accelerator:
    """Which kind a machine of EC2 with accelerators has, by its family; NVIDIA's where nothing else is known."""
    family = name.partition(".")[0]
    return next((each for each in ON_EC2 if re.fullmatch(each.ec2_family, family)), NVIDIA)
