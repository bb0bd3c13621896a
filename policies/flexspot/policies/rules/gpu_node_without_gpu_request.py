"""A pod that targets GPU nodes, by a toleration or by a selector of their pool, but requests no GPU."""

from flexspot.capacity.catalog.accelerators import RESOURCES
from flexspot.capacity.catalog.node_labels import COMPUTE_CLASS_LABEL
from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, not_applicable, undecided
from flexspot.policies.inventory.pod_gpus import POOL_LABELS, tolerates_gpus
from flexspot.policies.inventory.views import Autopilot, GpuPool, Inventory, NodeAutoProvisioning, PodSet, Pool, PoolTaint
from flexspot.policies.judging import Level, Parameters, Rule
from flexspot.policies.pods.scheduling_options import KEEPS_AWAY, SPOT_LABELS, queue_of
from flexspot.policies.pods.scheduling_options import tolerates as tolerated_by
from flexspot.policies.pools import pools_for
from flexspot.policies.values.field import UNKNOWN, Field, Tri, all_of, any_of, negated


def judge(pods: PodSet, _: Parameters, inventory: Inventory) -> Outcome:
    """What the pod's own fields prove, gpu-container-without-limit says; this is about what only the taint or the pools show."""
    asks = pods.asks_for_gpus
    placed, _by = pods.placed_on_gpus
    if exempt := pods.exemption or ("its own fields place it, so gpu-container-without-limit judges it" if placed is True else ""):
        return not_applicable(exempt)
    if asks is True:
        return PASSES
    tolerates = pods.pod.at("tolerations").parts().any(tolerates_gpus)
    if tolerates is False and any(pool.concerned is True for pool in inventory.of(GpuPool)):
        # A toleration of everything says nothing of GPUs by itself, and lets the pods onto GPU nodes that are there.
        tolerates = pods.pod.at("tolerations").parts().any(_tolerates_all)
    selector = pods.pod.at("nodeSelector").parts()
    required = pods.pod.at("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    if selector.complete and not selector.named and required.absent:
        goes = tolerates if queue_of(pods, inventory).absent else False
        return _told(goes, asks, f"{pods.where}.tolerations lets it onto GPU nodes", f"{pods.where}.tolerations")
    wanted = dict(selector.named)
    known = selector.complete and required.absent
    fitting = [
        (pool, all_of([pool.concerned, pool.offer.carries(wanted), known or UNKNOWN])) for pool in pools_for(GpuPool, wanted, inventory)
    ]
    fits = any_of(answer for _, answer in fitting) if tolerates is False or inventory.tells(GpuPool) else UNKNOWN
    pools = ", ".join(sorted(pool.identity.described for pool, answer in fitting if answer is True))
    told = f"{pods.where}.nodeSelector sends it to GPU nodes of {pools}"
    leads = _leads(pods, wanted, [pool for pool, answer in fitting if answer is not False], inventory)
    return _told(all_of([fits, any_of([tolerates, leads])]), asks, told, f"{pods.where}.nodeSelector")


def _leads(pods: PodSet, wanted: dict[str, Field], pools: list[GpuPool], inventory: Inventory) -> Tri:
    """Whether the selector means GPU nodes and no others: by a label of these pools' own, or because no others are there.

    A label that any node may have, such as its zone, leads nowhere while the pools' taints keep the pods off, or others may be elsewhere.
    """
    if _others(wanted, inventory):
        return False
    if any(key in POOL_LABELS or not key.startswith((*pool.offer.open_prefixes, *SPOT_LABELS)) for key in wanted for pool in pools):
        return True
    kept_off = all_of([True, *(_keeps_off(pods, pool, inventory) for pool in pools)])
    return all_of([negated(kept_off), inventory.closed or UNKNOWN])


def _keeps_off(pods: PodSet, pool: GpuPool, inventory: Inventory) -> Tri:
    """Whether a taint keeps pods without GPUs off: nobody adds the toleration of the GPU taint to them, and GKE may add that taint.

    GKE adds it to a pool that is made beside nodes without GPUs: in an input that is all there is, and has none, to none.
    """
    listed = pods.pod.at("tolerations").parts()

    def away(taint: PoolTaint) -> Tri:
        tolerated = any_of([*(tolerated_by(each, taint.as_field) for each in listed.fields), *([] if listed.complete else [UNKNOWN])])
        return all_of([taint.effect.equals(*KEEPS_AWAY), negated(tolerated)])

    by_cloud = pool.tainted_by and not (inventory.closed and _all_have_gpus(inventory))
    more = [pool.tainted_by_cloud or UNKNOWN] if by_cloud else ([] if pool.taints_complete else [UNKNOWN])
    return any_of([*map(away, pool.taints), *more])


def _all_have_gpus(inventory: Inventory) -> bool:
    """Whether every pool that there is surely has GPUs."""
    return all(isinstance(pool, GpuPool) and pool.concerned is True for pool in inventory.of(Pool))


def _tolerates_all(toleration: Field) -> Tri:
    """Whether a toleration has no key, so that it is of every taint."""
    return all_of(
        [
            toleration.at("key").absent if toleration.at("key").known else UNKNOWN,
            toleration.at("operator").equals("Exists"),
            negated(toleration.at("effect").equals("PreferNoSchedule")),
        ]
    )


def _told(goes: Tri, asks: Tri, told: str, at: str) -> Outcome:
    if goes is False:
        return not_applicable("nothing sends it to GPU nodes in particular")
    if UNKNOWN in (goes, asks):
        return undecided(f"{at.rpartition('.')[0]}: whether it requests GPUs, or goes to GPU nodes, is not known yet")
    return fails(f"{told}, but none of its containers has a limit on {' or '.join(RESOURCES)}", at=at)


def _others(wanted: dict[str, Field], inventory: Inventory) -> bool:
    """Whether nodes without GPUs may be what it selects, those included that GKE makes."""
    made = inventory.of(NodeAutoProvisioning) or inventory.of(Autopilot) or COMPUTE_CLASS_LABEL in wanted
    plain = (pool for pool in pools_for(Pool, wanted, inventory) if not isinstance(pool, GpuPool))
    return bool(made) or any(pool.offer.carries(wanted) is not False for pool in plain)


RULE = Rule(
    code="FLX039",
    severity=Severity.MEDIUM,
    level=Level.ADVISORY,
    judge_among=judge,
    why="Work that needs no GPU fills GPU nodes and keeps them alive, and no quota counts it. A pod whose own selector proves it is "
    "gpu-container-without-limit's.",
    remediation=f'Take the toleration or the selector away, or set resources.limits["{RESOURCES[0]}"], or that of the nodes, in the '
    "container that computes.",
    link="https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/#example-use-cases",
    sources=("https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#extendedresourcetoleration",),
)
