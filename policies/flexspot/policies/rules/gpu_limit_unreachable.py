"""A GPU limit that cannot be reached because of the other limits."""

from flexspot.capacity.catalog.unreachable_limits import out_of_reach
from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, undecided
from flexspot.policies.inventory.objects import KarpenterNodePool
from flexspot.policies.judging import Cloud, Parameters, Rule
from flexspot.policies.pools import limited_kind, limited_machines, node_ceilings, written_limits


def judge(pool: KarpenterNodePool, _: Parameters) -> Outcome:
    """Fails where one of the machines that the pool may launch does not reach the limit: which one it launches, Karpenter chooses."""
    found, resource = limited_machines(pool.spec), limited_kind(pool.spec).resource
    if not isinstance(found, tuple):
        return found
    limit, machines = found
    ceilings, known = node_ceilings(pool.spec)
    ended = out_of_reach([(machine, machine.gpu_counts[0]) for machine in machines.gpus], limit, ceilings)
    if ended:
        machine, written = ended.machine.name, written_limits(pool.spec)
        return fails(
            f'spec.limits["{resource}"] is {limit}, but with {machine} nodes the other limits ({written}) allow only {ended.gpus}',
            f"allow {ended.needed}, remove {machine} from its requirements, or lower the limit on {resource}",
            f'spec.limits["{resource}"]',
        )
    return PASSES if known else undecided("its other limits are not known yet")


RULE = Rule(
    code="FLX014",
    severity=Severity.MEDIUM,
    clouds=(Cloud.EKS,),
    judge=judge,
    why="Queues rely on the GPU limit; jobs admitted beyond what cpu or memory allow wait for nodes that Karpenter never starts.",
    remediation="Set the limits on nodes, cpu and memory high enough for the limit on nvidia.com/gpu.",
    link="https://karpenter.sh/docs/concepts/nodepools/#speclimits",
    sources=("https://github.com/aws/karpenter-provider-aws/issues/6328",),
)
