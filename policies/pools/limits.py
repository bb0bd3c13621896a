"""Whether what bounds capacity is finite and can be reached: ceilings of any pool, Karpenter's limits, priorities of a ComputeClass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from capacity.catalog.node_labels import GPU_RESOURCE
from capacity.catalog.unreachable_limits import NodeCeilings
from capacity.values.verdict import PASSES, fails, not_applicable, undecided
from policies.inventory.gpu_machines import gpu_selection, is_gpu_machine
from policies.inventory.node_offer import allowed_machines
from policies.inventory.views import Ceiling
from policies.values.parameters import Parameter, Parameters
from policies.values.unknown import UNKNOWN, Tri, Unknown, all_of, any_of, negated

if TYPE_CHECKING:
    from collections.abc import Iterator
    from decimal import Decimal

    from capacity.values.verdict import Outcome
    from policies.inventory.node_offer import CatalogMachine
    from policies.inventory.objects import ComputeClass
    from policies.inventory.views import Bounds
    from policies.values.field import Field


MOST = (
    Parameter("most", 100_000, "The highest number of nodes or GPUs that counts as a limit."),
    Parameter("most-cores-or-gb", 10_000_000, "The highest number of cores or GB of memory that counts as a limit."),
)
"""From where on a number is none: nobody could ever pay for it."""


def bounded(bounds: Bounds, parameters: Parameters, makes: str) -> Outcome:
    """Passes where every group of bounds holds a finite number. `makes` begins the sentence: "it makes GPU nodes"."""

    def most(ceiling: Ceiling) -> int:
        return parameters.number("most" if ceiling.unit in {Ceiling.NODES, Ceiling.GPUS} else "most-cores-or-gb")

    def finite(ceiling: Ceiling) -> Tri:
        if ceiling.amount is UNKNOWN:
            return UNKNOWN
        return ceiling.amount is not None and 0 <= ceiling.amount <= most(ceiling)

    answers = [(group, any_of(map(finite, group))) for group in bounds]
    if missing := [group for group, answer in answers if answer is False]:
        fields = ", ".join(" or ".join(ceiling.field for ceiling in group) for group in missing)
        highest = min(most(ceiling) for group in missing for ceiling in group)
        # Within a group one is enough; each of several groups needs its own.
        joint = " or " if len(missing) == 1 else ", "
        units = joint.join(sorted({ceiling.unit for group in missing for ceiling in group}))
        return fails(
            f"{makes} without a limit: {fields} is not set to a number from 0 to {highest}",
            f"set {fields} to the most {units} that you would pay for",
        )
    if unknown := [group for group, answer in answers if answer is UNKNOWN]:
        return undecided(f"{', '.join(' or '.join(ceiling.field for ceiling in group) for group in unknown)} is not known yet")
    return PASSES


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


def creates_pools(compute_class: ComputeClass) -> Tri:
    """Whether GKE may make node pools for the priorities that name none."""
    return compute_class.spec.at("nodePoolAutoCreation", "enabled").equals("true")


def made_on_demand(priority: Field) -> Tri:
    """Whether GKE would make pools of GPUs for the priority that are neither Spot, nor flex-start, nor wholly reserved.

    Of the affinities to reservations, AnyBestEffort and None go on to on-demand; without one, so does GKE.
    Source: the definition of ComputeClass, cloud.google.com/v1.
    """
    machine, family = priority.at("machineType").text(), priority.at("machineFamily").text()
    named = UNKNOWN if machine is UNKNOWN or family is UNKNOWN else is_gpu_machine(machine or f"{family}-any")
    return all_of(
        [
            priority.at("nodepools").absent if priority.at("nodepools").known else UNKNOWN,
            any_of([not priority.at("gpu").absent, named]),
            negated(priority.at("spot").equals("true")),
            negated(priority.at("flexStart", "enabled").equals("true")),
            negated(priority.at("reservations", "affinity").equals("Specific", "AnyThenFail")),
        ]
    )


def created_accelerators(compute_class: ComputeClass) -> Iterator[str | Unknown]:
    """The GPU types of which GKE may make pools for the class."""
    if creates_pools(compute_class) is not True:
        return
    for priority in compute_class.spec.at("priorities").parts().fields:
        accelerator = priority.at("gpu", "type").text()
        if accelerator is not None:
            yield accelerator
