"""How many GPUs a node has, how it was bought and whose it is, and how much of a GPU one unit of what it offers is, as recorded series."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from functools import cache
from itertools import product
from math import ceil, floor
from typing import TYPE_CHECKING

from capacity.catalog.machines import Cloud, machines_of
from capacity.catalog.node_labels import ENVIRONMENT_LABEL, INSTANCE_TYPE_LABEL, OWNER_LABEL, TEAM_LABEL
from capacity.chargeback.gpu_shares import WHOLE, unit_share
from capacity.chargeback.labels import label_of
from capacity.chargeback.nodes import CAPACITY_MARKS, UNKNOWN
from capacity.chargeback.queries import Question
from capacity.telemetry.rule_group import first_of, given, one_of, quoted, single

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from capacity.catalog.machines import Gpu, Machine
    from capacity.telemetry.rule_group import RecordingRule, Scope


NODE = "flexspot_node:bought_as:max"
"""1, by node, machine, capacity_type, environment and owner: the team or else the owner that the node is labelled with."""

_COPIED = {"machine": INSTANCE_TYPE_LABEL, "environment": ENVIRONMENT_LABEL}


def node_rule(asked: Mapping[Question, str], scope: Scope) -> RecordingRule:
    """The rule."""
    node = single(given(asked[Question.NODE_LABELS], "node"), "node")
    node = f'label_replace({node}, "capacity_type", {quoted(UNKNOWN)}, "node", ".*")'
    # The last that is written counts, so the first of the marks is written last.
    for mark in reversed(CAPACITY_MARKS):
        value = ".+" if mark.value is None else mark.value
        node = f'label_replace({node}, "capacity_type", {quoted(mark.capacity_type)}, "{label_of(mark.label)}", {quoted(value)})'
    for label, key in _COPIED.items():
        node = f'label_replace({node}, "{label}", "$1", "{label_of(key)}", "(.+)")'
    node = first_of(node, "owner", map(label_of, (TEAM_LABEL, OWNER_LABEL)), otherwise="")
    return scope.rule(NODE, f"max by (node, machine, capacity_type, environment, owner) ({node})")


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
