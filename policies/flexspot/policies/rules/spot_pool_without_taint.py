"""Spot GPUs on which work that did not choose Spot can be scheduled."""

from flexspot.capacity.catalog.accelerators import RESOURCES
from flexspot.capacity.catalog.node_labels import CAPACITY_TAINT, GKE_SPOT_LABEL
from flexspot.capacity.values.verdict import PASSES, Addition, Outcome, Severity, fails, not_applicable, undecided
from flexspot.policies.inventory.views import GpuPool, PoolTaint
from flexspot.policies.judging import Parameters, Rule
from flexspot.policies.values.field import UNKNOWN, Tri, all_of, any_of, negated


def judge(pool: GpuPool, _: Parameters) -> Outcome:
    """Any taint but that on GPUs serves: the clouds add its toleration to every pod that asks for them by themselves."""
    if pool.spot is False:
        return not_applicable("it has no Spot capacity")

    def tells_apart(taint: PoolTaint) -> Tri:
        keeps_away = taint.effect.equals("NoSchedule", "NoExecute", "NO_SCHEDULE", "NO_EXECUTE")
        return all_of([negated(taint.key.equals(*RESOURCES)), keeps_away])

    answer = any_of([*map(tells_apart, pool.taints), *([] if pool.taints_complete else [UNKNOWN])])
    if answer is True:
        return PASSES
    if pool.spot is UNKNOWN or answer is UNKNOWN:
        return undecided(f"whether it has Spot capacity, or what {pool.taints_field} contains, is not known yet")
    key, value = (GKE_SPOT_LABEL, "true") if "nodeConfig" in pool.taints_field else (CAPACITY_TAINT, "spot")
    written = f'"{value}"' if value == "true" else value
    return fails(
        f"it has Spot capacity (by {pool.spot_field}), but {pool.taints_field} has no taint that sets its nodes apart from other GPU nodes",
        f"add {{key: {key}, value: {written}, effect: {pool.effect_spelling}}} to {pool.taints_field}, beside that on {pool.resources[0]}",
        pool.taints_field,
        Addition(pool.taints_field, "", {"key": key, "value": value, "effect": pool.effect_spelling}),
    )


RULE = Rule(
    code="FLX012",
    severity=Severity.MEDIUM,
    judge=judge,
    why="GPU pods get the nvidia.com/gpu toleration automatically, so inference and long jobs land on nodes that can end within seconds.",
    remediation="Give Spot GPU nodes their own taint, which work that survives an interruption tolerates.",
    link="https://docs.cloud.google.com/kubernetes-engine/docs/concepts/spot-vms#taints-tolerations",
)
