"""A toleration for a taint that is on none of the pools where the GPU pods may run."""

from collections.abc import Iterable, Iterator

from flexspot.capacity.catalog.accelerators import RESOURCES
from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, not_applicable, undecided
from flexspot.policies.inventory.objects import ComputeClassView, KarpenterNodePool
from flexspot.policies.inventory.views import Autopilot, GpuPool, Inventory, PodSet
from flexspot.policies.judging import Level, Parameter, Parameters, Rule
from flexspot.policies.pods.placement import REQUIRED_TERMS, PoolMatch, may_be_provisioned, pool_matches
from flexspot.policies.pods.scheduling_options import options_of, tolerates
from flexspot.policies.values.field import UNKNOWN, Field, Tri, Unknown, any_of
from flexspot.policies.values.finding import listed


def judge(pods: PodSet, parameters: Parameters, inventory: Inventory) -> Outcome:
    """Taints of the pools that suit its selectors, those included that keep it away; what clouds and controllers put on is left out."""
    asks = pods.asks_for_gpus
    if exempt := pods.not_gpu_work:
        return not_applicable(exempt)
    others = parameters.texts("other-keys")
    tolerations = pods.pod.at("tolerations").parts()
    own = [(place, each) for place, each in tolerations.named if not _from_elsewhere(each.at("key").text(), others)]
    if tolerations.complete and not own:
        return not_applicable("it tolerates only taints that clouds and controllers set")
    options = options_of(pods, inventory)
    if options is None or asks is UNKNOWN or not tolerations.complete or not inventory.tells(GpuPool):
        return undecided(f"{pods.where}: its tolerations, or the pools that it may run on, are not known")
    found = pool_matches(pods, inventory)
    if not found or inventory.of(Autopilot) or any(may_be_provisioned(option, inventory) for option in options):
        return not_applicable("no pool in the input suits it, or GKE may create pools for its tolerations")
    pools, taints = inventory.once("taints of pool matches", id(found), lambda: _met_on(found, inventory))
    for place, each in own:
        if _meets(each, taints) is False and all(pool.taints_complete for pool in pools):
            key, at = each.at("key").text(), f"{pods.where}.tolerations[{place}]"
            chosen = [option for option in options if option.selector] or pods.pod.at(*REQUIRED_TERMS).parts().fields
            names = _listed(pools) if chosen else inventory.once("names of GPU pools", None, lambda: _listed(inventory.of(GpuPool)))
            return fails(f"{at} tolerates {key}, but no pool that it may run on has such a taint: {names}", at=at)
    met = all(_meets(each, taints) is True for _, each in own)
    return PASSES if met else undecided(f"{pods.where}: the taints of its pools, or its tolerations, are not known yet")


def _met_on(found: list[PoolMatch], inventory: Inventory) -> tuple[list[GpuPool], list[Field]]:
    """The pools, each once, and the taints that their nodes may have."""
    pools = list({id(each.pool): each.pool for each in found}.values())
    written = [each.as_field for pool in pools for each in pool.taints]
    return pools, [*written, *inventory.once("taints of classes", None, lambda: _distinct(_of_classes(inventory)))]


def _distinct(taints: Iterable[Field]) -> list[Field]:
    return list({repr(each.value): each for each in taints}.values())


def _listed(pools: Iterable[GpuPool]) -> str:
    return listed({pool.identity.described for pool in pools if pool.concerned is not False})


def _from_elsewhere(key: str | Unknown | None, others: tuple[str, ...]) -> bool:
    """Whether its taint comes from no pool. A toleration without a key is of every taint."""
    return key is None or (key is not UNKNOWN and key.startswith(others))


def _meets(toleration: Field, taints: Iterable[Field]) -> Tri:
    return any_of(tolerates(toleration, taint) for taint in taints)


def _of_classes(inventory: Inventory) -> Iterator[Field]:
    """What Karpenter puts on a node until it is ready, and what a compute class puts on the nodes that it makes."""
    for pool in inventory.of(KarpenterNodePool):
        yield from pool.spec.at("template", "spec", "startupTaints").parts().fields
    for each in inventory.of(ComputeClassView):
        for where in (each.spec.at("nodePoolConfig"), *each.spec.at("priorities").parts().fields):
            yield from where.at("taints").parts().fields


RULE = Rule(
    code="FLX041",
    severity=Severity.LOW,
    level=Level.ADVISORY,
    judge_among=judge,
    why="Readers assume that the work goes to such capacity and that the capacity is reserved for it; neither is true.",
    remediation="Remove the toleration, or correct its key and value to match the pool's taint.",
    link="https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/",
    parameters=(
        Parameter(
            "other-keys",
            (
                *(*RESOURCES, "amd.com/gpu", "CriticalAddonsOnly"),
                *("kubernetes.io/", "node.kubernetes.io/", "node-role.kubernetes.io/", "node.cloudprovider.kubernetes.io/"),
                *("cloud.google.com/", "components.gke.io/", "sandbox.gke.io/"),
                *("karpenter.sh/", "karpenter.k8s.aws/", "eks.amazonaws.com/", "node.cilium.io/"),
                *("ebs.csi.aws.com/", "efs.csi.aws.com/", "fsx.csi.aws.com/"),
            ),
            "Beginnings of keys of taints that come from the cloud or a controller, so that no pool need list them.",
        ),
    ),
)
