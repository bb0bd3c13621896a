"""A Job whose pods restart in place, so that it cannot ignore interruptions."""

from decimal import Decimal

from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, not_applicable, undecided
from flexspot.policies.inventory.views import Inventory, PodSet
from flexspot.policies.judging import Parameter, Parameters, Rule
from flexspot.policies.pods.interruption import interruption_of
from flexspot.policies.values.field import UNKNOWN, Field, Unknown


def judge(pods: PodSet, parameters: Parameters, inventory: Inventory) -> Outcome:  # noqa: PLR0911 -- a list of decisions, one a line
    """With a podFailurePolicy it is refused; without one, on Spot, each interruption counts. JobSet's own default is OnFailure."""
    if pods.job is None:
        return not_applicable("no Job creates these pods")
    policy, at = pods.job.at("podFailurePolicy"), f"{pods.where}.restartPolicy"
    written = pods.pod.at("restartPolicy")
    if written.equals("Never") is True:
        return PASSES
    if written.known and policy.known and not policy.absent:
        return fails(
            f"{at} is {written.text() or 'absent'}, but with a podFailurePolicy Kubernetes accepts only Never", f"set {at} to Never", at
        )
    asks = pods.asks_for_gpus
    in_place = True if written.absent and pods.kind == "JobSet" else written.equals("OnFailure")
    if exempt := pods.not_gpu_work or ("it restarts no container" if in_place is False else ""):
        return not_applicable(exempt)
    failures = _failures(pods, pods.job)
    interruption = interruption_of(pods, inventory)
    if interruption.possible is False or (failures is not UNKNOWN and failures >= parameters.number("enough-failures")):
        return not_applicable("it does not run on Spot, or may fail often enough")
    if UNKNOWN in (asks, in_place, failures, interruption.possible) or not policy.known:
        return undecided(f"{pods.where}: its restartPolicy, or whether it runs on Spot ({interruption.by}), is not known")
    return fails(
        f"{at} is OnFailure, which rules out a podFailurePolicy; {interruption.by}, and interruption number {failures} ends it",
        f"set {at} to Never, and add a podFailurePolicy that ignores DisruptionTarget",
        at,
    )


def _failures(pods: PodSet, job: Field) -> Decimal | Unknown:
    """How many failures of pods end the work: Kubernetes allows six where nothing is written, a JobSet no restart."""
    of_job, restarts = job.at("backoffLimit"), pods.object_spec.at("failurePolicy", "maxRestarts")
    allowed, again = Decimal(6) if of_job.absent else of_job.number(), restarts.number() if pods.kind == "JobSet" else None
    if allowed is UNKNOWN or again is UNKNOWN:
        return UNKNOWN
    return ((allowed or 0) + 1) * ((again or 0) + Decimal(1))


RULE = Rule(
    code="FLX045",
    severity=Severity.HIGH,
    judge_among=judge,
    why="Pods that restart in place cannot tell an interruption from a fault: the Job is refused, or counts reclaimed nodes as failures.",
    remediation="Set restartPolicy: Never and a podFailurePolicy that ignores DisruptionTarget; the Job creates a new pod by itself.",
    link="https://kubernetes.io/docs/concepts/workloads/controllers/job/#pod-failure-policy",
    sources=(
        "k8s.io/kubernetes 1.36.1, pkg/apis/batch/validation: only Never is supported when podFailurePolicy is specified.",
        "sigs.k8s.io/jobset 0.12, pkg/webhooks: a JobSet's pods get OnFailure where nothing is written.",
    ),
    parameters=(Parameter("enough-failures", 20, "How many counted failures allow a Job on Spot to omit a podFailurePolicy."),),
)
