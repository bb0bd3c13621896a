"""What the priority of pods does to them: who makes a node for them, and who may take theirs."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from policies.inventory.objects import ComputeClass, KarpenterController, KarpenterNodePool, PriorityClass
from policies.inventory.views import PodSet, Pool
from policies.values.unknown import UNKNOWN, Tri

if TYPE_CHECKING:
    from collections.abc import Mapping

    from policies.inventory.views import Inventory
    from policies.values.unknown import Unknown

SCALE_UP_CUT_OFF = -10
"""Below it the cluster autoscaler makes no node; capacity.catalog.workload_classes has it too, in models that lint never loads."""


def is_of_pods(priority: PriorityClass) -> bool:
    """Whether it is Kubernetes' own PriorityClass, and none of Kubernetes' system classes."""
    return priority.group == "scheduling.k8s.io" and not priority.identity.name.startswith("system-")


def value_of(priority: PriorityClass) -> Decimal | Unknown:
    """The priority that it gives; 0 where none is written."""
    value = priority.fields.at("value")
    number = value.number()
    return Decimal(0) if number is None else number


def below_scale_up(priority: PriorityClass, inventory: Inventory) -> Tri:
    """Whether no autoscaler makes a node for its pods. Karpenter knows no such line, and a run that has no pools does not say who does."""
    value = value_of(priority)
    if value is UNKNOWN:
        return UNKNOWN
    others = [
        pool for pool in inventory.of(Pool) if pool.identity.kind != "NodePool" or not pool.identity.api_version.startswith("karpenter.sh")
    ]
    if value >= SCALE_UP_CUT_OFF or others or inventory.of(ComputeClass):
        return value < SCALE_UP_CUT_OFF
    karpenter = inventory.of(KarpenterNodePool) or inventory.of(KarpenterController)
    return False if karpenter else inventory.closed or UNKNOWN


def defaults(inventory: Inventory) -> tuple[PriorityClass, ...]:
    """The classes that pods without one get."""

    def found() -> tuple[PriorityClass, ...]:
        classes = (each for each in inventory.of(PriorityClass) if is_of_pods(each))
        return tuple(each for each in classes if each.fields.at("globalDefault").equals("true") is True)

    return inventory.once("default priority classes", None, found)


def users_of(priority: PriorityClass, inventory: Inventory) -> list[PodSet]:
    """The pod sets that name the class."""

    def index() -> Mapping[object, list[PodSet]]:
        found: dict[object, list[PodSet]] = {}
        for pods in inventory.of(PodSet):
            found.setdefault(pods.pod.at("priorityClassName").text(), []).append(pods)
        return found

    return inventory.once("pods by priority class", None, index).get(priority.name.text(), [])
