"""The machines of capacity's catalog, as rules need them: read from the same files, without the models that check those files.

Loading the models costs a third of a second, which lint would pay in every run; that the files keep their schema is tested in capacity.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from capacity.catalog import node_labels

if TYPE_CHECKING:
    from collections.abc import Mapping

_CATALOG = Path(node_labels.__file__).parent


@dataclass(frozen=True)
class CatalogMachine:
    """One machine. `gpu` is the cloud's name of its GPU, empty for none; `gpu_counts` how many it can have; `labels` Karpenter's of it."""

    name: str
    vcpu: int
    memory_mib: int
    gpu: str
    gpu_counts: tuple[int, ...]
    labels: Mapping[str, str]

    @property
    def family(self) -> str:
        """The part of the name that machines of one design share: g6, g2, a3."""
        return self.name.partition("." if "." in self.name else "-")[0]


@dataclass(frozen=True)
class _Gpu:
    name: str
    manufacturer: str
    count: int
    memory_mib: int


@dataclass(frozen=True)
class _Row:
    """What capacity.catalog.node_labels asks of a machine."""

    name: str
    vcpu: int
    memory_mib: int
    gpu: _Gpu | None
    local_ssd_gb: int


@cache
def machines_of(cloud: str) -> Mapping[str, CatalogMachine]:
    """The machines of `aws` or `gcp`, by name."""
    rows = yaml.load((_CATALOG / f"{cloud}.yaml").read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)["machines"]
    return {row["name"]: _machine(row, karpenter=cloud == "aws") for row in rows}


def _machine(row: dict[str, Any], *, karpenter: bool) -> CatalogMachine:
    gpu: dict[str, Any] = row.get("gpu") or {}
    counts = tuple(gpu.get("counts", ()))
    labels: dict[str, str] = {}
    if karpenter:
        own = _Gpu(gpu["name"], gpu["manufacturer"], counts[0], gpu["memory_mib"]) if gpu else None
        known: Any = _Row(row["name"], row["vcpu"], row["memory_mib"], own, row.get("local_ssd_gb", 0))
        labels = {**node_labels.karpenter_aws_labels(known), node_labels.INSTANCE_TYPE_LABEL: row["name"]}
    return CatalogMachine(row["name"], row["vcpu"], row["memory_mib"], gpu.get("name", ""), counts, labels)
