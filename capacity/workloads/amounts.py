"""The vCPU and memory that pods ask for beside their GPUs."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING

from capacity.plan.own_machines import machines_of_pool
from capacity.values.errors import SettingsProblem
from capacity.values.quantities import count_quantity, mib_quantity

if TYPE_CHECKING:
    from collections.abc import Iterable

    from capacity.plan.model import Plan, PoolPlan
    from capacity.workloads.requests import WorkloadRequest


_CPU = re.compile(r"(?P<number>\d+(\.\d{1,3})?)(?P<unit>m?)")
_MEMORY = re.compile(r"(?P<number>\d+(\.\d{1,3})?)(?P<unit>Mi|Gi|Ti)")
_MIB = {"Mi": 1, "Gi": 1024, "Ti": 1024 * 1024}

_KEPT_BY_THE_NODE = 4
"""One part in so many is left to the kubelet, to daemons and, on GKE, to the sidecar that mounts buckets. GKE reserves a sixth of a machine
with 16 GiB and less of larger ones: https://docs.cloud.google.com/kubernetes-engine/docs/concepts/plan-node-sizes
"""

MIB_OF_GIB = 1024


def millicores(written: str) -> int | None:
    """Thousandths of a vCPU of 8, 1.5 or 500m; None for anything else, and for parts of a thousandth."""
    match = _CPU.fullmatch(written)
    return None if match is None else _whole(Decimal(match["number"]) * (1 if match["unit"] else 1000))


def mebibytes(written: str) -> int | None:
    """MiB of 512Mi, 32Gi or 1.5Ti; None for anything else, and for parts of a MiB."""
    match = _MEMORY.fullmatch(written)
    return None if match is None else _whole(Decimal(match["number"]) * _MIB[match["unit"]])


def quantity_problems(request: WorkloadRequest) -> list[SettingsProblem]:
    """Amounts of vCPU and memory that are none."""
    problems: list[SettingsProblem] = []
    if request.cpu is not None and not millicores(request.cpu):
        problems.append(SettingsProblem("cpu", repr(request.cpu), "is not a number of vCPU above 0", "write one such as 8, 1.5 or 500m"))
    if request.memory is not None and not mebibytes(request.memory):
        problem = "is not an amount of memory above 0"
        problems.append(SettingsProblem("memory", repr(request.memory), problem, "write one such as 512Mi or 32Gi"))
    return problems


def fits(plan: Plan, pool: PoolPlan, request: WorkloadRequest) -> bool:
    """Whether a node of the pool, its largest machine, can hold a pod of the request. A node never gives away all it has."""
    cpu, memory = millicores(request.cpu or "") or 0, mebibytes(request.memory or "") or 0
    nodes = machines_of_pool(plan, pool)
    return any(cpu < node.vcpu * 1000 and memory < node.memory_mib for node in nodes)


def requests_of(plan: Plan, pools: Iterable[PoolPlan], request: WorkloadRequest) -> dict[str, str]:
    """The cpu and memory that a pod asks for, in the API server's own spelling: as written, else its share of the smallest machine."""
    shares = [(node, pool.gpus_per_node) for pool in pools for node in machines_of_pool(plan, pool)]
    cpu, mib = amounts_without_gpus(request)
    if request.gpus:
        vcpu = min(1000 * node.vcpu * request.gpus // gpus for node, gpus in shares)
        memory = min(node.memory_mib * request.gpus // gpus for node, gpus in shares)
        cpu = millicores(request.cpu or "") or _rounded(vcpu - vcpu // _KEPT_BY_THE_NODE, 1000)
        mib = mebibytes(request.memory or "") or _rounded(memory - memory // _KEPT_BY_THE_NODE, MIB_OF_GIB)
    return {"cpu": count_quantity(cpu // 1000) if cpu % 1000 == 0 else f"{cpu}m", "memory": mib_quantity(mib)}


def amounts_without_gpus(request: WorkloadRequest) -> tuple[int, int]:
    """Thousandths of a vCPU and MiB of a pod without GPUs: as written, else those of a small machine's core."""
    return millicores(request.cpu or "") or 1000, mebibytes(request.memory or "") or 4 * MIB_OF_GIB


def _rounded(amount: int, step: int) -> int:
    """Down to a whole step, where there is one."""
    return amount // step * step or amount


def _whole(number: Decimal) -> int | None:
    return int(number) if number == number.to_integral_value() else None
