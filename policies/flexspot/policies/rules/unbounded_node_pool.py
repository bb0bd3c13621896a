"""Capacity without GPUs that can grow without limit."""

from flexspot.capacity.catalog.node_labels import CAPACITY_TYPE_LABEL
from flexspot.capacity.values.verdict import Outcome, Severity, not_applicable
from flexspot.policies.inventory.views import GpuPool, Pool
from flexspot.policies.judging import Parameters, Rule
from flexspot.policies.pools import MOST, bounded
from flexspot.policies.values.field import Field


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
    severity=Severity.HIGH,
    judge=judge,
    why=(
        "One Deployment with a few zeros too many in its replicas buys nodes until the account's quota is used up: the bill has no ceiling."
    ),
    remediation="Give the pool a finite maximum: nodes on GKE and EKS; cpu, memory or nodes on Karpenter.",
    link="https://karpenter.sh/docs/concepts/nodepools/#speclimits",
    sources=("https://github.com/kubernetes-sigs/karpenter/issues/745",),
    parameters=MOST,
)
