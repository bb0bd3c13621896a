"""GPU pods on Spot that ask for more time to end than the cloud gives."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from capacity.values.verdict import PASSES, Addition, Severity, fails, not_applicable, undecided
from policies.inventory.node_offer import EC2_NOTICE_SECONDS
from policies.inventory.views import Inventory, PodSet, Pool
from policies.judging import BOTH_CLOUDS, Level, Rule
from policies.pods.interruption import interruption_of
from policies.pods.scheduling_options import SPOT_LABELS, options_of
from policies.values.field import UNKNOWN
from policies.values.parameters import Parameter, Parameters

if TYPE_CHECKING:
    from capacity.values.verdict import Outcome

_GKE = ("cloud.google.com/",)


TOO_LONG = "{where}.terminationGracePeriodSeconds is {grace}, and {by}: its pods have {notice} seconds"
TOO_LONG_REMEDY = "write {notice} or less and finish a checkpoint within it, or give a GKE pool a longer shutdown, 120 seconds at most"
BY_DEFAULT = "by default "


def judge(pods: PodSet, parameters: Parameters, inventory: Inventory) -> Outcome:  # noqa: PLR0911 -- a list of decisions, one a line
    """Unset, the grace period is 30 seconds. GKE gives 15 unless the pool says otherwise, EC2 two minutes less the warning's way."""
    asks = pods.asks_for_gpus
    if exempt := pods.exemption or ("asks for no GPUs" if asks is False else ""):
        return not_applicable(exempt)
    field = pods.pod.at("terminationGracePeriodSeconds")
    grace = Decimal(parameters.number("kubernetes-default-seconds")) if field.absent else field.number()
    if grace is UNKNOWN or grace is None or asks is UNKNOWN:
        return undecided(f"{pods.where}: its grace period, or what it asks for, is not known yet")
    if grace <= parameters.number("gke-seconds"):
        return PASSES
    interruption = interruption_of(pods, inventory)
    notices = interruption.notices
    known = [notice for notice in notices if isinstance(notice, Decimal)]
    notice = min(known, default=None)
    if not notices and interruption.possible is True and inventory.closed:
        notice = Decimal(parameters.number("gke-seconds" if _on_gke(pods, inventory) else "ec2-seconds"))
    if not notices and interruption.possible is True and grace > parameters.number("longest-seconds"):
        notice = Decimal(parameters.number("longest-seconds"))
    if notice is not None and grace > notice:
        written = f"{BY_DEFAULT}{grace}" if field.absent else grace
        return fails(
            TOO_LONG.format(where=pods.where, grace=written, by=interruption.by, notice=notice),
            TOO_LONG_REMEDY.format(notice=notice),
            f"{pods.where}.terminationGracePeriodSeconds",
            Addition(pods.where, "terminationGracePeriodSeconds", int(notice)) if field.absent else None,
        )
    if interruption.possible is False:
        return not_applicable("it does not run on Spot")
    if interruption.possible is UNKNOWN or UNKNOWN in notices or not notices:
        return undecided(f"{pods.where}: {interruption.by}, so that how long its pods have is not known")
    return PASSES


def _on_gke(pods: PodSet, inventory: Inventory) -> bool:
    keys = {key for way in options_of(pods, inventory) or () for key in way.selector if key in SPOT_LABELS}
    return bool(inventory.of(Pool)) or any(key.startswith(_GKE) for key in keys)


RULE = Rule(
    code="FLX006",
    name="grace-exceeds-notice",
    severity=Severity.MEDIUM,
    level=Level.MANDATORY,
    clouds=BOTH_CLOUDS,
    looks_at=(PodSet,),
    judge_among=judge,
    why="The node is gone before the grace period is: a checkpoint that counts on it is cut off half-written.",
    remediation=f"Ask for no more seconds than the pool gives: 15 on GKE by default, {EC2_NOTICE_SECONDS} on EC2; preStop hooks count too.",
    link="https://docs.cloud.google.com/kubernetes-engine/docs/concepts/spot-vms#termination-graceful-shutdown",
    sources=("https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html",),
    parameters=(
        Parameter("gke-seconds", 15, "Seconds that GKE gives pods of a Spot node whose pool does not say."),
        Parameter("ec2-seconds", EC2_NOTICE_SECONDS, "Seconds that pods on EC2's Spot are counted on to have of its two minutes' notice."),
        Parameter("longest-seconds", 120, "The most seconds that any Spot node gives its pods, however it is set."),
        Parameter("kubernetes-default-seconds", 30, "Kubernetes' grace period where a pod does not say."),
    ),
)
