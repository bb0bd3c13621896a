"""Other controllers' pods on the controller nodes, and the capacity of such a node for pods."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from flexspot.capacity.catalog.data_files import Record, SourcedFile, read_records
from flexspot.capacity.catalog.machines import Vendor

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flexspot.capacity.catalog.machines import Machine

_FILE = Path(__file__).parent / "system_pods.yaml"


class SystemPod(Record):
    """Pods of one kind: `replicas` of them, or one on every node."""

    name: str
    cpu_milli: Annotated[int, Field(ge=0)] = 0
    memory_mib: Annotated[int, Field(ge=0)] = 0
    replicas: Annotated[int, Field(ge=1)] | None = None
    apart: bool = False
    """True if no two share a node. A pod without a node waits."""
    addon: str | None = None
    """Setting of `cluster.addons` that enables them, or `efs` or `lustre` if data is in EFS or Lustre. None: always present."""
    in_auto_mode: bool = True
    """False for what EKS Auto Mode runs outside pods."""
    source: str = ""


STOCK_OUT_WATCH = SystemPod(name="stock-out-watch", cpu_milli=10, memory_mib=64, replicas=1)
"""The platform's own optional pod: a Python process that lists a few kinds of objects every 20 s."""


class SystemPodFile(SourcedFile):
    """The pods of both clouds, each with a source."""

    aws: tuple[SystemPod, ...]
    gcp: tuple[SystemPod, ...]


@cache
def system_pods_of(cloud: Vendor) -> tuple[SystemPod, ...]:
    """Return the cloud's own pods on a controller node of a cluster that this platform creates."""
    file = read_records(_FILE, SystemPodFile)
    return file.aws if cloud is Vendor.AWS else file.gcp


@dataclass(frozen=True)
class NodeRoom:
    """Capacity of one node for pods: thousandths of a vCPU, MiB of memory, and number of pods."""

    cpu_milli: int
    memory_mib: int
    pods: int

    def without(self, pods: Iterable[SystemPod]) -> NodeRoom:
        """Return the rest after one of each of these pods; negative if they do not fit."""
        listed = list(pods)
        cpu, memory = sum(each.cpu_milli for each in listed), sum(each.memory_mib for each in listed)
        return NodeRoom(self.cpu_milli - cpu, self.memory_mib - memory, self.pods - len(listed))

    @property
    def is_there(self) -> bool:
        """True if no more is requested than exists."""
        return min(self.cpu_milli, self.memory_mib, self.pods) >= 0


_EVICTION_MIB = 100
"""The kubelet evicts pods before less than this is free, on both clouds."""

_UNSEEN_PERCENT = {Vendor.AWS: 7.5, Vendor.GCP: 3.0}
"""Percent of the advertised memory that a machine's kernel lacks.

Karpenter assumes 7.5 (settings.vmMemoryOverheadPercent; 4.9 to 6.2 were seen). Compute Engine's is a little more than the 2.4 of an
n2-standard-4 on GKE 1.36.3.
"""


def node_room(cloud: Vendor, machine: Machine, max_pods: int) -> NodeRoom:
    """Return the capacity for pods of a node without GPUs, after the kubelet's reservations. `max_pods` is its limit of pods.

    Of the vCPU both clouds reserve 6 % of the first, 1 % of the second, 0.5 % of the next two and 0.25 % of all others. Of the memory EKS
    reserves 255 MiB and 11 MiB for each pod that the node has addresses for (nodeadm/internal/kubelet/config.go in awslabs/amazon-eks-ami
    at e48b98a). GKE reserves 25 % of the first 4 GiB, 20 % of the next 4, 10 % of the next 8, 6 % of the next 112 and 2 % of the rest
    (https://cloud.google.com/kubernetes-engine/docs/concepts/plan-node-sizes).
    """
    kept = sum(share * (min(machine.vcpu, upto) - after) for after, upto, share in _CPU_KEPT if machine.vcpu > after)
    seen = machine.memory_mib * (100 - _UNSEEN_PERCENT[cloud]) / 100
    reserved = 255 + 11 * machine.max_pods if cloud is Vendor.AWS else _gke_reserved_mib(seen)
    # The kubelet rounds its reservations. Rounding up here never promises more than there is.
    return NodeRoom(1000 * machine.vcpu - round(kept), int(seen - reserved) - _EVICTION_MIB, max_pods)


_CPU_KEPT = ((0, 1, 60.0), (1, 2, 10.0), (2, 4, 5.0), (4, 10_000, 2.5))
"""Thousandths of each vCPU that the kubelet reserves, as (after this many vCPU, up to this many, thousandths)."""

_GKE_KEPT = ((0, 4096, 0.25), (4096, 8192, 0.2), (8192, 16384, 0.1), (16384, 131_072, 0.06), (131_072, 10**9, 0.02))


def _gke_reserved_mib(seen_mib: float) -> float:
    return sum(share * (min(seen_mib, upto) - after) for after, upto, share in _GKE_KEPT if seen_mib > after)
