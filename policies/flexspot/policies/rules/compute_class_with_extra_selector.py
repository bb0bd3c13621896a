"""Pods that select one of the platform's compute classes and also capacity by one of GKE's own labels."""

from collections.abc import Iterator

from flexspot.capacity.catalog.node_labels import COMPUTE_CLASS_LABEL, GKE_SPOT_LABEL
from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, not_applicable, undecided
from flexspot.policies.inventory.objects import ResourceFlavor
from flexspot.policies.inventory.views import Inventory, PodSet
from flexspot.policies.judging import Cloud, Parameter, Parameters, Rule
from flexspot.policies.pods.scheduling_options import affinities, options_of
from flexspot.policies.values.field import UNKNOWN, Field

Selection = tuple[str, dict[str, "Field"], bool]
"""Where it stands, the labels, and whether they are all."""

EXTRA = "{where} selects {label}={name} and {extra} as well, which GKE refuses or never finds a node for"
EXTRA_REMEDY = "take {extra} away, and let the priorities of ComputeClass {name} say which capacity comes first"


def judge(judged: PodSet | ResourceFlavor, parameters: Parameters, inventory: Inventory) -> Outcome:
    """GKE's own classes (Performance, Accelerator) take such labels; a class of the platform's has its capacity in its priorities."""
    selections = list(_selections(judged, inventory))
    extra, built_in = parameters.texts("labels"), parameters.texts("built-in-classes")
    hangs = chosen = False
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
        hangs |= not complete or (name is UNKNOWN and bool(found))
    if hangs:
        return undecided("the labels by which it selects nodes are not known yet")
    return PASSES if chosen else not_applicable("it selects no compute class")


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


RULE = Rule(
    code="FLX042",
    severity=Severity.HIGH,
    clouds=(Cloud.GKE,),
    judge_among=judge,
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
