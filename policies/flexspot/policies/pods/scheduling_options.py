"""Scheduling options of pods, as written or with the additions of their queue's flavors; and the labels by which pods select nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from flexspot.capacity.catalog.accelerators import RESOURCES
from flexspot.capacity.catalog.node_labels import CAPACITY_TYPE_LABEL, GKE_SPOT_LABEL, QUEUE_LABEL
from flexspot.policies.inventory.node_offer import NodeOffer
from flexspot.policies.inventory.objects import ClusterQueue, LocalQueue, ResourceFlavor
from flexspot.policies.inventory.pod_gpus import REQUIRED_TERMS
from flexspot.policies.values.field import UNKNOWN, Field, Parts, Tri, Unknown, all_of, any_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from flexspot.policies.inventory.views import Inventory, PodSet


DEFAULT_QUEUE = "default"
"""Name of the LocalQueue that Kueue gives to jobs without a queue label (LocalQueueDefaulting, since 0.17)."""

WITHOUT_DEFAULT_QUEUE = ("Pod", "Deployment", "StatefulSet", "ReplicaSet", "DaemonSet")
"""Kinds that go to a queue only if they name it."""

SPOT_LABELS = {
    GKE_SPOT_LABEL: {"true"},
    "cloud.google.com/gke-preemptible": {"true"},
    "cloud.google.com/gke-provisioning": {"spot", "preemptible"},
    CAPACITY_TYPE_LABEL: {"spot"},
    "eks.amazonaws.com/capacityType": {"SPOT"},
}
"""Labels of Spot nodes, with the values that mean Spot."""

KEEPS_AWAY = ("NoSchedule", "NoExecute", "NO_SCHEDULE", "NO_EXECUTE")


@dataclass(frozen=True)
class SchedulingOption:
    """One way in which pods can be scheduled: as written, or with the additions of a flavor of their queue."""

    selector: Mapping[str, Field]
    tolerations: tuple[Field, ...]
    complete: bool
    """False if there may be more selectors or tolerations."""
    via: str = ""
    """The flavor, as messages name it; empty for the pods as written."""

    @property
    def names_spot(self) -> Tri:
        """True if the selector itself requires Spot nodes."""
        return any_of(self.selector[key].equals(*values) for key, values in SPOT_LABELS.items() if key in self.selector)


BY_SELECTOR, BY_AFFINITY = "its nodeSelector", "its node affinity"


def selects_spot(pods: PodSet) -> tuple[Tri, str]:
    """Return whether the pods' own fields require Spot nodes, wherever their queue leads, and the field that does."""
    selector = pods.pod.at("nodeSelector").parts()
    chosen = SchedulingOption(dict(selector.named), (), selector.complete).names_spot
    terms = pods.pod.at(*REQUIRED_TERMS).parts()
    required = terms.every(lambda term: term.at("matchExpressions").parts().any(_demands_spot))
    if chosen is True or required is not True:
        return chosen, BY_SELECTOR
    return True, BY_AFFINITY


def _demands_spot(expression: Field) -> Tri:
    key, values = expression.at("key").text(), expression.at("values").parts()
    if key is UNKNOWN:
        return UNKNOWN
    spot = SPOT_LABELS.get(key or "", set())
    return all_of([expression.at("operator").equals("In"), values.every(lambda each: each.equals(*spot))])


def spot_is_of_gke(pods: PodSet) -> bool:
    """Return whether the labels by which the pods require Spot nodes are GKE's."""
    affinities = (each for term in pods.pod.at(*REQUIRED_TERMS).parts().fields for each in term.at("matchExpressions").parts().fields)
    keys = [*(key for key, _ in pods.pod.at("nodeSelector").parts().named), *(each.at("key").text() for each in affinities)]
    return any(isinstance(key, str) and key in SPOT_LABELS and key.startswith("cloud.google.com/") for key in keys)


def queue_of(pods: PodSet, inventory: Inventory) -> Field:
    """Return the name of the LocalQueue of the pods' object. Absent if it has none, UNKNOWN if that depends on an unknown value."""
    named = pods.queue_labels.at(QUEUE_LABEL)
    if not named.absent:
        return named
    if pods.kind in WITHOUT_DEFAULT_QUEUE:
        return Field(None)
    queues = _local_queues(DEFAULT_QUEUE, pods.space, inventory)
    return queues[0].name if queues else Field(None)


def _local_queues(name: object, space: object, inventory: Inventory) -> list[LocalQueue]:
    """Return the LocalQueues with a name in a namespace. Empty if either is not known yet."""
    found = inventory.by("name and namespace", LocalQueue, lambda each: (each.name.text(), each.namespace))
    return [] if UNKNOWN in (name, space) else found.get((name, space), [])


def options_of(pods: PodSet, inventory: Inventory) -> list[SchedulingOption] | None:
    """Return the scheduling options of the pods. None if the queue, its ClusterQueue or a flavor is not in the input.

    Pods with the same selectors and tolerations in the same queue share one list.
    """
    return inventory.once("options", pods, lambda: _options(pods, inventory))


def _options(pods: PodSet, inventory: Inventory) -> list[SchedulingOption] | None:
    queue = queue_of(pods, inventory)
    flavors = None if queue.absent else _flavors(pods, queue, inventory)
    if flavors is None and not queue.absent:
        return None
    selector, tolerations = pods.pod.at("nodeSelector"), pods.pod.at("tolerations")
    terms = pods.pod.at(*REQUIRED_TERMS)
    # One template often creates hundreds of jobs, so equal ones in the same queue share one list.
    written = (repr(selector.value), repr(tolerations.value), repr(terms.value), pods.pod.partial)
    shape = (written, None if flavors is None else tuple(map(id, flavors)))
    return inventory.once(
        "options of a shape", shape, lambda: _options_through(selector.parts(), tolerations.parts(), terms.parts(), flavors)
    )


def _options_through(selector: Parts, tolerations: Parts, terms: Parts, flavors: list[ResourceFlavor] | None) -> list[SchedulingOption]:
    own = SchedulingOption(dict(selector.named), tolerations.fields, selector.complete and tolerations.complete)
    if flavors is None:
        return [own]
    options = (_through(flavor, own) for flavor in flavors if not _excludes(terms, flavor))
    return [option for option in options if option]


def _excludes(terms: Parts, flavor: ResourceFlavor) -> bool:
    """Return whether an affinity certainly excludes the flavor's nodes. Kueue then skips the flavor, as it does for other labels."""
    if not terms.fields or not terms.complete:
        return False
    # Its nodes may have labels that the flavor does not list.
    offer = NodeOffer(fixed=dict(flavor.spec.at("nodeLabels").parts().named), complete=False)
    return all(any(offer.meets(each) is False for each in term.at("matchExpressions").parts().fields) for term in terms.fields)


def _flavors(pods: PodSet, queue: Field, inventory: Inventory) -> list[ResourceFlavor] | None:
    name, space = queue.text(), pods.space
    if UNKNOWN in (space, name):
        return None
    return inventory.once("flavors of a queue", (name, space), lambda: _flavors_of(name, space, inventory))


def cluster_queues_of(pods: PodSet, queue: Field, inventory: Inventory) -> list[ClusterQueue]:
    """Return the ClusterQueue of the pods' LocalQueue, in a list. Empty if it is not in the input."""
    return _leads_to(queue.text(), pods.space, inventory)


def _leads_to(name: object, space: object, inventory: Inventory) -> list[ClusterQueue]:
    names = {each.spec.at("clusterQueue").text() for each in _local_queues(name, space, inventory)} - {UNKNOWN}
    by_name = inventory.by("name", ClusterQueue, lambda each: each.name.text())
    return [each for name in names for each in by_name.get(name, [])]


def _flavors_of(name: object, space: object, inventory: Inventory) -> list[ResourceFlavor] | None:
    queues = _leads_to(name, space, inventory)
    if len(queues) != 1:
        return None
    names = list(flavors_with_gpus(queues[0].spec))
    known = inventory.by("name", ResourceFlavor, lambda each: each.name.text())
    found = [known[name][-1] for name in names if name in known]
    return found if len(found) == len(names) else None


def flavors_with_gpus(spec: Field) -> Iterator[str | Unknown | None]:
    """Yield the names of the flavors whose GPUs a ClusterQueue or a Cohort provides. A name that is not known yet is UNKNOWN."""
    for group in spec.at("resourceGroups").parts().fields:
        if group.at("coveredResources").parts().any(lambda each: each.equals(*RESOURCES)) is not False:
            yield from (flavor.at("name").text() for flavor in group.at("flavors").parts().fields if not _has_no_gpus(flavor))


def _has_no_gpus(flavor: Field) -> bool:
    """Return whether a queue certainly gets no GPU from a flavor: its quota and its borrowing limit are 0.

    Queues have such a flavor for pods without GPUs.
    """
    ours = [each for each in flavor.at("resources").parts().fields if each.at("name").equals(*RESOURCES) is True]
    return bool(ours) and all(each.at(field).equals("0") is True for each in ours for field in ("nominalQuota", "borrowingLimit"))


def _through(flavor: ResourceFlavor, own: SchedulingOption) -> SchedulingOption | None:
    """Return the option with a flavor's additions. None if Kueue would skip the flavor.

    Kueue adds its nodeLabels as selectors, and its tolerations. It skips a flavor whose nodeTaints the pods do not tolerate.
    """
    labels, added = flavor.spec.at("nodeLabels").parts(), flavor.spec.at("tolerations").parts()
    tolerations = (*own.tolerations, *added.fields)
    for taint in flavor.spec.at("nodeTaints").parts().fields:
        blocks = taint.at("effect").equals(*KEEPS_AWAY)
        if blocks is True and own.complete and not any(tolerates(each, taint) is not False for each in tolerations):
            return None
    for key, value in labels.named:
        if key in own.selector and value.equals(str(own.selector[key].text())) is False and own.selector[key].known:
            return None
    name = flavor.name.text()
    return SchedulingOption(
        {**own.selector, **dict(labels.named)},
        tolerations,
        own.complete and labels.complete and added.complete,
        f"flavor {name}" if isinstance(name, str) else "a flavor",
    )


def tolerates(toleration: Field, taint: Field) -> Tri:
    """Return whether a toleration tolerates the taint `{key, value, effect}`."""
    key, effect = toleration.at("key"), toleration.at("effect")
    written = taint.at("effect").text()
    spelled = {"NO_SCHEDULE": "NoSchedule", "NO_EXECUTE": "NoExecute"}.get(str(written), written)
    same_effect = True if effect.absent else (UNKNOWN if spelled is UNKNOWN else effect.equals(str(spelled)))
    exists = toleration.at("operator").equals("Exists")
    if key.absent:
        return all_of([exists, same_effect])
    names = UNKNOWN if taint.at("key").text() is UNKNOWN else key.equals(str(taint.at("key").text()))
    value, wanted = toleration.at("value").text(), taint.at("value").text()
    same_value = UNKNOWN if UNKNOWN in (value, wanted) else (value or "") == (wanted or "")
    return all_of([names, same_effect, any_of([exists, same_value])])


_OF_THE_MACHINE = (
    *("kubernetes.io/", "beta.kubernetes.io/", "node.kubernetes.io/", "topology.kubernetes.io/", "failure-domain.", "topology.k8s.aws/"),
    *("nvidia.com/", "cloud.google.com/gke-accelerator", "cloud.google.com/gke-gpu", "cloud.google.com/machine-family"),
    *("karpenter.k8s.aws/instance-", "eks.amazonaws.com/instance-"),
)
"""Prefixes of labels about the machine or its location, which never mention its capacity type."""


def affinities(pods: PodSet, *, preferred: bool) -> Iterator[Field]:
    """Yield the required expressions of the pods' node affinity and, if `preferred`, the preferred ones."""
    terms = list(pods.pod.at(*REQUIRED_TERMS).parts().fields)
    if preferred:
        listed = pods.pod.at(*REQUIRED_TERMS[:2], "preferredDuringSchedulingIgnoredDuringExecution").parts()
        terms += [each.at("preference") for each in listed.fields]
    for term in terms:
        yield from term.at("matchExpressions").parts().fields


def may_choose_capacity(pods: PodSet, option: SchedulingOption) -> bool:
    """Return whether the pods select nodes by a label that may depend on the capacity type: any but those of the machine."""
    by_affinity = (str(each.at("key").text()) for each in affinities(pods, preferred=True))
    return any(not key.startswith(_OF_THE_MACHINE) for key in (*option.selector, *by_affinity))
