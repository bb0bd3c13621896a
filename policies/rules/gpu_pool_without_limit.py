"""GPU capacity that may grow without end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.verdict import Severity
from policies.inventory import Ceiling, GpuPool, NodeAutoProvisioning
from policies.rule import BOTH_CLOUDS, PASSES, Level, Parameter, Parameters, Rule, fails, undecided
from policies.unknown import UNKNOWN, Tri, any_of

if TYPE_CHECKING:
    from capacity.verdict import Outcome


def judge(capacity: GpuPool | NodeAutoProvisioning, parameters: Parameters) -> Outcome:
    """In every group of bounds one finite number. A number that nobody could ever pay for counts as none."""

    def most(ceiling: Ceiling) -> int:
        return parameters.number("most" if ceiling.unit in {Ceiling.NODES, Ceiling.GPUS} else "most-cores-or-gb")

    def finite(ceiling: Ceiling) -> Tri:
        if ceiling.amount is UNKNOWN:
            return UNKNOWN
        return ceiling.amount is not None and 0 <= ceiling.amount <= most(ceiling)

    bounded = [(group, any_of(map(finite, group))) for group in capacity.bounds]
    if missing := [group for group, answer in bounded if answer is False]:
        fields = ", ".join(" or ".join(ceiling.field for ceiling in group) for group in missing)
        highest = min(most(ceiling) for group in missing for ceiling in group)
        units = ", ".join(sorted({ceiling.unit for group in missing for ceiling in group}))
        return fails(
            f"it makes GPU nodes (by {capacity.evidence}) without a limit: {fields} is not set to a number from 0 to {highest}",
            f"set {fields} to the most {units} that you would pay for",
        )
    if unknown := [group for group, answer in bounded if answer is UNKNOWN]:
        return undecided(f"{', '.join(' or '.join(ceiling.field for ceiling in group) for group in unknown)} is not known yet")
    return PASSES


RULE = Rule(
    code="FLX002",
    name="gpu-pool-without-limit",
    severity=Severity.CRITICAL,
    level=Level.MANDATORY,
    clouds=BOTH_CLOUDS,
    looks_at=(GpuPool, NodeAutoProvisioning),
    judge=judge,
    why="An autoscaler buys whatever pending pods ask for; one wrong replica count without a limit is a bill without a limit. "
    "Karpenter's limits are soft: nodes that start at the same moment may exceed them briefly.",
    remediation="Give the pool a finite maximum: nodes on GKE and EKS, nvidia.com/gpu on Karpenter, every resource type on GKE's "
    "node auto-provisioning.",
    link="https://karpenter.sh/docs/concepts/nodepools/#speclimits",
    parameters=(
        Parameter("most", 100_000, "The highest number of nodes or GPUs that counts as a limit."),
        Parameter("most-cores-or-gb", 10_000_000, "The highest number of cores or GB of memory that counts as a limit."),
    ),
)
