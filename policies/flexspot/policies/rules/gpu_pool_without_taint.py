"""A GPU pool on which any pod can be scheduled."""

from flexspot.capacity.catalog.accelerators import RESOURCES
from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, undecided
from flexspot.policies.inventory.views import GpuPool, PoolTaint
from flexspot.policies.judging import Parameter, Parameters, Rule
from flexspot.policies.values.field import UNKNOWN, Tri, all_of, any_of, negated


def judge(pool: GpuPool, parameters: Parameters) -> Outcome:
    """One of the wanted keys, with any value, or a taint of the pool's own that says by its words that it is for GPUs; and an effect that

    keeps pods away: PreferNoSchedule does not.
    """
    # A taint of another kind's keeps nobody off who asks for that: the API server gives those pods its toleration.
    asked = parameters.texts("taint-keys")
    keys = tuple(key for key in asked if key not in RESOURCES or key in pool.resources) or pool.resources

    others = tuple(key for key in RESOURCES if key not in keys)
    words = parameters.texts("taint-words")

    def keeps_away(taint: PoolTaint) -> Tri:
        told = any_of([taint.key.equals(*keys), all_of([negated(taint.key.equals(*others)), _says(taint, words)])])
        # NoSchedule is Kubernetes' and Karpenter's spelling, NO_SCHEDULE that of both clouds.
        return all_of([told, taint.effect.equals("NoSchedule", "NoExecute", "NO_SCHEDULE", "NO_EXECUTE")])

    tainted = any_of([*map(keeps_away, pool.taints), *([] if pool.taints_complete else [UNKNOWN])])
    wanted = " or ".join(keys)
    if tainted is UNKNOWN:
        return undecided(f"whether {pool.taints_field} has a taint on {wanted} is not known yet")
    # What GKE adds is a taint on the key of what pods ask for, and on none beside.
    if tainted or (pool.tainted_by_cloud is True and any(key in keys for key in pool.resources)):
        return PASSES
    besides = f"; {pool.tainted_by}" if pool.tainted_by else ""
    return fails(
        f"it creates GPU nodes (by {pool.evidence}), but {pool.taints_field} has no taint on {wanted} that keeps other pods off{besides}",
        f"add {{key: {keys[0]}, value: present, effect: {pool.effect_spelling}}} to {pool.taints_field}",
    )


def _says(taint: PoolTaint, words: tuple[str, ...]) -> Tri:
    """Whether a word stands in the taint's key or value, such as in gpu=true, sku=gpu and dedicated=gpu-training."""
    texts = (taint.key.text(), taint.value.text())
    if any(word in text.lower() for text in texts if isinstance(text, str) for word in words):
        return True
    return UNKNOWN if UNKNOWN in texts else False


RULE = Rule(
    code="FLX001",
    severity=Severity.HIGH,
    judge=judge,
    why="Without a taint, pods that need no GPU fill GPU nodes, prevent scale-down, and leave GPUs idle at full price.",
    remediation=f"Taint the pool with {' or '.join(RESOURCES)}, whichever its pods ask for, and effect NoSchedule or NoExecute; these pods "
    "tolerate it.",
    link="https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/#example-use-cases",
    parameters=(
        Parameter(
            "taint-keys", RESOURCES, "Taint keys, one of which a GPU pool must have; it must match the device that the pool's pods request."
        ),
        Parameter("taint-words", ("gpu", "nvidia", "accelerator"), "Words in a taint's key or value which show that it is also for GPUs."),
    ),
)
