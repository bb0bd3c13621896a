"""A flex-start pool with settings that flex-start does not support."""

from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, not_applicable, undecided
from flexspot.policies.inventory.views import GkeNodePool
from flexspot.policies.judging import Cloud, Parameter, Parameters, Rule
from flexspot.policies.values.field import UNKNOWN, Field, Tri, all_of, negated


def judge(view: GkeNodePool, parameters: Parameters) -> Outcome:
    """Each setting that flex-start requires; the first that provably differs is reported."""
    pool, node = view.pool, view.pool.at("nodeConfig")
    queued = pool.at("queuedProvisioning", "enabled").equals("true")
    flex = node.at("flexStart").equals("true")
    if flex is False:
        return not_applicable("not a flex-start pool")
    strategy, run = pool.at("upgradeSettings", "strategy"), node.at("maxRunDuration")
    checks: list[tuple[Tri, str, str]] = [
        (node.at("spot").equals("true"), "nodeConfig.spot", "flex-start capacity is not Spot; remove it"),
        (node.at("preemptible").equals("true"), "nodeConfig.preemptible", "flex-start capacity is not preemptible; remove it"),
        (
            negated(node.at("reservationAffinity", "consumeReservationType").equals("NO_RESERVATION")),
            "nodeConfig.reservationAffinity",
            "flex-start uses no reservation; set it to {consumeReservationType: NO_RESERVATION}",
        ),
        (pool.at("management", "autoRepair").equals("true"), "management.autoRepair", "flex-start nodes are not repaired; set it to false"),
        (
            not strategy.absent if strategy.known else UNKNOWN,
            "upgradeSettings.strategy",
            "flex-start pools are upgraded only as SHORT_LIVED, which GKE sets and the provider refuses; remove upgradeSettings",
        ),
        (_positive(pool.at("initialNodeCount")), "initialNodeCount", "flex-start pools start with no nodes; set it to 0"),
        (_positive(pool.at("nodeCount")), "nodeCount", "flex-start pools scale from 0; remove it and set autoscaling"),
        (pool.at("autoscaling").absent, "autoscaling", "flex-start pools scale with the work; set totalMaxNodeCount"),
        (
            all_of([queued, not run.absent if run.known else UNKNOWN]),
            "nodeConfig.maxRunDuration",
            "with queued provisioning each request states its run time, so the pool must not set one; remove it",
        ),
        (
            _too_long(run, parameters),
            "nodeConfig.maxRunDuration",
            "flex-start nodes run for 10 minutes to 7 days; set it to 604800s or less",
        ),
    ]
    if flex is True:
        for broken, field, why in checks:
            if broken is True:
                fact, _, remedy = why.partition("; ")
                return fails(f"{view.where}{field}: {fact}", f"{view.where}{field}: {remedy}", f"{view.where}{field}")
    if flex is UNKNOWN or any(broken is UNKNOWN for broken, _, _ in checks):
        return undecided("whether it is a flex-start pool, or one of its settings, is not known yet")
    return PASSES


def _positive(count: Field) -> Tri:
    number = count.number()
    return UNKNOWN if number is UNKNOWN else number is not None and number > 0


def _too_long(run: Field, parameters: Parameters) -> Tri:
    text = run.text()
    if text is UNKNOWN or text is None:
        return UNKNOWN if text is UNKNOWN else False
    seconds = text.removesuffix("s")
    least, most = parameters.number("least-seconds"), parameters.number("most-seconds")
    return not (seconds.isdecimal() and least <= int(seconds) <= most)


RULE = Rule(
    code="FLX013",
    severity=Severity.HIGH,
    clouds=(Cloud.GKE,),
    judge=judge,
    why="GKE refuses some of these when the pool is created, after the cluster; others prevent it from ever getting a node.",
    remediation="Configure a flex-start pool as GKE documents it: no reservation, no repair, no upgrade settings, autoscaled from 0 nodes.",
    link="https://docs.cloud.google.com/kubernetes-engine/docs/how-to/dws-flex-start-training",
    sources=(
        "https://github.com/terraform-google-modules/terraform-google-kubernetes-engine/issues/2352",
        "terraform-provider-google-beta 8.0.0: upgrade_settings.strategy is SURGE or BLUE_GREEN.",
        "GoogleCloudPlatform/cluster-autoscaler (2026-08): run times of flex-start, 10 minutes to 7 days.",
    ),
    parameters=(
        Parameter("least-seconds", 600, "The shortest maxRunDuration that flex-start accepts, in seconds."),
        Parameter("most-seconds", 604_800, "The longest maxRunDuration that flex-start accepts, in seconds."),
    ),
)
