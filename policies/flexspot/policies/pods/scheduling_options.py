"""Scheduling options of pods: as they are written, or with what the flavors of their queue add; and labels by which they choose nodes."""

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
"""Kueue gives a namespace's jobs without a label to its LocalQueue of this name (LocalQueueDefaulting, since 0.17)."""

WITHOUT_DEFAULT_QUEUE = ("Pod", "Deployment", "StatefulSet", "ReplicaSet", "DaemonSet")
"""Kinds that go to a queue only if they name it."""

SPOT_LABELS = {
    GKE_SPOT_LABEL: {"true"},
    "cloud.google.com/gke-preemptible": {"true"},
    "cloud.google.com/gke-provisioning": {"spot", "preemptible"},
    CAPACITY_TYPE_LABEL: {"spot"},
    "eks.amazonaws.com/capacityType": {"SPOT"},
}
"""Labels of nodes that the cloud takes back at will, with the values that say so."""

KEEPS_AWAY = ("NoSchedule", "NoExecute", "NO_SCHEDULE", "NO_EXECUTE")


@dataclass(frozen=True)
class SchedulingOption:
    """One way in which pods can be scheduled: as they are written, or with what the flavor of a queue adds. `via` says which."""

    selector: Mapping[str, Field]
    tolerations: tuple[Field, ...]
    complete: bool
    via: str = ""

    @property
    def names_spot(self) -> Tri:
        """Whether the selector alone demands nodes that the cloud takes back."""
        return any_of(self.selector[key].equals(*values) for key, values in SPOT_LABELS.items() if key in self.selector)


BY_SELECTOR, BY_AFFINITY = "its nodeSelector", "its node affinity"


def selects_spot(pods: PodSet) -> tuple[Tri, str]:
    """Whether the pods' own fields demand nodes that the cloud takes back, wherever a queue leads them besides; and which field does."""
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
    """Whether the labels by which the pods demand such nodes are GKE's."""
    affinities = (each for term in pods.pod.at(*REQUIRED_TERMS).parts().fields for each in term.at("matchExpressions").parts().fields)
    keys = [*(key for key, _ in pods.pod.at("nodeSelector").parts().named), *(each.at("key").text() for each in affinities)]
    return any(isinstance(key, str) and key in SPOT_LABELS and key.startswith("cloud.google.com/") for key in keys)


def queue_of(pods: PodSet, inventory: Inventory) -> Field:
    """The name of the LocalQueue that the pods' object goes to; absent for none, UNKNOWN where that hangs on something unknown."""
    named = pods.queue_labels.at(QUEUE_LABEL)
    if not named.absent:
        return named
    if pods.kind in WITHOUT_DEFAULT_QUEUE:
        return Field(None)
    queues = _local_queues(DEFAULT_QUEUE, pods.space, inventory)
    return queues[0].name if queues else Field(None)


def _local_queues(name: object, space: object, inventory: Inventory) -> list[LocalQueue]:
    """The LocalQueues of a name in a namespace; none where either is not known yet."""
    found = inventory.by("name and namespace", LocalQueue, lambda each: (each.name.text(), each.namespace))
    return [] if UNKNOWN in (name, space) else found.get((name, space), [])


def options_of(pods: PodSet, inventory: Inventory) -> list[SchedulingOption] | None:
    """The scheduling options of the pods; None where the queue, or what it leads to, is not among what was given.

    Pods that select and tolerate the same, in the same queue, get the same list.
    """
    return inventory.once("options", pods, lambda: _options(pods, inventory))


def _options(pods: PodSet, inventory: Inventory) -> list[SchedulingOption] | None:
    queue = queue_of(pods, inventory)
    flavors = None if queue.absent else _flavors(pods, queue, inventory)
    if flavors is None and not queue.absent:
        return None
    selector, tolerations = pods.pod.at("nodeSelector"), pods.pod.at("tolerations")
    terms = pods.pod.at(*REQUIRED_TERMS)
    # Jobs come by the hundred from one template: those that say the same, in the same queue, share one list.
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
    """Whether the nodes that an affinity requires are surely none of the flavor's: Kueue passes over it, as over one with another label."""
    if not terms.fields or not terms.complete:
        return False
    # Its nodes have other labels besides.
    offer = NodeOffer(fixed=dict(flavor.spec.at("nodeLabels").parts().named), complete=False)
    return all(any(offer.meets(each) is False for each in term.at("matchExpressions").parts().fields) for term in terms.fields)


def _flavors(pods: PodSet, queue: Field, inventory: Inventory) -> list[ResourceFlavor] | None:
    name, space = queue.text(), pods.space
    if UNKNOWN in (space, name):
        return None
    return inventory.once("flavors of a queue", (name, space), lambda: _flavors_of(name, space, inventory))


def cluster_queues_of(pods: PodSet, queue: Field, inventory: Inventory) -> list[ClusterQueue]:
    """The ClusterQueues that the pods' LocalQueue leads to: one, unless it is not among what was given."""
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
    """The names of the flavors from which a ClusterQueue or a Cohort gives GPUs; a name that is not known yet is UNKNOWN."""
    for group in spec.at("resourceGroups").parts().fields:
        if group.at("coveredResources").parts().any(lambda each: each.equals(*RESOURCES)) is not False:
            yield from (flavor.at("name").text() for flavor in group.at("flavors").parts().fields if not _gives_none(flavor))


def _gives_none(flavor: Field) -> bool:
    """Whether a queue surely gets no GPU by a flavor: it owns none and borrows none. Pods without GPUs have such a flavor beside others."""
    ours = [each for each in flavor.at("resources").parts().fields if each.at("name").equals(*RESOURCES) is True]
    return bool(ours) and all(each.at(field).equals("0") is True for each in ours for field in ("nominalQuota", "borrowingLimit"))


def _through(flavor: ResourceFlavor, own: SchedulingOption) -> SchedulingOption | None:
    """Kueue adds a flavor's nodeLabels as selectors, and its tolerations.

    It passes over a flavor whose nodeTaints the pods do not tolerate.
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
    """Whether a toleration is one of `{key, value, effect}`."""
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
"""Beginnings of labels that say what a machine is or where it stands, and not how it is paid for."""


def affinities(pods: PodSet, *, preferred: bool) -> Iterator[Field]:
    """The expressions of the pods' node affinity that must hold, and if wished those that had better hold."""
    terms = list(pods.pod.at(*REQUIRED_TERMS).parts().fields)
    if preferred:
        listed = pods.pod.at(*REQUIRED_TERMS[:2], "preferredDuringSchedulingIgnoredDuringExecution").parts()
        terms += [each.at("preference") for each in listed.fields]
    for term in terms:
        yield from term.at("matchExpressions").parts().fields


def may_choose_capacity(pods: PodSet, option: SchedulingOption) -> bool:
    """Whether a label that they choose by may tell how the node is paid for: any that is not known to be of the machine."""
    by_affinity = (str(each.at("key").text()) for each in affinities(pods, preferred=True))
    return any(not key.startswith(_OF_THE_MACHINE) for key in (*option.selector, *by_affinity))
