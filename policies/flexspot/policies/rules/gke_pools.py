"""Rules about GKE's flex-start node pools and compute classes."""

from collections.abc import Iterator

from flexspot.capacity.catalog.node_labels import COMPUTE_CLASS_LABEL, GKE_SPOT_LABEL
from flexspot.capacity.values.verdict import NOT_APPLICABLE, PASSES, Outcome, Severity, fails, undecided
from flexspot.policies.inventory.objects import ResourceFlavor
from flexspot.policies.inventory.views import GkeNodePool, Inventory, PodSet
from flexspot.policies.judging import Cloud, Parameter, Parameters, Rule
from flexspot.policies.pods.scheduling_options import affinities, options_of
from flexspot.policies.values.field import UNKNOWN, Field, Tri, all_of, negated


@Rule(
    code="FLX013",
    severity=Severity.HIGH,
    clouds=(Cloud.GKE,),
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
def flex_start_pool_misconfigured(view: GkeNodePool, parameters: Parameters) -> Outcome:
    """A flex-start pool with settings that flex-start does not support.

    Checks each setting that flex-start requires and reports the first that certainly differs.
    """
    pool, node = view.pool, view.pool.at("nodeConfig")
    queued = pool.at("queuedProvisioning", "enabled").equals("true")
    flex = node.at("flexStart").equals("true")
    if flex is False:
        return NOT_APPLICABLE
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


Selection = tuple[str, dict[str, "Field"], bool]


"""Field path for the message, the selected labels, and whether they are complete."""


EXTRA = "{where} selects {label}={name} and {extra} as well, which GKE refuses or never finds a node for"


EXTRA_REMEDY = "remove {extra}; the priorities of ComputeClass {name} decide which capacity comes first"


@Rule(
    code="FLX042",
    severity=Severity.HIGH,
    clouds=(Cloud.GKE,),
    why="The two selections conflict: such pods are refused, or wait for a node that no priority of the class creates.",
    remediation="Select the compute class alone; Spot, flex-start and machine families belong in its priorities.",
    link="https://docs.cloud.google.com/kubernetes-engine/docs/concepts/about-custom-compute-classes",
    sources=("https://github.com/GoogleCloudPlatform/kubernetes-engine-samples/pull/1570",),
    parameters=(
        Parameter(
            "labels",
            (
                *(GKE_SPOT_LABEL, "cloud.google.com/gke-preemptible", "cloud.google.com/gke-provisioning"),
                *("cloud.google.com/gke-flex-start", "cloud.google.com/machine-family"),
            ),
            "GKE labels that a compute class sets itself.",
        ),
        Parameter(
            "built-in-classes",
            ("Accelerator", "Balanced", "Performance", "Scale-Out", "autopilot", "autopilot-arm", "autopilot-spot"),
            "GKE's own compute classes, which accept such labels.",
        ),
    ),
)
def compute_class_with_extra_selector(judged: PodSet | ResourceFlavor, parameters: Parameters, inventory: Inventory) -> Outcome:
    """Pods that select one of the platform's compute classes and also capacity by one of GKE's own labels.

    GKE's own classes (Performance, Accelerator) accept such labels. The platform's classes select capacity by their priorities.
    """
    selections = list(_selections(judged, inventory))
    extra, built_in = parameters.texts("labels"), parameters.texts("built-in-classes")
    undetermined = chosen = False
    for where, labels, complete in selections:
        name = labels[COMPUTE_CLASS_LABEL].text() if COMPUTE_CLASS_LABEL in labels else None
        found = sorted(key for key in labels if key in extra)
        if found and isinstance(name, str) and name not in built_in:
            return fails(
                EXTRA.format(where=where, label=COMPUTE_CLASS_LABEL, name=name, extra=found[0]),
                EXTRA_REMEDY.format(extra=found[0], name=name),
                where.partition(" ")[0],
            )
        chosen |= isinstance(name, str)
        undetermined |= not complete or (name is UNKNOWN and bool(found))
    if undetermined:
        return undecided("the labels by which it selects nodes are not known yet")
    return PASSES if chosen else NOT_APPLICABLE


def _selections(judged: PodSet | ResourceFlavor, inventory: Inventory) -> Iterator[Selection]:
    if isinstance(judged, ResourceFlavor):
        labels = judged.spec.at("nodeLabels").parts()
        yield "spec.nodeLabels", dict(labels.named), labels.complete
        return
    demanded = [each for each in affinities(judged, preferred=False) if each.at("operator").text() in {"In", "Exists"}]
    by_affinity = {str(each.at("key").text()): next(iter(each.at("values").parts().fields), each) for each in demanded}
    own = judged.pod.at("nodeSelector").parts()
    yield f"{judged.where}.nodeSelector", {**by_affinity, **dict(own.named)}, own.complete
    for way in options_of(judged, inventory) or ():
        if way.via:
            yield f"{judged.where}.nodeSelector with {way.via}", {**by_affinity, **way.selector}, True
