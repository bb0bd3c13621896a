"""How many GPUs a node has, and how much of a GPU one unit of what it offers is: the report's own reckoning, as recording rules."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from functools import cache
from itertools import product
from math import ceil, floor
from typing import TYPE_CHECKING

from capacity.chargeback.gpu_shares import WHOLE, unit_share
from capacity.chargeback.queries import Question
from capacity.machines import Cloud, machines_of
from capacity.measurement.node_rules import NODE
from capacity.measurement.promql_text import given, one_of, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from capacity.machines import Gpu, Machine
    from capacity.measurement.promql_text import Scope
    from capacity.measurement.rule_group import RecordingRule

UNITS = "flexspot_node:gpu_units:max"
"""What a node offers of each resource, by node and resource."""

GPUS_PER_UNIT = "flexspot_node:gpus_per_unit:max"
"""How much of a GPU a unit is, by node and resource."""

NODE_GPUS = "flexspot_node:gpus:max"
"""How many GPUs a node has, by node."""

_OF_MACHINE = "flexspot_node:gpus_of_machine:max"
_PER_PARTITION = "flexspot_node:gpus_per_partition:max"
_MOST_SLICES = 7
_COMPUTE = (1, 2, 3, 4, 7)
_MEMORY = tuple(Fraction(1, parts) for parts in (1, 2, 4, 8))
_MEBIBYTES = 1024


def gpu_unit_rules(asked: Mapping[Question, str], scope: Scope) -> Iterator[RecordingRule]:
    """The rules, after the one of nodes."""
    yield scope.rule(UNITS, f"max by (node, resource) ({given(asked[Question.NODE_GPUS], 'node')})")
    for count, machines in _by_count().items():
        selected = scope.recorded(NODE, f"machine=~{one_of(each.name for each in machines)}")
        # The label keeps rules of one name apart: Prometheus warns of any that are not.
        yield scope.rule(_OF_MACHINE, f"{count} * group by (node, gpu) ({_with_model(selected, machines)})", gpus=str(count))
    units, of_machine = scope.recorded(UNITS), scope.recorded(_OF_MACHINE)
    for share, profiles in _partitions().items():
        of_models = [(_profiles(names), f"gpu={quoted(model)}") for model, names in profiles.items()]
        offered = " or ".join(
            f"({scope.recorded(UNITS, f'resource=~{resource}')} and on (node) {scope.recorded(_OF_MACHINE, model)})"
            for resource, model in of_models
        )
        yield scope.rule(_PER_PARTITION, f"{_written(share)} * group by (node, resource) ({offered})", part=str(share))
    yield scope.rule(GPUS_PER_UNIT, f"max by (node, resource) ({_per_unit(scope)})")
    per_unit = scope.recorded(GPUS_PER_UNIT)
    yield scope.rule(
        NODE_GPUS,
        f"max by (node) ({of_machine}) or on (node) sum by (node) ({units} * on (node, resource) group_left () {per_unit})",
    )


def _by_count() -> dict[int, list[Machine]]:
    """The machines that always have the same GPUs, by how many. Others say themselves what they have."""
    counted: defaultdict[int, list[Machine]] = defaultdict(list)
    for machine, gpu in _machines():
        if len(gpu.counts) == 1:
            counted[gpu.count].append(machine)
    return dict(sorted(counted.items()))


def _machines() -> list[tuple[Machine, Gpu]]:
    return [(each, each.gpu) for cloud in Cloud for each in machines_of(cloud).values() if each.gpu is not None]


@cache
def _partitions() -> dict[Fraction, dict[str, set[str]]]:
    """Resources by the part of a GPU that they are, and by the GPU's model, where that part is not the one of an unknown GPU.

    NVIDIA's profiles have one, two, three, four or all seven slices of compute, and of the memory all, a half, a quarter or an eighth, at
    most twice as much as of compute. Their names round the gigabytes up or down.
    """
    found: defaultdict[Fraction, defaultdict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    by_gpu = {(gpu.model, gpu.memory_mib): (machine, gpu) for machine, gpu in _machines()}
    for (machine, gpu), compute, memory in product(by_gpu.values(), _COMPUTE, _MEMORY):
        if memory > 2 * Fraction(compute, _MOST_SLICES):
            continue
        gigabytes = memory * gpu.memory_mib / _MEBIBYTES
        for resource in (f"nvidia_com_mig_{compute}g_{rounded}gb" for rounded in (floor(gigabytes), ceil(gigabytes))):
            share = unit_share(resource, machine, {})
            if share != unit_share(resource, None, {}):
                found[share][gpu.model].add(resource)
    return {share: dict(sorted(found[share].items())) for share in sorted(found)}


def _with_model(selected: str, machines: list[Machine]) -> str:
    """The nodes with their GPU's model as the label `gpu`, where its partitions are known."""
    partitioned = {model for profiles in _partitions().values() for model in profiles}
    models: defaultdict[str, list[str]] = defaultdict(list)
    for each in machines:
        if each.gpu is not None and each.gpu.model in partitioned:
            models[each.gpu.model].append(each.name)
    for model, names in sorted(models.items()):
        selected = f'label_replace({selected}, "gpu", {quoted(model)}, "machine", {one_of(names)})'
    return selected


def _profiles(names: set[str]) -> str:
    """Names with what may follow a profile, such as the media extensions of 1g.10gb+me."""
    prefix = "nvidia_com_mig_"
    return quoted(f"{prefix}({'|'.join(sorted(each.removeprefix(prefix) for each in names))})(_.+)?")


def _per_unit(scope: Scope) -> str:
    """Whole GPUs, shared ones, partitions that are known, and the others by their compute."""
    whole = scope.recorded(UNITS, f"resource={quoted(WHOLE)}")
    shared = f"clamp_max(max by (node) ({scope.recorded(_OF_MACHINE)}) / on (node) group_right () {whole}, 1)"
    by_compute = {compute: scope.recorded(UNITS, f'resource=~"nvidia_com_mig_{compute}g_.+"') for compute in range(1, _MOST_SLICES + 1)}
    unknown = " or ".join(
        f"{_written(Fraction(compute, _MOST_SLICES))} * group by (node, resource) ({offered})" for compute, offered in by_compute.items()
    )
    apart = "or on (node, resource)"
    return f"{shared} {apart} group by (node, resource) ({whole}) {apart} {scope.recorded(_PER_PARTITION)} {apart} ({unknown})"


def _written(share: Fraction) -> str:
    return str(share.numerator) if share.denominator == 1 else f"{share.numerator} / {share.denominator}"
