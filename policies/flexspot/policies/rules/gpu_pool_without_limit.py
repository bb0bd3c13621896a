"""GPU capacity that can grow without limit."""

from flexspot.capacity.values.verdict import Outcome, Severity
from flexspot.policies.inventory.views import GpuPool, NodeAutoProvisioning
from flexspot.policies.judging import Parameters, Rule
from flexspot.policies.pools import MOST, bounded


def judge(capacity: GpuPool | NodeAutoProvisioning, parameters: Parameters) -> Outcome:
    """In every group of bounds one finite number. A number that nobody could ever pay for counts as none."""
    return bounded(capacity.bounds, parameters, f"it creates GPU nodes (by {capacity.evidence})")


RULE = Rule(
    code="FLX002",
    severity=Severity.CRITICAL,
    judge=judge,
    why="An autoscaler buys whatever pending pods ask for; one wrong replica count without a limit is a bill without a limit. "
    "Karpenter's limits are soft: nodes that start at the same moment may exceed them briefly.",
    remediation="Give the pool a finite maximum: nodes on GKE and EKS, nvidia.com/gpu or aws.amazon.com/neuron on Karpenter, every "
    "resource type on GKE's node auto-provisioning.",
    link="https://karpenter.sh/docs/concepts/nodepools/#speclimits",
    parameters=MOST,
)
