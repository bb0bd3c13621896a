"""Capacity without GPUs that can grow without limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.catalog.node_labels import CAPACITY_TYPE_LABEL
from capacity.values.verdict import Severity, not_applicable
from policies.inventory.views import GpuPool, Pool
from policies.judging import BOTH_CLOUDS, Level, Rule, WithoutCel
from policies.pools import MOST, bounded
from policies.values.field import Field

if TYPE_CHECKING:
    from capacity.values.verdict import Outcome
    from policies.values.parameters import Parameters


def judge(pool: Pool, parameters: Parameters) -> Outcome:
    """Pools of GPUs, and those that may be such, are judged by gpu-pool-without-limit, which asks for a limit on the GPUs themselves."""
    if isinstance(pool, GpuPool):
        return not_applicable("gpu-pool-without-limit judges GPU pools")
    takes = {kind: pool.offer.carries({CAPACITY_TYPE_LABEL: Field(kind)}) for kind in ("reserved", "spot", "on-demand")}
    if takes == {"reserved": True, "spot": False, "on-demand": False}:
        return not_applicable("its reservations bound it")
    return bounded(pool.bounds, parameters, "it creates nodes")


RULE = Rule(
    code="FLX031",
    name="unbounded-node-pool",
    severity=Severity.HIGH,
    level=Level.MANDATORY,
    clouds=BOTH_CLOUDS,
    looks_at=(Pool,),
    judge=judge,
    without_cel=WithoutCel.OWN_PROGRAM,
    why=(
        "One Deployment with a few zeros too many in its replicas buys nodes until the account's quota is used up: the bill has no ceiling."
    ),
    remediation="Give the pool a finite maximum: nodes on GKE and EKS; cpu, memory or nodes on Karpenter.",
    link="https://karpenter.sh/docs/concepts/nodepools/#speclimits",
    sources=("https://github.com/kubernetes-sigs/karpenter/issues/745",),
    parameters=MOST,
)
