"""ResourceQuotas on GPUs, by namespace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from capacity.catalog.node_labels import GPU_RESOURCE
from policies.objects import ResourceQuota
from policies.unknown import UNKNOWN, Tri

if TYPE_CHECKING:
    from decimal import Decimal

    from policies.inventory import Inventory
    from policies.unknown import Unknown

GPU_QUOTA_KEY = f"requests.{GPU_RESOURCE}"
"""The one key under which Kubernetes counts GPUs."""

# Slices of GPUs, and devices by class (dynamic resource allocation).
_OF_GPUS = ("requests.nvidia.com/",)
_OF_DEVICES = ".deviceclass.resource.k8s.io/devices"


@dataclass(frozen=True)
class GpuQuota:
    """What a ResourceQuota says of GPUs: whether it bounds them in some form, and how many whole ones it allows (None: it says not)."""

    concerns_gpus: Tri
    gpus: Decimal | Unknown | None


def read_quota(quota: ResourceQuota) -> GpuQuota:
    """What one ResourceQuota says, whichever pods it is for."""
    hard = quota.spec.at("hard").parts()
    found = any(key.startswith(_OF_GPUS) or key.endswith(_OF_DEVICES) for key, _ in hard.named)
    return GpuQuota(found or (False if hard.complete else UNKNOWN), quota.spec.at("hard", GPU_QUOTA_KEY).number())


def is_of_some_pods(quota: ResourceQuota) -> bool:
    """Whether it is, or may be, for some pods of its namespace alone."""
    return not (quota.spec.at("scopes").absent and quota.spec.at("scopeSelector").absent)


def gpu_quotas_of(namespace: str, inventory: Inventory) -> list[GpuQuota]:
    """Those that are in a namespace for certain."""
    return _by_namespace(inventory).get(namespace, [])


def quotas_somewhere(inventory: Inventory) -> bool:
    """Whether there are ResourceQuotas of which nobody knows yet in which namespace they are."""
    return UNKNOWN in _by_namespace(inventory)


def _by_namespace(inventory: Inventory) -> dict[str | Unknown, list[GpuQuota]]:
    def index() -> dict[str | Unknown, list[GpuQuota]]:
        found: dict[str | Unknown, list[GpuQuota]] = {}
        for each in inventory.of(ResourceQuota):
            found.setdefault(each.namespace, []).append(read_quota(each))
        return found

    return inventory.once("quotas of GPUs", None, index)
