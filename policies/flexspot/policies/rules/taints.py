"""Taints of GPU pools, and tolerations of the pods that use them."""

from collections.abc import Iterable, Iterator

from flexspot.capacity.catalog.accelerators import RESOURCES
from flexspot.capacity.catalog.node_labels import CAPACITY_TAINT, CAPACITY_TYPE_LABEL, GKE_SPOT_LABEL
from flexspot.capacity.values.verdict import NOT_APPLICABLE, PASSES, Addition, Outcome, Severity, fails, undecided
from flexspot.policies.inventory.objects import ComputeClassView, KarpenterNodePool
from flexspot.policies.inventory.views import Autopilot, GpuPool, Inventory, PodSet
from flexspot.policies.judging import Level, Parameter, Parameters, Rule
from flexspot.policies.pods.placement import REQUIRED_TERMS, PoolMatch, described, may_be_provisioned, placement_of, pool_matches
from flexspot.policies.pods.scheduling_options import KEEPS_AWAY, may_choose_capacity, options_of, tolerates
from flexspot.policies.values.field import UNKNOWN, Field, Tri, Unknown, all_of, any_of, negated
from flexspot.policies.values.finding import listed


@Rule(
    code="FLX001",
    severity=Severity.HIGH,
    why="Without a taint, pods that need no GPU fill GPU nodes, prevent scale-down, and leave GPUs idle at full price.",
    remediation=f"Taint the pool with {' or '.join(RESOURCES)}, whichever its pods request, and effect NoSchedule or NoExecute; these pods "
    "tolerate it.",
    link="https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/#example-use-cases",
    parameters=(
        Parameter(
            "taint-keys", RESOURCES, "Taint keys, one of which a GPU pool must have; it must match the device that the pool's pods request."
        ),
        Parameter("taint-words", ("gpu", "nvidia", "accelerator"), "Words in a taint's key or value which show that it is also for GPUs."),
    ),
)
def gpu_pool_without_taint(pool: GpuPool, parameters: Parameters) -> Outcome:
    """A GPU pool on which any pod can be scheduled.

    Passes with a taint on one of the required keys, or with another taint whose key or value contains one of the words. Its effect must
    keep pods away, which PreferNoSchedule does not.
    """
    # A taint for another kind of device does not count: the API server adds its toleration to pods that request that device.
    configured = parameters.texts("taint-keys")
    keys = tuple(key for key in configured if key not in RESOURCES or key in pool.resources) or pool.resources

    others = tuple(key for key in RESOURCES if key not in keys)
    words = parameters.texts("taint-words")

    def keeps_away(taint: Field) -> Tri:
        for_gpus = any_of([taint.at("key").equals(*keys), all_of([negated(taint.at("key").equals(*others)), _contains_word(taint, words)])])
        # Kubernetes and Karpenter write NoSchedule, both clouds NO_SCHEDULE.
        return all_of([for_gpus, taint.at("effect").equals(*KEEPS_AWAY)])

    tainted = pool.taints.any(keeps_away)
    wanted = " or ".join(keys)
    if tainted is UNKNOWN:
        return undecided(f"whether {pool.taints_field} has a taint on {wanted} is not known yet")
    # GKE adds a taint only on the key of the resource that pods request.
    if tainted or (pool.tainted_by_cloud is True and any(key in keys for key in pool.resources)):
        return PASSES
    source = f"; {pool.tainted_by}" if pool.tainted_by else ""
    return fails(
        f"it creates GPU nodes (by {pool.evidence}), but {pool.taints_field} has no taint on {wanted} that keeps other pods off{source}",
        f"add {{key: {keys[0]}, value: present, effect: {pool.effect_spelling}}} to {pool.taints_field}",
    )


def _contains_word(taint: Field, words: tuple[str, ...]) -> Tri:
    """Return whether the taint's key or value contains a word, as in gpu=true, sku=gpu and dedicated=gpu-training."""
    texts = (taint.at("key").text(), taint.at("value").text())
    if any(word in text.lower() for text in texts if isinstance(text, str) for word in words):
        return True
    return UNKNOWN if UNKNOWN in texts else False


@Rule(
    code="FLX012",
    severity=Severity.MEDIUM,
    why="GPU pods get the nvidia.com/gpu toleration automatically, so inference and long jobs land on nodes that can end within seconds.",
    remediation="Give Spot GPU nodes their own taint, which work that survives an interruption tolerates.",
    link="https://docs.cloud.google.com/kubernetes-engine/docs/concepts/spot-vms#taints-tolerations",
)
def spot_pool_without_taint(pool: GpuPool, _: Parameters) -> Outcome:
    """Spot GPUs on which work that did not choose Spot can be scheduled.

    Any taint except the one on GPUs is enough. The clouds add the toleration of that one to every pod that requests GPUs.
    """
    if pool.spot is False:
        return NOT_APPLICABLE

    def rejects_others(taint: Field) -> Tri:
        keeps_away = taint.at("effect").equals(*KEEPS_AWAY)
        return all_of([negated(taint.at("key").equals(*RESOURCES)), keeps_away])

    answer = pool.taints.any(rejects_others)
    if answer is True:
        return PASSES
    if pool.spot is UNKNOWN or answer is UNKNOWN:
        return undecided(f"whether it has Spot capacity, or what {pool.taints_field} contains, is not known yet")
    key, value = (GKE_SPOT_LABEL, "true") if "nodeConfig" in pool.taints_field else (CAPACITY_TAINT, "spot")
    written = f'"{value}"' if value == "true" else value
    return fails(
        f"it has Spot capacity (by {pool.spot_field}), but {pool.taints_field} has no taint that sets its nodes apart from other GPU nodes",
        f"add {{key: {key}, value: {written}, effect: {pool.effect_spelling}}} to {pool.taints_field}, next to that on {pool.resources[0]}",
        pool.taints_field,
        Addition(pool.taints_field, "", {"key": key, "value": value, "effect": pool.effect_spelling}),
    )


@Rule(
    code="FLX004",
    severity=Severity.HIGH,
    why="The pods wait forever, or the queue admits them and holds their quota while no node accepts them.",
    remediation="Add a toleration to the pods, or to the ResourceFlavor that admits them; the one for nvidia.com/gpu is added "
    "automatically.",
    link="https://kueue.sigs.k8s.io/docs/concepts/resource_flavor/#resourceflavor-tolerations-for-automatic-scheduling",
    sources=("https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#extendedresourcetoleration",),
)
def missing_toleration(pods: PodSet, _: Parameters, inventory: Inventory) -> Outcome:  # noqa: PLR0911 -- a list of decisions, one a line
    """GPU pods that do not tolerate the taints of any pool that they select.

    Fails if pools match the pods' selectors and the taints of each pool reject the pods in every scheduling option.
    """
    if pods.not_gpu_work:
        return NOT_APPLICABLE
    options = options_of(pods, inventory)
    if options is None or pods.requests_gpus is UNKNOWN:
        return undecided(f"{pods.where}: whether it requests GPUs, or what its queue leads to, is not known")
    if not inventory.of(GpuPool) and any(each.concerned is True for each in inventory.of(Autopilot)):
        return NOT_APPLICABLE
    if not inventory.can_judge_missing(GpuPool):
        return undecided(f"{pods.where}: no GPU pool is in the input")
    found = placement_of(pods, inventory)
    pool_match = any_of([found.possible, *(UNKNOWN for option in options if may_be_provisioned(option, inventory))])
    if pool_match is True:
        return PASSES
    if pool_match is UNKNOWN:
        return undecided(f"{pods.where}: the pools that it may run on are not known yet")
    kept = found.kept_off
    if not kept or not kept.taint:
        return NOT_APPLICABLE
    via, pool, taint = kept.option.via, kept.pool, kept.taint
    how = f" (by {via})" if via else ""
    return fails(
        f"{pods.where} selects {pool.identity.described}{how}, but does not tolerate its taint {described(taint)}",
        f"add the toleration {{key: {taint.at('key').text()}, operator: Exists}} to the pods" + (f", or to {via}" if via else ""),
        f"{pods.where}.tolerations",
    )


@Rule(
    code="FLX041",
    severity=Severity.LOW,
    level=Level.ADVISORY,
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
def dead_toleration(pods: PodSet, parameters: Parameters, inventory: Inventory) -> Outcome:
    """A toleration for a taint that is on none of the pools where the GPU pods may run.

    Considers the taints of all pools that match the pods' selectors, even if a taint rejects the pods. Taints that clouds and controllers
    set are excluded.
    """
    if pods.not_gpu_work:
        return NOT_APPLICABLE
    others = parameters.texts("other-keys")
    tolerations = pods.pod.at("tolerations").parts()
    own = [(place, each) for place, each in tolerations.named if not _from_elsewhere(each.at("key").text(), others)]
    if tolerations.complete and not own:
        return NOT_APPLICABLE
    options = options_of(pods, inventory)
    if options is None or pods.requests_gpus is UNKNOWN or not tolerations.complete or not inventory.can_judge_missing(GpuPool):
        return undecided(f"{pods.where}: its tolerations, or the pools that it may run on, are not known")
    found = pool_matches(pods, inventory)
    if not found or inventory.of(Autopilot) or any(may_be_provisioned(option, inventory) for option in options):
        return NOT_APPLICABLE
    pools, taints = inventory.once("taints of pool matches", id(found), lambda: _taints_on(found, inventory))
    for place, each in own:
        if _meets(each, taints) is False and all(pool.taints.complete for pool in pools):
            key, at = each.at("key").text(), f"{pods.where}.tolerations[{place}]"
            chosen = [option for option in options if option.selector] or pods.pod.at(*REQUIRED_TERMS).parts().fields
            names = _listed(pools) if chosen else inventory.once("names of GPU pools", None, lambda: _listed(inventory.of(GpuPool)))
            return fails(f"{at} tolerates {key}, but no pool that it may run on has such a taint: {names}", at=at)
    met = all(_meets(each, taints) is True for _, each in own)
    return PASSES if met else undecided(f"{pods.where}: the taints of its pools, or its tolerations, are not known yet")


def _taints_on(found: list[PoolMatch], inventory: Inventory) -> tuple[list[GpuPool], list[Field]]:
    """Return the matching pools without duplicates, and the taints that their nodes may have."""
    pools = list({id(each.pool): each.pool for each in found}.values())
    written = [each for pool in pools for each in pool.taints.fields]
    return pools, [*written, *inventory.once("taints of classes", None, lambda: _distinct(_other_taints(inventory)))]


def _distinct(taints: Iterable[Field]) -> list[Field]:
    return list({repr(each.value): each for each in taints}.values())


def _listed(pools: Iterable[GpuPool]) -> str:
    return listed({pool.identity.described for pool in pools if pool.concerned is not False})


def _from_elsewhere(key: str | Unknown | None, others: tuple[str, ...]) -> bool:
    """Return whether a cloud or controller sets the tolerated taint, not a pool. A toleration without a key tolerates every taint."""
    return key is None or (key is not UNKNOWN and key.startswith(others))


def _meets(toleration: Field, taints: Iterable[Field]) -> Tri:
    return any_of(tolerates(toleration, taint) for taint in taints)


def _other_taints(inventory: Inventory) -> Iterator[Field]:
    """Yield the startup taints of Karpenter's nodes, and the taints that compute classes set on the nodes they create."""
    for pool in inventory.of(KarpenterNodePool):
        yield from pool.spec.at("template", "spec", "startupTaints").parts().fields
    for each in inventory.of(ComputeClassView):
        for where in (each.spec.at("nodePoolConfig"), *each.spec.at("priorities").parts().fields):
            yield from where.at("taints").parts().fields


@Rule(
    code="FLX040",
    severity=Severity.MEDIUM,
    level=Level.ADVISORY,
    why="A toleration allows pods onto Spot but does not send them there: the scheduler and the autoscaler also give them full-price "
    "nodes.",
    remediation='Select the capacity and tolerate its taint: cloud.google.com/gke-spot: "true", or karpenter.sh/capacity-type: spot.',
    link="https://docs.cloud.google.com/kubernetes-engine/docs/concepts/spot-vms#schedule-workloads",
    sources=("https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/",),
    parameters=(
        Parameter(
            "taint-keys",
            (
                *(CAPACITY_TAINT, CAPACITY_TYPE_LABEL, GKE_SPOT_LABEL, "cloud.google.com/gke-preemptible"),
                *("cloud.google.com/gke-provisioning", "cloud.google.com/gke-flex-start", "eks.amazonaws.com/capacityType"),
                *("provisioning-tier", "capacity-type", "spot"),
            ),
            "Keys of taints that keep work off cheaper capacity that the cloud may reclaim.",
        ),
    ),
)
def toleration_without_selector(pods: PodSet, parameters: Parameters, inventory: Inventory) -> Outcome:  # noqa: PLR0911 -- a list of decisions, one a line
    """GPU pods that tolerate the taint of cheaper capacity but do not select that capacity.

    Passes if a selector or an affinity uses a label of capacity, or if every pool in the input has such a taint.
    """
    if pods.not_gpu_work:
        return NOT_APPLICABLE
    keys = parameters.texts("taint-keys")
    tolerations = pods.pod.at("tolerations").parts()
    named = [(place, str(each.at("key").text())) for place, each in tolerations.named if each.at("key").text() in keys]
    if not named:
        known = tolerations.complete and all(each.at("key").known for each in tolerations.fields)
        return NOT_APPLICABLE if known else undecided(f"{pods.where}.tolerations is not known yet")
    options = options_of(pods, inventory)
    if options is None or pods.requests_gpus is UNKNOWN or not all(option.complete for option in options):
        return undecided(f"{pods.where}: what it requests or selects, or what its queue leads to, is not known")
    if all(may_choose_capacity(pods, option) for option in options):
        return PASSES
    place, key = named[0]
    untainted = any_of(_lands_untainted(each, keys) for each in pool_matches(pods, inventory))
    if not inventory.can_judge_missing(GpuPool) or untainted is UNKNOWN:
        return undecided(f"{pods.where}: nothing sends it to nodes with the taint {key}, and which other nodes accept it is not known")
    if untainted is False:
        return PASSES
    at = f"{pods.where}.tolerations[{place}]"
    return fails(f"{at} lets it onto nodes with the taint {key}, but nothing sends it there: it may take any other GPU node", at=at)


def _lands_untainted(pool_match: PoolMatch, keys: tuple[str, ...]) -> Tri:
    if any(taint.at("key").text() in keys for taint in pool_match.pool.taints.fields):
        return False
    return pool_match.possible if pool_match.pool.taints.complete else UNKNOWN
