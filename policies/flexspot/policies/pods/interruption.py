"""What ends the work of pods: the cloud, that takes their nodes, and limits for work that nobody attends to."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from flexspot.capacity.catalog.node_labels import GKE_QUEUED_LABEL
from flexspot.policies.inventory.objects import KubernetesObject
from flexspot.policies.inventory.reading.gke import FLEX_START_LABEL, PROVISIONING_LABEL
from flexspot.policies.inventory.views import GpuPool, Inventory, PodSet, Pool
from flexspot.policies.pods.placement import PoolMatch, may_be_provisioned, pool_matches
from flexspot.policies.pods.scheduling_options import BY_AFFINITY, BY_SELECTOR, SchedulingOption, options_of, selects_spot
from flexspot.policies.values.field import UNKNOWN, Field, Tri, Unknown, all_of, any_of, negated

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from decimal import Decimal


@dataclass(frozen=True)
class SpotExposure:
    """`possible` is whether pods may run on Spot nodes. `pools` are those of which that is certain; `by` says where it shows.

    `notices` are the seconds that pods have on these pools, each number once.
    """

    possible: Tri
    pools: tuple[GpuPool, ...]
    by: str
    notices: tuple[Decimal | Unknown | None, ...] = ()


def interruption_of(pods: PodSet, inventory: Inventory) -> SpotExposure:
    """What can be said of pods that ask for GPUs.

    What the pods themselves select is enough, wherever a queue leads them besides. Else the pools must be among what was given: they are
    Spot or they are not.
    """
    return inventory.once("interruption of pods", pods, lambda: _interruption_of(pods, inventory))


def _interruption_of(pods: PodSet, inventory: Inventory) -> SpotExposure:
    options = options_of(pods, inventory)
    if options is None:
        selects, field = selects_spot(pods)
        if selects is True:
            return SpotExposure(True, (), f"{field} names Spot nodes")
        return SpotExposure(UNKNOWN, (), "its queue, or what the queue leads to, is not in the input")
    found = pool_matches(pods, inventory)
    shared = inventory.once("interruption", (id(options), id(found)), lambda: _interruption(options, found, inventory))
    if shared.possible is True or selects_spot(pods) != (True, BY_AFFINITY):
        return shared
    return replace(shared, possible=True, by=f"{BY_AFFINITY} names Spot nodes")


def _interruption(options: list[SchedulingOption], found: list[PoolMatch], inventory: Inventory) -> SpotExposure:
    answers: list[Tri] = [option.names_spot for option in options]
    by = next((f"{option.via or BY_SELECTOR} names Spot nodes" for option in options if option.names_spot is True), "")
    pools: list[GpuPool] = []
    for pool_match in found:
        if pool_match.possible is False:
            continue
        if pool_match.pool.spot is True and pool_match.possible is True:
            pools.append(pool_match.pool)
        answers.append(False if pool_match.pool.spot is False else (pool_match.pool.spot if pool_match.possible is True else UNKNOWN))
    answers += [UNKNOWN for option in options if may_be_provisioned(option, inventory)]
    if not inventory.tells(Pool):
        answers.append(UNKNOWN)
    by = by or next((f"it may run on {pool.identity.described}, which is Spot" for pool in pools), "where it runs is not known")
    return SpotExposure(any_of(answers), tuple(pools), by, tuple(dict.fromkeys(pool.notice_seconds for pool in pools)))


def ignores_interruptions(job: Field) -> Tri:
    """Whether a Job counts a pod that an interruption ended neither as failed nor as done, so that it goes on with another."""

    def ignores(entry: Field) -> Tri:
        of_disruption = entry.at("onPodConditions").parts().any(lambda each: each.at("type").equals("DisruptionTarget"))
        return all_of([entry.at("action").equals("Ignore"), of_disruption])

    return job.at("podFailurePolicy", "rules").parts().any(ignores)


LONGEST_SECONDS = 604_800
"""Seven days: the longest run that flex-start gives a node, which it also gives where nobody says less.

Source: GoogleCloudPlatform/cluster-autoscaler (2026-08).
"""


NAMES_FLEX = "{via} names flex-start nodes"
ON_FLEX = "it may run on {pool}, which is flex-start"


def flex_start_of(pods: PodSet, inventory: Inventory) -> tuple[Tri, str]:
    """Whether pods that ask for GPUs may run there, and where it shows. A selector that names such nodes is enough."""
    options = options_of(pods, inventory)
    if options is None:
        return UNKNOWN, "its queue, or what the queue leads to, is not in the input"
    found = pool_matches(pods, inventory)
    return inventory.once("flex-start", (id(options), id(found)), lambda: _flex_start(options, found, inventory))


def _flex_start(options: list[SchedulingOption], found: list[PoolMatch], inventory: Inventory) -> tuple[Tri, str]:
    answers: list[tuple[Tri, str]] = [(_names_flex(option), NAMES_FLEX.format(via=option.via or "its nodeSelector")) for option in options]
    answers += [(all_of([each.possible, is_flex_start(each.pool)]), ON_FLEX.format(pool=each.pool.identity.described)) for each in found]
    elsewhere = [option for option in options if option.names_spot is not True]
    unknown = [option for option in elsewhere if may_be_provisioned(option, inventory)] if inventory.tells(Pool) else elsewhere
    answers += [(UNKNOWN, "where it runs is not known") for _ in unknown]
    possible = any_of(answer for answer, _ in answers)
    return possible, next((by for answer, by in answers if answer is possible), "")


def is_flex_start(pool: Pool) -> Tri:
    """Whether a pool's nodes are of flex-start; those that come by request alone, behind the taint of queued capacity, are."""
    marked = pool.offer.fixed.get(FLEX_START_LABEL)
    return any_of([marked.equals("true") if marked else False, *(taint.at("key").equals(GKE_QUEUED_LABEL) for taint in pool.taints.fields)])


def _names_flex(option: SchedulingOption) -> Tri:
    named = [
        option.selector[key].equals(value)
        for key, value in ((FLEX_START_LABEL, "true"), (PROVISIONING_LABEL, "flex-start"))
        if key in option.selector
    ]
    return all_of([any_of(named), negated(option.names_spot)])


_CONTROLLER = "notebook-controller"
"""In the name of what runs Kubeflow's Notebooks, and culls them if it is told to."""


def is_interactive(pods: PodSet, words: tuple[str, ...]) -> bool:
    """Whether its kind, its name, an image or what a container is told to run holds one of `words`."""
    told = [pods.kind, pods.identity.name]
    for _, container in pods.containers:
        fields = (container.at("image"), *container.at("command").parts().fields, *container.at("args").parts().fields)
        told += [str(each.text()) for each in fields]
    return any(word in text.lower() for text in told for word in words)


def limits_itself(pods: PodSet, limits: tuple[str, ...]) -> Tri:
    """Whether an argument, the name of a variable, an annotation or a label holds one of `limits`, or the pod has a deadline."""
    if not pods.pod.at("activeDeadlineSeconds").absent:
        return True
    if any(_means(text, limits) for text in _texts(pods)):
        return True
    open_ended = [*pods.annotations, pods.labels, pods.template_labels, *(each.at("args") for _, each in pods.containers)]
    return False if all(each.known for each in open_ended) else UNKNOWN


def is_ended_by_others(pods: PodSet, limits: tuple[str, ...], inventory: Inventory) -> Tri:
    """Whether something else ends it: for a Notebook its controller, for a Deployment a scaler that knows zero, for a Pod a culler.

    UNKNOWN where the run has nothing of the sort, so that it may be installed elsewhere.
    """
    if inventory.once("culler", limits, lambda: any(_culls(each, limits) for each in inventory.views)) and pods.kind in {"Notebook", "Pod"}:
        return True
    scaled = inventory.once("scaled to zero", None, lambda: _scaled(inventory))
    if scaled.get((pods.identity.namespace, pods.identity.name)):
        return True
    controllers = inventory.once(
        "notebook controllers", None, lambda: [each for each in inventory.of(PodSet) if _CONTROLLER in each.identity.name]
    )
    tells = controllers if pods.kind == "Notebook" else scaled
    return False if tells or inventory.closed else UNKNOWN


def _scaled(inventory: Inventory) -> Mapping[tuple[str, object], bool]:
    """Namespace and name of what KEDA scales, with whether down to nothing, as it does where nobody says otherwise."""
    scalers = [each for each in inventory.of(KubernetesObject) if each.identity.kind in {"ScaledObject", "HTTPScaledObject"}]
    return {
        (each.identity.namespace, each.spec.at("scaleTargetRef", "name").text()): (each.spec.at("minReplicaCount").number() or 0) == 0
        for each in scalers
        if each.spec.at("minReplicaCount").known
    }


def _culls(view: object, limits: tuple[str, ...]) -> bool:
    if isinstance(view, PodSet):
        return "culler" in view.identity.name or any(_means(name, limits) for name in _variables(view))
    if isinstance(view, KubernetesObject) and view.identity.kind == "ConfigMap":
        return any(_means(key, limits) for key, _ in view.fields.at("data").parts().named)
    return False


def _texts(pods: PodSet) -> Iterator[str]:
    for mapping in (*pods.annotations, pods.labels, pods.template_labels):
        yield from (key for key, _ in mapping.parts().named)
    for _, container in pods.containers:
        yield from (str(each.text()) for field in ("command", "args") for each in container.at(field).parts().fields)
    yield from _variables(pods)


def _variables(pods: PodSet) -> Iterator[str]:
    for _, container in pods.containers:
        yield from (str(each.at("name").text()) for each in container.at("env").parts().fields)


def _means(text: str, limits: tuple[str, ...]) -> bool:
    plain = re.sub(r"[-_]", "", text.lower())
    return any(re.sub(r"[-_]", "", limit.lower()) in plain for limit in limits)
