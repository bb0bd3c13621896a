"""The kinds of accelerators that the platform counts: what pods ask for them by, what their nodes are known and tainted by."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Accelerator:
    """One kind of accelerator, of which a device is what the rest of the code calls a GPU.

    `manufacturer` is the catalog's word for it, as Karpenter's labels have it too. `resource` is what pods ask for one device by; it is
    also the key of the taint on its nodes, as the API server adds the toleration of a taint to pods that ask for the resource of the same
    name (ExtendedResourceToleration). `parts` are other resources under which its plugin offers the same devices and which nothing counts,
    so that no team may have any. `instance_label` is how Karpenter's keys go on, after what all begin with, when it tells of the devices:
    NAME-name, NAME-count, NAME-manufacturer; `tells_memory` says that there is NAME-memory. `noun` is what a sentence calls one device.
    """

    manufacturer: str
    resource: str
    noun: str
    instance_label: str
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

    def labels(self, begins: str) -> tuple[str, ...]:
        """The labels that say which device a node has, where keys begin with `begins`: its name, and its memory where that is told."""
        return tuple(f"{begins}{self.instance_label}-{each}" for each in ("name", *(("memory",) if self.tells_memory else ())))


NVIDIA = Accelerator("nvidia", "nvidia.com/gpu", "GPU", "gpu", tells_memory=True)
"""NVIDIA's GPUs, whole ones. What a partition (MIG) is called follows from its size and is read where partitions are: pods in
policies/inventory/pod_gpus.py, reports in capacity/chargeback/nodes.py."""

NEURON = Accelerator(
    "aws",
    "aws.amazon.com/neuron",
    "Neuron device",
    "accelerator",
    parts=("aws.amazon.com/neuroncore", "aws.amazon.com/neurondevice"),
)
"""AWS's Trainium and Inferentia chips, in whole devices: a job of several cores of one has the device.

Resources: AWS Neuron documentation, "Neuron device plugin" (v2.31.0: `neuron` and `neuroncore` for the same devices; older plugins had
`neurondevice` for `neuron`), read 2026-11-26. Labels: Karpenter's AWS provider v1.14.1, pkg/providers/instancetype/types.go.
"""

ACCELERATORS = (NVIDIA, NEURON)
"""In the order in which quotas name them."""

BY_MANUFACTURER = {each.manufacturer: each for each in ACCELERATORS}
BY_RESOURCE = {each.resource: each for each in ACCELERATORS}
