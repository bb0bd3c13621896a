"""GPU capacity that can grow without limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.values.verdict import Severity
from policies.inventory.views import GpuPool, NodeAutoProvisioning
from policies.judging import BOTH_CLOUDS, Level, Rule, WithoutCel
from policies.pools import MOST, bounded

if TYPE_CHECKING:
    from capacity.values.verdict import Outcome
    from policies.values.parameters import Parameters


def judge(capacity: GpuPool | NodeAutoProvisioning, parameters: Parameters) -> Outcome:
    """In every group of bounds one finite number. A number that nobody could ever pay for counts as none."""
    return bounded(capacity.bounds, parameters, f"it creates GPU nodes (by {capacity.evidence})")


RULE = Rule(
    code="FLX002",
    name="gpu-pool-without-limit",
    severity=Severity.CRITICAL,
    level=Level.MANDATORY,
    clouds=BOTH_CLOUDS,
    looks_at=(GpuPool, NodeAutoProvisioning),
    judge=judge,
    without_cel=WithoutCel.OWN_PROGRAM,
    why="An autoscaler buys whatever pending pods ask for; one wrong replica count without a limit is a bill without a limit. "
    "Karpenter's limits are soft: nodes that start at the same moment may exceed them briefly.",
    remediation="Give the pool a finite maximum: nodes on GKE and EKS, nvidia.com/gpu or aws.amazon.com/neuron on Karpenter, every "
    "resource type on GKE's node auto-provisioning.",
    link="https://karpenter.sh/docs/concepts/nodepools/#speclimits",
    parameters=MOST,
)
