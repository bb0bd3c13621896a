"""A job on Spot that fails permanently when a node is reclaimed."""

from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, not_applicable, undecided
from flexspot.policies.inventory.views import Inventory, PodSet
from flexspot.policies.judging import Parameter, Parameters, Rule
from flexspot.policies.pods.interruption import ignores_interruptions, interruption_of
from flexspot.policies.values.field import UNKNOWN, Field, Tri, any_of

DIES = "{where}: {by}, and the Job counts each interruption as a failure of which it may have {limit}"
DIES_REMEDY = "add podFailurePolicy: {rules: [{action: Ignore, onPodConditions: [{type: DisruptionTarget}]}]}, with restartPolicy: Never"


def judge(pods: PodSet, parameters: Parameters, inventory: Inventory) -> Outcome:
    """It survives if it does not count interruptions, if it may fail often enough, or if what made it starts it again."""
    if pods.job is None:
        return not_applicable("no Job creates these pods")
    asks = pods.asks_for_gpus
    if exempt := pods.not_gpu_work:
        return not_applicable(exempt)
    least = parameters.number("least-interruptions")
    # A Job allows six failures where it does not say, a JobSet no restart.
    retries = any_of([_at_least(pods.job.at(name), least, default) for name, default in (("backoffLimit", 6), ("backoffLimitPerIndex", 0))])
    if not pods.job.at("backoffLimitPerIndex").absent:
        retries = _at_least(pods.job.at("backoffLimitPerIndex"), least, 0)
    restarts = _at_least(pods.object_spec.at("failurePolicy", "maxRestarts"), least, 0) if pods.kind == "JobSet" else False
    survives = any_of([ignores_interruptions(pods.job), retries, restarts])
    if survives is True:
        return PASSES
    interruption = interruption_of(pods, inventory)
    if interruption.possible is False:
        return not_applicable("it does not run on Spot")
    if UNKNOWN in (survives, interruption.possible, asks):
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


RULE = Rule(
    code="FLX024",
    severity=Severity.HIGH,
    judge_among=judge,
    why=(
        "Kueue's own preemption costs a Job nothing, but a reclaimed node is a pod failure: with backoffLimit 0 the first one ends the Job."
    ),
    remediation="Let the Job ignore pods with the condition DisruptionTarget; its program exits non-zero when it is interrupted.",
    link="https://kubernetes.io/docs/concepts/workloads/controllers/job/#pod-failure-policy",
    sources=("Run against kube-controller-manager 1.36.1: an evicted pod counts as failed: 1 without the policy, and as nothing with it.",),
    parameters=(Parameter("least-interruptions", 3, "How many interruptions a Job on Spot must survive."),),
)
