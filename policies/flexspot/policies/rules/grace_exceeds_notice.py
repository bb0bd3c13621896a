"""Pods on Spot whose grace period is longer than the notice that the cloud gives."""

from decimal import Decimal

from flexspot.capacity.values.verdict import PASSES, Addition, Outcome, Severity, fails, not_applicable, undecided
from flexspot.policies.inventory.node_offer import EC2_NOTICE_SECONDS
from flexspot.policies.inventory.views import GpuPool, Inventory, PodSet, Pool
from flexspot.policies.judging import Parameter, Parameters, Rule
from flexspot.policies.pods.interruption import SpotExposure, interruption_of
from flexspot.policies.pods.scheduling_options import SPOT_LABELS, options_of, selects_spot, spot_is_of_gke
from flexspot.policies.pools import pools_for
from flexspot.policies.values.field import UNKNOWN

_GKE = ("cloud.google.com/",)


GRACE_TOO_LONG = "{where}.terminationGracePeriodSeconds is {grace}, and {by}: its pods have {given}"
GRACE_TOO_LONG_REMEDY = (
    "write {notice} or less and finish a checkpoint within it, or give a GKE pool a longer shutdown, 120 seconds at most"
)
BY_DEFAULT = "by default "
GIVEN, UNLESS, AT_MOST = "{notice} seconds", "{notice} seconds, unless their pool gives more", "at most {notice} seconds"
"""What pods are given: by the pool or by EC2, by GKE where nobody sees the pool, and by whatever nodes they are."""


def judge(pods: PodSet, parameters: Parameters, inventory: Inventory) -> Outcome:  # noqa: PLR0911 -- a list of decisions, one a line
    """Unset, the grace period is 30 seconds. GKE gives 15 unless the pool says otherwise, EC2 two minutes less the warning's way.

    What asks for no GPUs is judged where somebody wrote a period, by its own selector and the pools without GPUs that it leads to. Who
    writes Kubernetes' own 30 seconds counts on no more than who writes nothing: an API server fills them in.
    """
    asks = pods.asks_for_gpus
    field = pods.pod.at("terminationGracePeriodSeconds")
    default = Decimal(parameters.number("kubernetes-default-seconds"))
    written = not (field.absent or field.number() == default)
    other = asks is False and (selects_spot(pods)[0] is not True or not written)
    if exempt := pods.exemption or ("it requests no GPUs, and relies on no grace period on Spot" if other else ""):
        return not_applicable(exempt)
    grace = default if field.absent else field.number()
    if grace is UNKNOWN or grace is None or asks is UNKNOWN:
        return undecided(f"{pods.where}: its grace period, or whether it requests GPUs, is not known yet")
    if grace <= parameters.number("gke-seconds"):
        return PASSES
    interruption = interruption_of(pods, inventory) if asks else _without_gpus(pods, inventory)
    notices = interruption.notices
    notice, given = min((each for each in notices if isinstance(each, Decimal)), default=None), GIVEN
    if not notices and interruption.possible is True:
        notice, given = _usual(pods, parameters, inventory, written=written)
    if notice is not None and grace > notice:
        shown = f"{BY_DEFAULT}{grace}" if field.absent else grace
        return fails(
            GRACE_TOO_LONG.format(where=pods.where, grace=shown, by=interruption.by, given=given.format(notice=notice)),
            GRACE_TOO_LONG_REMEDY.format(notice=notice),
            f"{pods.where}.terminationGracePeriodSeconds",
            Addition(pods.where, "terminationGracePeriodSeconds", int(notice)) if field.absent else None,
        )
    if interruption.possible is False:
        return not_applicable("it does not run on Spot")
    if interruption.possible is UNKNOWN or UNKNOWN in notices or (not notices and not written):
        return undecided(f"{pods.where}: {interruption.by}, so the time that its pods have is not known")
    return PASSES


def _usual(pods: PodSet, parameters: Parameters, inventory: Inventory, *, written: bool) -> tuple[Decimal, str]:
    """What such nodes give where nobody sees the pool: a grace period that somebody wrote is held against that, and one that nobody wrote
    against the longest there is, unless there are no other pools.
    """
    itself = selects_spot(pods)[0] is True
    if inventory.closed or (itself and written):
        on_gke = spot_is_of_gke(pods) if itself else _on_gke(pods, inventory)
        return (Decimal(parameters.number("gke-seconds")), UNLESS) if on_gke else (Decimal(parameters.number("ec2-seconds")), GIVEN)
    return Decimal(parameters.number("longest-seconds")), AT_MOST


def _without_gpus(pods: PodSet, inventory: Inventory) -> SpotExposure:
    possible, field = selects_spot(pods)
    wanted = dict(pods.pod.at("nodeSelector").parts().named)
    pools = [
        pool for pool in pools_for(Pool, wanted, inventory) if not isinstance(pool, GpuPool) and pool.offer.carries(wanted) is not False
    ]
    # Of several pools it may be any: the most generous counts.
    notices = tuple(dict.fromkeys(pool.notice_seconds for pool in pools if pool.spot is not False))
    known = [each for each in notices if isinstance(each, Decimal)]
    counted = (max(known),) if known and len(known) == len(notices) else notices
    return SpotExposure(possible, (), f"{field} names Spot nodes", counted)


def _on_gke(pods: PodSet, inventory: Inventory) -> bool:
    keys = {key for way in options_of(pods, inventory) or () for key in way.selector if key in SPOT_LABELS}
    return bool(inventory.of(Pool)) or any(key.startswith(_GKE) for key in keys)


RULE = Rule(
    code="FLX006",
    severity=Severity.MEDIUM,
    judge_among=judge,
    why="The node is gone before the grace period ends: a checkpoint that relies on it is cut off half-written.",
    remediation=f"Ask for no more seconds than the pool gives: 15 on GKE by default, {EC2_NOTICE_SECONDS} on EC2; preStop hooks count too.",
    link="https://docs.cloud.google.com/kubernetes-engine/docs/concepts/spot-vms#termination-graceful-shutdown",
    sources=("https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html",),
    parameters=(
        Parameter("gke-seconds", 15, "Seconds that GKE gives pods on a Spot node if its pool sets no value."),
        Parameter("ec2-seconds", EC2_NOTICE_SECONDS, "Seconds of EC2's two-minute notice that pods on Spot are assumed to have."),
        Parameter("longest-seconds", 120, "The most seconds that any Spot node gives its pods, regardless of its settings."),
        Parameter("kubernetes-default-seconds", 30, "Kubernetes' grace period for a pod that sets none."),
    ),
)
