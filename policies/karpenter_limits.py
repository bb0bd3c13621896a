"""The arithmetic of a Karpenter NodePool's limits: which machines it may launch, and how many GPUs the other limits leave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from capacity.catalog.node_labels import GPU_RESOURCE
from capacity.catalog.unreachable_limits import NodeCeilings
from policies.gpu_machines import gpu_selection
from policies.node_offer import allowed_machines
from policies.rule import not_applicable, undecided
from policies.unknown import UNKNOWN, Unknown

if TYPE_CHECKING:
    from decimal import Decimal

    from capacity.values.verdict import Outcome
    from policies.field import Field
    from policies.machine_catalog import CatalogMachine

_MIB = 1024 * 1024
_BESIDE_GPUS = ("nodes", "cpu", "memory")
GPU_COUNT_LABELS = ("karpenter.k8s.aws/instance-gpu-count", "eks.amazonaws.com/instance-gpu-count")


@dataclass(frozen=True)
class Machines:
    """The GPU machines that requirements leave. Unless `complete`, there are others, which the catalog does not have."""

    gpus: tuple[CatalogMachine, ...]
    complete: bool


def requirements_of(spec: Field) -> tuple[Field, ...] | Unknown:
    """The requirements, once all of what they say is known."""
    listed = spec.at("template", "spec", "requirements").parts()
    for each in listed.fields:
        values = each.at("values").parts()
        if UNKNOWN in (each.at("key").value, each.at("operator").value, *(value.value for value in values.fields)) or not values.complete:
            return UNKNOWN
    return listed.fields if listed.complete else UNKNOWN


def gpu_machines(requirements: tuple[Field, ...]) -> Machines:
    """The machines with GPUs that Karpenter may launch for a pod that asks for one."""
    left, complete = allowed_machines(requirements)
    return Machines(tuple(machine for machine in left if machine.gpu), complete)


def names_gpus(requirements: tuple[Field, ...]) -> bool:
    """Whether the requirements name GPU machines, and none of them rules GPUs out."""
    selections = [gpu_selection(each) for each in requirements]
    return any(each.names is True for each in selections) and not any(each.excludes is True for each in selections)


def gpu_limit(spec: Field) -> Decimal | Unknown | None:
    """The limit on GPUs; None where there is no finite one."""
    return spec.at("limits", GPU_RESOURCE).number()


def limited_machines(spec: Field) -> tuple[Decimal, Machines] | Outcome:
    """The limit on GPUs with the machines that it is about; or the verdict of any rule about both, where one of them is not there."""
    limit, requirements = gpu_limit(spec), requirements_of(spec)
    if limit is None or limit == 0:
        return not_applicable("it has no limit on GPUs")
    if limit is UNKNOWN or requirements is UNKNOWN:
        return undecided("its requirements, or its limit on GPUs, are not known yet")
    machines = gpu_machines(requirements)
    if not machines.gpus or not machines.complete or not names_gpus(requirements):
        return not_applicable("the catalog does not have all machines that it may launch")
    return limit, machines


def node_ceilings(spec: Field) -> tuple[NodeCeilings, bool]:
    """The limits on nodes, cpu and memory as far as they are known, and whether all of them are."""
    nodes, vcpu, memory = (spec.at("limits", name).number() for name in _BESIDE_GPUS)
    known = NodeCeilings(
        None if nodes is UNKNOWN else nodes,
        None if vcpu is UNKNOWN else vcpu,
        None if memory is UNKNOWN or memory is None else memory / _MIB,
    )
    return known, UNKNOWN not in (nodes, vcpu, memory)


def written_limits(spec: Field) -> str:
    """The limits beside that on GPUs, as a sentence lists them."""
    texts = {name: spec.at("limits", name).text() for name in _BESIDE_GPUS}
    return ", ".join(f"{name}={text}" for name, text in texts.items() if isinstance(text, str))
