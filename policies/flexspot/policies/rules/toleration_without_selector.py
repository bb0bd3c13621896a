"""GPU pods that tolerate the taint of cheaper capacity but do not select that capacity."""

from flexspot.capacity.catalog.node_labels import CAPACITY_TAINT, CAPACITY_TYPE_LABEL, GKE_SPOT_LABEL
from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, not_applicable, undecided
from flexspot.policies.inventory.views import GpuPool, Inventory, PodSet
from flexspot.policies.judging import Level, Parameter, Parameters, Rule
from flexspot.policies.pods.placement import PoolMatch, pool_matches
from flexspot.policies.pods.scheduling_options import may_choose_capacity, options_of
from flexspot.policies.values.field import UNKNOWN, Tri, any_of


def judge(pods: PodSet, parameters: Parameters, inventory: Inventory) -> Outcome:  # noqa: PLR0911 -- a list of decisions, one a line
    """A selector or an affinity on a label that may tell capacity leads them; so does a run in which every pool has such a taint."""
    asks = pods.asks_for_gpus
    if exempt := pods.not_gpu_work:
        return not_applicable(exempt)
    keys = parameters.texts("taint-keys")
    tolerations = pods.pod.at("tolerations").parts()
    named = [(place, str(each.at("key").text())) for place, each in tolerations.named if each.at("key").text() in keys]
    if not named:
        known = tolerations.complete and all(each.at("key").known for each in tolerations.fields)
        return not_applicable("it tolerates no such taint") if known else undecided(f"{pods.where}.tolerations is not known yet")
    options = options_of(pods, inventory)
    if options is None or asks is UNKNOWN or not all(option.complete for option in options):
        return undecided(f"{pods.where}: what it requests or selects, or what its queue leads to, is not known")
    if all(may_choose_capacity(pods, option) for option in options):
        return PASSES
    place, key = named[0]
    untainted = any_of(_lands_untainted(each, keys) for each in pool_matches(pods, inventory))
    if not inventory.tells(GpuPool) or untainted is UNKNOWN:
        return undecided(f"{pods.where}: nothing sends it to nodes with the taint {key}, and which other nodes accept it is not known")
    if untainted is False:
        return PASSES
    at = f"{pods.where}.tolerations[{place}]"
    return fails(f"{at} lets it onto nodes with the taint {key}, but nothing sends it there: it may take any other GPU node", at=at)


def _lands_untainted(pool_match: PoolMatch, keys: tuple[str, ...]) -> Tri:
    if any(taint.key.text() in keys for taint in pool_match.pool.taints):
        return False
    return pool_match.possible if pool_match.pool.taints_complete else UNKNOWN


RULE = Rule(
    code="FLX040",
    severity=Severity.MEDIUM,
    level=Level.ADVISORY,
    judge_among=judge,
    why=(
        "A toleration allows pods onto Spot but does not send them there: the scheduler and the autoscaler also give them full-price nodes."
    ),
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
