"""A GPU limit that is not a multiple of a node's GPUs."""

from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails
from flexspot.policies.inventory.objects import KarpenterNodePool
from flexspot.policies.judging import Cloud, Parameters, Rule
from flexspot.policies.pools import limited_kind, limited_machines


def judge(pool: KarpenterNodePool, _: Parameters) -> Outcome:
    """Fails where whole nodes of no machine that the pool may launch add up to the limit."""
    found, resource = limited_machines(pool.spec), limited_kind(pool.spec).resource
    if not isinstance(found, tuple):
        return found
    limit, machines = found
    counts = sorted({machine.gpu_counts[0] for machine in machines.gpus})
    if any(limit % count == 0 for count in counts):
        return PASSES
    near = sorted({int(limit // counts[0] * counts[0]), int(-(-limit // counts[0]) * counts[0])} - {0})
    of_machine = next(machine for machine in machines.gpus if machine.gpu_counts[0] == counts[0])
    return fails(
        f'spec.limits["{resource}"] is {limit}, which no whole number of nodes adds up to: a {of_machine.name} has {counts[0]}',
        f"set it to {' or '.join(map(str, near))}",
        f'spec.limits["{resource}"]',
    )


RULE = Rule(
    code="FLX015",
    severity=Severity.LOW,
    clouds=(Cloud.EKS,),
    judge=judge,
    why=(
        "A fraction of a node cannot be launched, so the actual ceiling differs from the limit: quotas based on the limit promise too much."
    ),
    remediation="Set a multiple of the number of GPUs that one node of the pool has.",
    link="https://karpenter.sh/docs/concepts/nodepools/#speclimits",
    sources=("https://github.com/aws/karpenter-provider-aws/issues/7038",),
)
