"""What ends work that somebody works with by hand when nobody does: a limit of its own, or something in the cluster that culls."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from policies.inventory.objects import KubernetesObject
from policies.inventory.pod_gpus import containers
from policies.inventory.views import PodSet
from policies.values.unknown import UNKNOWN, Tri

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from policies.inventory.views import Inventory

_CONTROLLER = "notebook-controller"
"""In the name of what runs Kubeflow's Notebooks, and culls them if it is told to."""


def is_interactive(pods: PodSet, words: tuple[str, ...]) -> bool:
    """Whether its kind, its name, an image or what a container is told to run holds one of `words`."""
    told = [pods.kind, pods.identity.name]
    for _, container in containers(pods.pod):
        fields = (container.at("image"), *container.at("command").parts().fields, *container.at("args").parts().fields)
        told += [str(each.text()) for each in fields]
    return any(word in text.lower() for text in told for word in words)


def limits_itself(pods: PodSet, limits: tuple[str, ...]) -> Tri:
    """Whether an argument, the name of a variable, an annotation or a label holds one of `limits`, or the pod has a deadline."""
    if not pods.pod.at("activeDeadlineSeconds").absent:
        return True
    if any(_means(text, limits) for text in _texts(pods)):
        return True
    open_ended = [*pods.annotations, pods.labels, pods.template_labels, *(each.at("args") for _, each in containers(pods.pod))]
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
    for _, container in containers(pods.pod):
        yield from (str(each.text()) for field in ("command", "args") for each in container.at(field).parts().fields)
    yield from _variables(pods)


def _variables(pods: PodSet) -> Iterator[str]:
    for _, container in containers(pods.pod):
        yield from (str(each.at("name").text()) for each in container.at("env").parts().fields)


def _means(text: str, limits: tuple[str, ...]) -> bool:
    plain = re.sub(r"[-_]", "", text.lower())
    return any(re.sub(r"[-_]", "", limit.lower()) in plain for limit in limits)
