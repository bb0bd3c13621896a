"""Rules about work on capacity that the cloud reclaims: grace periods, run times, failure policies and disruption budgets."""

from collections.abc import Iterator
from decimal import Decimal
from math import ceil

from flexspot.capacity.values.quantities import quantity
from flexspot.capacity.values.verdict import NOT_APPLICABLE, PASSES, Addition, Outcome, Severity, fails, undecided
from flexspot.policies.inventory.node_offer import EC2_NOTICE_SECONDS
from flexspot.policies.inventory.objects import ComputeClassView, PodDisruptionBudget, ProvisioningRequest, ProvisioningRequestConfig
from flexspot.policies.inventory.views import GpuPool, Inventory, PodSet, Pool
from flexspot.policies.judging import Cloud, Level, Parameter, Parameters, Rule
from flexspot.policies.pods.placement import LONGEST_SECONDS, SpotExposure, flex_start_of, ignores_interruptions, interruption_of
from flexspot.policies.pods.scheduling_options import SPOT_LABELS, options_of, selects_spot, spot_is_of_gke
from flexspot.policies.pods.selection import copies_of, selected
from flexspot.policies.pools import pools_for
from flexspot.policies.values.field import UNKNOWN, Field, Tri, Unknown, any_of

_GKE = ("cloud.google.com/",)


GRACE_TOO_LONG = "{where}.terminationGracePeriodSeconds is {grace}, and {by}: its pods have {given}"


GRACE_TOO_LONG_REMEDY = (
    "write {notice} or less and finish a checkpoint within it, or give a GKE pool a longer shutdown, 120 seconds at most"
)


BY_DEFAULT = "by default "


GIVEN, UNLESS, AT_MOST = "{notice} seconds", "{notice} seconds, unless their pool gives more", "at most {notice} seconds"


"""Time that the pods get: from the pool or EC2, from GKE if the pool is not in the input, or on any kind of node."""


@Rule(
    code="FLX006",
    severity=Severity.MEDIUM,
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
def grace_exceeds_notice(pods: PodSet, parameters: Parameters, inventory: Inventory) -> Outcome:  # noqa: PLR0911 -- a list of decisions, one a line
    """Pods on Spot whose grace period is longer than the notice that the cloud gives.

    The default grace period is 30 seconds. GKE gives 15 unless the pool sets another value; EC2 gives two minutes, less the time that the
    warning takes.

    Pods without GPUs are judged only if they set a grace period, by their own selector and the pools without GPUs that match it. A written
    30 seconds counts as unset, because API servers fill in that default.
    """
    asks = pods.requests_gpus
    field = pods.pod.at("terminationGracePeriodSeconds")
    default = Decimal(parameters.number("kubernetes-default-seconds"))
    written = not (field.absent or field.number() == default)
    other = asks is False and (selects_spot(pods)[0] is not True or not written)
    if pods.serve_nodes or other:
        return NOT_APPLICABLE
    grace = default if field.absent else field.number()
    if grace is UNKNOWN or grace is None or asks is UNKNOWN:
        return undecided(f"{pods.where}: its grace period, or whether it requests GPUs, is not known yet")
    if grace <= parameters.number("gke-seconds"):
        return PASSES
    interruption = interruption_of(pods, inventory) if asks else _without_gpus(pods, inventory)
    notices = interruption.notices
    notice, given = min((each for each in notices if isinstance(each, Decimal)), default=None), GIVEN
    if not notices and interruption.possible is True:
        notice, given = _default_notice(pods, parameters, inventory, written=written)
    if notice is not None and grace > notice:
        shown = f"{BY_DEFAULT}{grace}" if field.absent else grace
        return fails(
            GRACE_TOO_LONG.format(where=pods.where, grace=shown, by=interruption.by, given=given.format(notice=notice)),
            GRACE_TOO_LONG_REMEDY.format(notice=notice),
            f"{pods.where}.terminationGracePeriodSeconds",
            Addition(pods.where, "terminationGracePeriodSeconds", int(notice)) if field.absent else None,
        )
    if interruption.possible is False:
        return NOT_APPLICABLE
    if interruption.possible is UNKNOWN or UNKNOWN in notices or (not notices and not written):
        return undecided(f"{pods.where}: {interruption.by}, so the time that its pods have is not known")
    return PASSES


def _default_notice(pods: PodSet, parameters: Parameters, inventory: Inventory, *, written: bool) -> tuple[Decimal, str]:
    """Return the notice of the pods' nodes if their pool is not in the input, with the form of its text.

    A grace period that a user wrote is compared with the cloud's default notice. The default grace period is compared with the longest
    notice, unless the input is complete.
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
    # The pods may run in any of several pools, so the longest notice counts.
    notices = tuple(dict.fromkeys(pool.notice_seconds for pool in pools if pool.spot is not False))
    known = [each for each in notices if isinstance(each, Decimal)]
    counted = (max(known),) if known and len(known) == len(notices) else notices
    return SpotExposure(possible, (), f"{field} names Spot nodes", counted)


def _on_gke(pods: PodSet, inventory: Inventory) -> bool:
    keys = {key for way in options_of(pods, inventory) or () for key in way.selector if key in SPOT_LABELS}
    return bool(inventory.of(Pool)) or any(key.startswith(_GKE) for key in keys)


DIES = "{where}: {by}, and the Job counts each interruption as a failure of which it may have {limit}"


DIES_REMEDY = "add podFailurePolicy: {rules: [{action: Ignore, onPodConditions: [{type: DisruptionTarget}]}]}, with restartPolicy: Never"


@Rule(
    code="FLX024",
    severity=Severity.HIGH,
    why="Kueue's own preemption costs a Job nothing, but a reclaimed node is a pod failure: with backoffLimit 0 the first one ends the "
    "Job.",
    remediation="Let the Job ignore pods with the condition DisruptionTarget; its program exits non-zero when it is interrupted.",
    link="https://kubernetes.io/docs/concepts/workloads/controllers/job/#pod-failure-policy",
    sources=("Run against kube-controller-manager 1.36.1: an evicted pod counts as failed: 1 without the policy, and as nothing with it.",),
    parameters=(Parameter("least-interruptions", 3, "How many interruptions a Job on Spot must survive."),),
)
def job_dies_on_interruption(pods: PodSet, parameters: Parameters, inventory: Inventory) -> Outcome:
    """A job on Spot that fails permanently when a node is reclaimed.

    It survives if it does not count interruptions, if it may fail often enough, or if its owner restarts it.
    """
    if pods.job is None:
        return NOT_APPLICABLE
    if pods.not_gpu_work:
        return NOT_APPLICABLE
    least = parameters.number("least-interruptions")
    # Defaults: a Job allows six failures, a JobSet no restart.
    retries = any_of([_at_least(pods.job.at(name), least, default) for name, default in (("backoffLimit", 6), ("backoffLimitPerIndex", 0))])
    if not pods.job.at("backoffLimitPerIndex").absent:
        retries = _at_least(pods.job.at("backoffLimitPerIndex"), least, 0)
    restarts = _at_least(pods.object_spec.at("failurePolicy", "maxRestarts"), least, 0) if pods.kind == "JobSet" else False
    survives = any_of([ignores_interruptions(pods.job), retries, restarts])
    if survives is True:
        return PASSES
    interruption = interruption_of(pods, inventory)
    if interruption.possible is False:
        return NOT_APPLICABLE
    if UNKNOWN in (survives, interruption.possible, pods.requests_gpus):
        return undecided(f"{pods.where}: whether it runs on Spot ({interruption.by}), or how often it may fail, is not known")
    limit = pods.job.at("backoffLimit").text()
    return fails(
        DIES.format(where=pods.where, by=interruption.by, limit=limit),
        DIES_REMEDY,
        f"{pods.where.removesuffix('.template.spec')}.podFailurePolicy",
    )


def _at_least(count: Field, least: int, default: int) -> Tri:
    number = default if count.absent else count.number()
    return UNKNOWN if number is UNKNOWN else number is not None and number >= least


@Rule(
    code="FLX045",
    severity=Severity.HIGH,
    why="Pods that restart in place cannot tell an interruption from a fault: the Job is refused, or counts reclaimed nodes as failures.",
    remediation="Set restartPolicy: Never and a podFailurePolicy that ignores DisruptionTarget; the Job creates a new pod by itself.",
    link="https://kubernetes.io/docs/concepts/workloads/controllers/job/#pod-failure-policy",
    sources=(
        "k8s.io/kubernetes 1.36.1, pkg/apis/batch/validation: only Never is supported when podFailurePolicy is specified.",
        "sigs.k8s.io/jobset 0.12, pkg/webhooks: a JobSet's pods get OnFailure where nothing is written.",
    ),
    parameters=(Parameter("enough-failures", 20, "How many counted failures allow a Job on Spot to omit a podFailurePolicy."),),
)
def restart_policy_forbids_failure_policy(pods: PodSet, parameters: Parameters, inventory: Inventory) -> Outcome:  # noqa: PLR0911 -- a list of decisions, one a line
    """A Job whose pods restart in place, so that it cannot ignore interruptions.

    With a podFailurePolicy Kubernetes refuses it; without one, on Spot, each interruption counts as a failure. JobSet's own default is
    OnFailure.
    """
    if pods.job is None:
        return NOT_APPLICABLE
    policy, at = pods.job.at("podFailurePolicy"), f"{pods.where}.restartPolicy"
    written = pods.pod.at("restartPolicy")
    if written.equals("Never") is True:
        return PASSES
    if written.known and policy.known and not policy.absent:
        return fails(
            f"{at} is {written.text() or 'absent'}, but with a podFailurePolicy Kubernetes accepts only Never", f"set {at} to Never", at
        )
    in_place = True if written.absent and pods.kind == "JobSet" else written.equals("OnFailure")
    if pods.not_gpu_work or in_place is False:
        return NOT_APPLICABLE
    failures = _failures(pods, pods.job)
    interruption = interruption_of(pods, inventory)
    if interruption.possible is False or (failures is not UNKNOWN and failures >= parameters.number("enough-failures")):
        return NOT_APPLICABLE
    if UNKNOWN in (pods.requests_gpus, in_place, failures, interruption.possible) or not policy.known:
        return undecided(f"{pods.where}: its restartPolicy, or whether it runs on Spot ({interruption.by}), is not known")
    return fails(
        f"{at} is OnFailure, which rules out a podFailurePolicy; {interruption.by}, and interruption number {failures} ends it",
        f"set {at} to Never, and add a podFailurePolicy that ignores DisruptionTarget",
        at,
    )


def _failures(pods: PodSet, job: Field) -> Decimal | Unknown:
    """Return the number of pod failures that end the work. By default a Job allows six failures, and a JobSet no restart."""
    of_job, restarts = job.at("backoffLimit"), pods.object_spec.at("failurePolicy", "maxRestarts")
    allowed, again = Decimal(6) if of_job.absent else of_job.number(), restarts.number() if pods.kind == "JobSet" else None
    if allowed is UNKNOWN or again is UNKNOWN:
        return UNKNOWN
    return ((allowed or 0) + 1) * ((again or 0) + Decimal(1))


RUN_TIME = "maxRunDurationSeconds"


ANNOTATION = f"provreq.kueue.x-k8s.io/{RUN_TIME}"


SELECTOR = "cloud.google.com/gke-max-run-duration-seconds"


TOO_LONG = "{at} is {seconds} seconds, and a flex-start node ends after {most}{also}"


TOO_LONG_REMEDY = "write {most} or less in {at}"


ALSO = " ({by})"


Requester = PodSet | ProvisioningRequest | ProvisioningRequestConfig | ComputeClassView


@Rule(
    code="FLX046",
    severity=Severity.HIGH,
    clouds=(Cloud.GKE,),
    why="GKE refuses a longer request, and ends every flex-start node after seven days: work that needs longer is cut off.",
    remediation="Ask for seven days (604800 seconds) or less, or let the job write checkpoints and go on with a new node.",
    link="https://docs.cloud.google.com/kubernetes-engine/docs/concepts/dws",
    sources=("GoogleCloudPlatform/cluster-autoscaler (2026-08): run times of flex-start, 10 minutes to 7 days.",),
    parameters=(Parameter("most-seconds", LONGEST_SECONDS, "The longest run of a flex-start node, in seconds."),),
)
def flex_job_over_seven_days(requester: Requester, parameters: Parameters, inventory: Inventory) -> Outcome:
    """Work that requests flex-start capacity for longer than its limit of seven days.

    A deadline alone proves nothing for a Job that survives interruptions: it may use several nodes in turn.
    """
    most = parameters.number("most-seconds")
    flex, by = (
        flex_start_of(requester, inventory) if isinstance(requester, PodSet) and requester.requests_gpus is not False else (False, "")
    )
    requests = [each for each in _requests(requester, flex) if each[2] is not False]
    known = [(at, seconds.number()) for at, seconds, _ in requests]
    long = [(at, seconds) for at, seconds in known if isinstance(seconds, Decimal) and seconds > most]
    sure = [at for at, _, is_flex in requests if is_flex is True]
    for at, seconds in long:
        if at in sure:
            # If the capacity is not certain, only the field itself requests flex-start.
            also = ALSO.format(by=by) if flex is True else ""
            return fails(TOO_LONG.format(at=at, seconds=seconds, most=most, also=also), TOO_LONG_REMEDY.format(most=most, at=at), at)
    if long or any(seconds is UNKNOWN for _, seconds in known):
        return undecided(f"{requests[0][0]}, or whether it runs on flex-start, is not known")
    return PASSES if requests and sure else NOT_APPLICABLE


def _requests(requester: Requester, flex: Tri) -> Iterator[tuple[str, Field, Tri]]:
    """Yield each field with a run time, as (path, seconds, whether it requests flex-start)."""
    if isinstance(requester, PodSet):
        for annotations in requester.annotations:
            if not annotations.at(ANNOTATION).absent and annotations.known:
                yield f'metadata.annotations["{ANNOTATION}"]', annotations.at(ANNOTATION), True
        fields = {f'{requester.where}.nodeSelector["{SELECTOR}"]': requester.pod.at("nodeSelector", SELECTOR)}
        if requester.job is None or ignores_interruptions(requester.job) is False:
            fields[f"{requester.where}.activeDeadlineSeconds"] = requester.pod.at("activeDeadlineSeconds")
            fields["spec.activeDeadlineSeconds"] = requester.object_spec.at("activeDeadlineSeconds")
            fields["spec.runPolicy.activeDeadlineSeconds"] = requester.object_spec.at("runPolicy", "activeDeadlineSeconds")
            if requester.job is not None:
                fields[f"{requester.where.removesuffix('.template.spec')}.activeDeadlineSeconds"] = requester.job.at(
                    "activeDeadlineSeconds"
                )
        written = {at: field for at, field in fields.items() if not field.absent and (field.known or not field.partial)}
        yield from ((at, field, flex) for at, field in written.items())
    elif isinstance(requester, ComputeClassView):
        for place, priority in requester.spec.at("priorities").parts().named:
            if not priority.at(RUN_TIME).absent:
                yield f"spec.priorities[{place}].{RUN_TIME}", priority.at(RUN_TIME), priority.at("flexStart", "enabled").equals("true")
    else:
        seconds = requester.spec.at("parameters", RUN_TIME)
        if not seconds.absent:
            yield f"spec.parameters.{RUN_TIME}", seconds, requester.spec.at("provisioningClassName").equals("queued-provisioning.gke.io")


@Rule(
    code="FLX051",
    severity=Severity.HIGH,
    why="Nodes with such pods are never drained: autoscalers keep half-empty GPU nodes, and upgrades wait until they "
    "fail or force eviction.",
    remediation="Allow at least one pod to be evicted: maxUnavailable: 1, or minAvailable below the number of pods.",
    link="https://kubernetes.io/docs/tasks/run-application/configure-pdb/#arbitrary-controllers-and-selectors",
    sources=("k8s.io/kubernetes 1.36.1, pkg/controller/disruption: without a scale no disruption is allowed.",),
    parameters=(
        Parameter(
            "kinds-without-scale",
            ("CronJob", "Job", "JobSet", "RayCluster", "RayJob", "RayService"),
            "Kinds whose pods have an owner without a scale.",
        ),
    ),
)
def blocking_disruption_budget(budget: PodDisruptionBudget, parameters: Parameters, inventory: Inventory) -> Outcome:
    """A PodDisruptionBudget that never allows an eviction.

    Either the numbers allow none, or the pods' owner has no scale. Without a scale only a whole number in minAvailable can be evaluated.
    """
    most, least = budget.spec.at("maxUnavailable"), budget.spec.at("minAvailable")
    for field, at, none in ((most, "spec.maxUnavailable", ("0", "0%")), (least, "spec.minAvailable", ("100%",))):
        if field.equals(*none) is True:
            return fails(f"{at} is {field.text()}, which allows no eviction", at=at)
    if not most.known or not least.known:
        return undecided("spec.maxUnavailable, or spec.minAvailable, is not known yet")
    pods = selected(budget, inventory)
    sure = [each for each, answer in pods if answer is True]
    scaled = "spec.maxUnavailable" if not most.absent else "spec.minAvailable"
    if not most.absent or _percent(least):
        for each in sure:
            if each.kind in parameters.texts("kinds-without-scale"):
                return fails(
                    f"{scaled} needs the scale of the pods' owner, and {each.identity.described} has none: no eviction is allowed",
                    "remove the budget, or set minAvailable to a whole number below the number of pods",
                    scaled,
                )
    if least.absent:
        return PASSES if not most.absent else NOT_APPLICABLE
    blocks = _keeps_all(least, pods)
    if blocks is True:
        return fails(
            f"spec.minAvailable is {least.text()}, and it selects no more pods than that: no eviction is allowed", at="spec.minAvailable"
        )
    return undecided("the input does not show how many pods it selects") if blocks is UNKNOWN else PASSES


def _percent(amount: Field) -> bool:
    text = amount.text()
    return isinstance(text, str) and text.endswith("%")


def _keeps_all(least: Field, pods: list[tuple[PodSet, Tri]]) -> Tri:
    """Return whether no pod may be evicted. Kubernetes rounds percentages of pods up."""
    copies = [copies_of(each) if answer is True else UNKNOWN for each, answer in pods]
    text = least.text()
    if not copies or UNKNOWN in copies or not isinstance(text, str):
        return UNKNOWN
    whole = sum((each for each in copies if isinstance(each, Decimal)), Decimal(0))
    share = quantity(text.removesuffix("%"))
    if share is None:
        return False
    kept = ceil(share * whole / 100) if text.endswith("%") else share
    return 0 < whole <= kept


@Rule(
    code="FLX052",
    severity=Severity.LOW,
    level=Level.ADVISORY,
    why="A budget limits evictions. The reclaim of a Spot node and the end of a flex-start node are not evictions: "
    "jobs that rely on it lose work.",
    remediation="Rely on checkpoints and a podFailurePolicy that ignores DisruptionTarget; keep the budget only for drains, or remove it.",
    link="https://kubernetes.io/docs/concepts/workloads/pods/disruptions/#pod-disruption-budgets",
    sources=("https://docs.cloud.google.com/kubernetes-engine/docs/concepts/spot-vms",),
    parameters=(Parameter("kinds", ("CronJob", "Job", "JobSet", "Pod", "PyTorchJob", "RayJob"), "Kinds of work that run to completion."),),
)
def budget_does_not_stop_reclaim(budget: PodDisruptionBudget, parameters: Parameters, inventory: Inventory) -> Outcome:
    """A PodDisruptionBudget for jobs on capacity that the cloud reclaims: it does not stop the reclaim.

    Services are not judged: their budgets are useful for drains.
    """
    kinds = parameters.texts("kinds")
    jobs = [(pods, answer) for pods, answer in selected(budget, inventory) if pods.kind in kinds and pods.requests_gpus is not False]
    if not jobs:
        return NOT_APPLICABLE
    undetermined = False
    for pods, answer in jobs:
        interruption, (flex, by) = interruption_of(pods, inventory), flex_start_of(pods, inventory)
        spot = interruption.possible is True
        if answer is True and pods.requests_gpus is True and (spot or flex is True):
            where = interruption.by if spot else by
            return fails(
                f"spec.selector selects the pods of {pods.identity.described}: {where}, and no budget delays its end", at="spec.selector"
            )
        undetermined |= UNKNOWN in (answer, interruption.possible, flex) or spot or flex is True
    return undecided("whether a job that it selects runs on Spot or flex-start is not known") if undetermined else PASSES
