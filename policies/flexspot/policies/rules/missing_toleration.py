"""GPU pods that do not tolerate the taints of any pool that they select."""

from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, not_applicable, undecided
from flexspot.policies.inventory.views import Autopilot, GpuPool, Inventory, PodSet
from flexspot.policies.judging import Parameters, Rule
from flexspot.policies.pods.placement import may_be_provisioned, placement_of
from flexspot.policies.pods.scheduling_options import options_of
from flexspot.policies.values.field import UNKNOWN, any_of


def judge(pods: PodSet, _: Parameters, inventory: Inventory) -> Outcome:  # noqa: PLR0911 -- a list of decisions, one a line
    """Fails where pools fit what the pods select, and the taints of each keep them away in every scheduling option."""
    asks = pods.asks_for_gpus
    if exempt := pods.not_gpu_work:
        return not_applicable(exempt)
    options = options_of(pods, inventory)
    if options is None or asks is UNKNOWN:
        return undecided(f"{pods.where}: whether it requests GPUs, or what its queue leads to, is not known")
    if not inventory.of(GpuPool) and any(each.concerned is True for each in inventory.of(Autopilot)):
        return not_applicable("Autopilot creates the nodes that it requests, and lets it onto them")
    if not inventory.tells(GpuPool):
        return undecided(f"{pods.where}: no GPU pool is in the input")
    found = placement_of(pods, inventory)
    pool_match = any_of([found.possible, *(UNKNOWN for option in options if may_be_provisioned(option, inventory))])
    if pool_match is True:
        return PASSES
    if pool_match is UNKNOWN:
        return undecided(f"{pods.where}: the pools that it may run on are not known yet")
    kept = found.kept_off
    if not kept or not kept.taint:
        return not_applicable("no pool in the input has what it selects")
    via, pool, taint = kept.option.via, kept.pool, kept.taint
    how = f" (by {via})" if via else ""
    return fails(
        f"{pods.where} selects {pool.identity.described}{how}, but does not tolerate its taint {taint.described}",
        f"add the toleration {{key: {taint.key.text()}, operator: Exists}} to the pods" + (f", or to {via}" if via else ""),
        f"{pods.where}.tolerations",
    )


RULE = Rule(
    code="FLX004",
    severity=Severity.HIGH,
    judge_among=judge,
    why="The pods wait forever, or the queue admits them and holds their quota while no node accepts them.",
    remediation=(
        "Add a toleration to the pods, or to the ResourceFlavor that admits them; the one for nvidia.com/gpu is added automatically."
    ),
    link="https://kueue.sigs.k8s.io/docs/concepts/resource_flavor/#resourceflavor-tolerations-for-automatic-scheduling",
    sources=("https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#extendedresourcetoleration",),
)
