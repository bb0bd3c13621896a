"""Facts of nodes, namespaces and pods over time; facts from a node's labels; and the share of a GPU of a unit of its resource."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

from pydantic import Field

from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.catalog.data_files import Record, SourcedFile, read_records
from flexspot.capacity.catalog.machines import Machine, Vendor, machines_of
from flexspot.capacity.catalog.node_labels import (
    CAPACITY_TYPE_LABEL,
    ENVIRONMENT_LABEL,
    GKE_POOL_LABEL,
    GKE_QUEUED_LABEL,
    GKE_RESERVATION_NAME_LABEL,
    GKE_SPOT_LABEL,
    INSTANCE_TYPE_LABEL,
    KARPENTER_POOL_LABEL,
    OWNER_LABEL,
    TEAM_LABEL,
)
from flexspot.capacity.chargeback.queries import (
    EKS_CAPACITY_LABEL,
    EKS_POOL_LABEL,
    GKE_FLEX_START_LABEL,
    GKE_PROVISIONING_LABEL,
    NODE_LABELS,
    NONE,
    OWNER_LABELS,
    REGION_LABEL,
    WORK_LABELS,
    Question,
    Work,
    allow_list,
    label_of,
    owner_of,
    user_of,
    workload_of,
)
from flexspot.capacity.chargeback.samples import Timeline, merged, named

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping

    from flexspot.capacity.chargeback.queries import Controller
    from flexspot.capacity.chargeback.samples import Seconds, Series, Span


_PARTITION = re.compile(r"nvidia_com_mig_(?P<compute>\d+)g_(?P<gigabytes>\d+)gb(_\w+)?")
_MEBIBYTES = 1024
_MOST_SLICES = 7


class Partitioning(Record):
    """Numbers of compute and memory slices of a GPU model."""

    model: str
    compute: Annotated[int, Field(ge=1)]
    memory: Annotated[int, Field(ge=1)]
    source: str


class PartitioningFile(SourcedFile):
    """The data file."""

    partitions: list[Partitioning]


@cache
def _partitionings() -> dict[str, Partitioning]:
    file = read_records(Path(__file__).parent / "gpu_partitions.yaml", PartitioningFile)
    return {each.model: each for each in file.partitions}


def gpus_of_node(machine: Machine | None, units: Mapping[str, float]) -> Fraction:
    """Return the number of GPUs of a node: its machine's, also while the node boots, or else what the node reports.

    `units` are the amounts it offers, by resource.
    """
    if machine is not None and machine.gpu is not None and len(machine.gpu.counts) == 1:
        return Fraction(machine.gpu.count)
    return sum((_whole(amount) * unit_share(resource, machine, units) for resource, amount in units.items()), Fraction(0))


def unit_share(resource: str, machine: Machine | None, units: Mapping[str, float]) -> Fraction:
    """Return the part of a GPU that one unit of `resource` is on a node that offers `units`.

    A partition counts as the greater of its parts of compute and memory, as no other pod can use what it takes. A node may offer more whole
    devices than its machine has. They are then shared by time, or are partitions under the same name, and each is an equal part.
    """
    gpu = None if machine is None else machine.gpu
    found = _PARTITION.fullmatch(resource)
    if found is None:
        offered = _whole(units.get(resource, 0.0))
        fixed = gpu is not None and len(gpu.counts) == 1
        return Fraction(gpu.count) / offered if gpu is not None and fixed and offered > gpu.count else Fraction(1)
    parts = None if gpu is None else _partitionings().get(gpu.model)
    if parts is None or gpu is None:
        return min(Fraction(1), Fraction(int(found["compute"]), _MOST_SLICES))
    memory = round(int(found["gigabytes"]) * _MEBIBYTES * parts.memory / gpu.memory_mib)
    return min(Fraction(1), max(Fraction(int(found["compute"]), parts.compute), Fraction(memory, parts.memory)))


def _whole(amount: float) -> Fraction:
    return Fraction(round(amount))


ValueT = TypeVar("ValueT")

Units = tuple[tuple[str, float], ...]

_OWNER_NAMES = tuple(map(label_of, OWNER_LABELS))
_NODE_NAMES = tuple(map(label_of, NODE_LABELS))
_WORK_NAMES = tuple(map(label_of, WORK_LABELS))


class KnownLabels:
    """Learns labels slice by slice, and keeps only the last known ones of earlier slices."""

    def __init__(self) -> None:
        self._facts: dict[str, Timeline[NodeFacts]] = {}
        self._units: dict[str, Timeline[Units]] = {}
        self._namespaces: dict[str, Timeline[tuple[str, ...]]] = {}
        self._pods: dict[str, Timeline[tuple[str, ...]]] = {}
        self._work: dict[str, Timeline[tuple[str, ...]]] = {}
        self._controllers: dict[str, Controller] = {}
        self._pods_seen = False
        self._seen: set[Question] = set()
        self.doubled = NameConflicts()

    def learn(self, found: Mapping[Question, list[Series]]) -> None:
        """Learn the labels in the answers of a slice."""
        for each in (self._facts, self._units, self._namespaces, self._pods, self._work):
            for timeline in each.values():
                timeline.keep_last()
        self._learn(self._facts, found[Question.NODE_LABELS], "node", node_facts)
        self._learn(self._namespaces, found[Question.NAMESPACES], "namespace", _owner_values)
        self._learn(self._pods, found[Question.POD_LABELS], "uid", _owner_values)
        self._learn(self._work, found[Question.WORK_LABELS], "uid", _work_values)
        # The controller of a pod never changes.
        for each in found[Question.CONTROLLERS]:
            self._controllers.setdefault(each.labels.get("uid", ""), (each.labels.get("owner_kind", ""), each.labels.get("owner_name", "")))
        self._pods_seen = self._pods_seen or bool(found[Question.ALLOCATIONS])
        self._learn_units(found[Question.NODE_GPUS])
        for question, names in ((Question.NODE_LABELS, _NODE_NAMES), (Question.POD_LABELS, _OWNER_NAMES)):
            if any(each.labels.get(name) for each in found[question] for name in names):
                self._seen.add(question)

    def of_node(self, node: str, span: Span) -> Iterator[tuple[NodeFacts, Span, dict[str, float]]]:
        """Yield the span in pieces within which the node was the same: its facts, the piece, and the resources that it offered."""
        facts, units = self._facts.get(node), self._units.get(node)
        for piece in [span] if facts is None else facts.cut(span):
            for part in [piece] if units is None else units.cut(piece):
                known = NodeFacts() if facts is None else facts.at(part.start)
                yield known, part, {} if units is None else dict(units.at(part.start))

    def of_pod(self, uid: str, namespace: str, pod: str, environment: str, span: Span) -> Iterator[tuple[Work, Span]]:
        """Yield the span in pieces within which the pod's work was the same: the work and the piece."""
        own, shared, work = self._pods.get(uid), self._namespaces.get(namespace), self._work.get(uid)
        controller = self._controllers.get(uid, ("", ""))
        for piece in [span] if own is None else own.cut(span):
            for in_namespace in [piece] if shared is None else shared.cut(piece):
                for part in [in_namespace] if work is None else work.cut(in_namespace):
                    of_own = {} if own is None else dict(zip(_OWNER_NAMES, own.at(part.start), strict=True))
                    of_shared = {} if shared is None else dict(zip(_OWNER_NAMES, shared.at(part.start), strict=True))
                    of_work = {} if work is None else dict(zip(_WORK_NAMES, work.at(part.start), strict=True))
                    owner = owner_of(of_own, of_shared, environment)
                    yield Work(owner, workload_of(namespace, pod, controller, of_work), user_of(of_work)), part

    def missing(self) -> list[str]:
        """Return messages about what kube-state-metrics never showed, and how to fix it."""
        texts = {
            Question.NODE_LABELS: "No label of a node was seen: machines, capacity types and pools are unknown, and so are prices.",
            Question.POD_LABELS: "No owner label of a pod with GPUs was seen: teams are those of namespaces, where these have the label.",
        }
        missing = [text for question, text in texts.items() if question not in self._seen]
        missing += [f"Start kube-state-metrics with {allow_list()}"] if missing else []
        if self._pods_seen and not self._controllers:
            missing.append("No controller of a pod with GPUs was seen (kube_pod_owner): each pod is shown as a separate workload.")
        return missing

    def _learn(
        self, into: dict[str, Timeline[ValueT]], series: list[Series], name: str, read: Callable[[Mapping[str, str]], ValueT]
    ) -> None:
        """Learn labels. A set is valid from its first sample on, and again from the first one after another set's."""
        by_object: dict[str, list[Series]] = {}
        for each in series:
            by_object.setdefault(named(each.labels, name), []).append(each)
        for key, sets in by_object.items():
            timeline = into.setdefault(key, Timeline())
            if len(sets) == 1:
                timeline.learn(sets[0].samples[0][0], read(sets[0].labels))
                continue
            nothing, values = read({}), [read(each.labels) for each in sets]
            # Of two exporters one may not be configured to show labels. It reports none, which is not a contradiction.
            informative = [(value, each) for value, each in zip(values, sets, strict=True) if value != nothing] or [(nothing, sets[0])]
            if into is not self._work:
                # Work labels are in the same series as owner labels, which are checked.
                self.doubled.see(name, ((key, value, [moment for moment, _ in each.samples]) for value, each in informative))
            at = {moment: value for value, each in informative for moment, _ in each.samples}
            for moment in sorted(at):
                timeline.learn(moment, at[moment])

    def _learn_units(self, series: list[Series]) -> None:
        changes: dict[str, list[tuple[Seconds, str, float]]] = {}
        for (node, resource), samples in merged(series, "node", "resource").items():
            last: float | None = None
            for moment, value in samples:
                if value != last:
                    changes.setdefault(node, []).append((moment, resource, value))
                last = value
        for node, found in changes.items():
            timeline = self._units.setdefault(node, Timeline())
            state: dict[str, float] = dict(timeline.last or ())
            by_moment: dict[Seconds, dict[str, float]] = {}
            for moment, resource, value in sorted(found):
                by_moment.setdefault(moment, {})[resource] = value
            for moment, values in by_moment.items():
                state |= values
                timeline.learn(moment, tuple(sorted(state.items())))


def _owner_values(labels: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(labels.get(name, "") for name in _OWNER_NAMES)


def _work_values(labels: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(labels.get(name, "") for name in _WORK_NAMES)


class NameConflicts:
    """Counts moments at which one name belongs to two different objects, for example when two clusters write into one Prometheus.

    Two replicas of an exporter report the same object, and are not counted.
    """

    def __init__(self) -> None:
        self._moments: Counter[str] = Counter()

    def see(self, kind: str, reports: Iterable[tuple[str, Hashable, list[Seconds]]]) -> None:
        """Add reports: a name, the identity of its object, and the moments."""
        by_name: dict[str, dict[Hashable, set[Seconds]]] = {}
        for name, what, moments in reports:
            by_name.setdefault(name, {}).setdefault(what, set()).update(moments)
        for name, things in by_name.items():
            if len(things) > 1:
                seen = Counter(moment for moments in things.values() for moment in moments)
                self._moments[f"{kind} {name}"] += sum(count > 1 for count in seen.values())

    def longer_than(self, seconds: Seconds, step: Seconds) -> dict[str, Seconds]:
        """Return the names for which this lasted longer than `seconds`, and how long."""
        return {name: moments * step for name, moments in sorted(self._moments.items()) if moments * step > seconds}


UNKNOWN = "(unknown)"
"""Replaces a missing label. No Kubernetes label can have this value."""


@dataclass(frozen=True)
class CapacityMark:
    """A label that says how a node was bought. `value` None matches any value."""

    label: str
    value: str | None
    capacity_type: CapacityType


CAPACITY_MARKS = (
    *(CapacityMark(CAPACITY_TYPE_LABEL, each, each) for each in (CapacityType.SPOT, CapacityType.ON_DEMAND, CapacityType.RESERVED)),
    CapacityMark(EKS_CAPACITY_LABEL, "SPOT", CapacityType.SPOT),
    CapacityMark(EKS_CAPACITY_LABEL, "ON_DEMAND", CapacityType.ON_DEMAND),
    CapacityMark(EKS_CAPACITY_LABEL, "CAPACITY_BLOCK", CapacityType.RESERVED),
    CapacityMark(GKE_QUEUED_LABEL, "true", CapacityType.QUEUED),
    CapacityMark(GKE_FLEX_START_LABEL, "true", CapacityType.FLEX_START),
    CapacityMark(GKE_PROVISIONING_LABEL, "flex-start", CapacityType.FLEX_START),
    CapacityMark(GKE_SPOT_LABEL, "true", CapacityType.SPOT),
    CapacityMark(GKE_PROVISIONING_LABEL, "spot", CapacityType.SPOT),
    CapacityMark(GKE_PROVISIONING_LABEL, "preemptible", CapacityType.SPOT),
    CapacityMark(GKE_RESERVATION_NAME_LABEL, None, CapacityType.RESERVED),
    # GKE labels a node of standard provisioning only if its autoscaler created it.
    CapacityMark(GKE_POOL_LABEL, None, CapacityType.ON_DEMAND),
)
"""The first match counts: a queued node is also flex-start, and a reserved one is in a pool."""


@dataclass(frozen=True)
class NodeFacts:
    """Facts that decide a node's price and who pays for it."""

    machine: str = UNKNOWN
    region: str = UNKNOWN
    capacity_type: CapacityType | None = None
    pool: str = UNKNOWN
    environment: str = ""
    owner: str = ""
    """Team label, or else the owner label; empty without either."""

    @property
    def bought_as(self) -> str:
        """Name of the capacity type."""
        return UNKNOWN if self.capacity_type is None else self.capacity_type.value

    @property
    def gpu(self) -> str:
        """Catalog model of its GPUs: (none) for a machine without GPUs, (unknown) for one that is not in the catalog."""
        machine = self.catalogued
        if machine is None:
            return UNKNOWN
        return NONE if machine.gpu is None else machine.gpu.model

    @property
    def catalogued(self) -> Machine | None:
        """The machine in the catalog, if it is there."""
        return None if (cloud := cloud_of(self.machine)) is None else machines_of(cloud).get(self.machine)


def cloud_of(machine: str) -> Vendor | None:
    """Return the cloud of a machine, by the form of its name: EC2 writes family.size, Compute Engine family-kind-size."""
    if machine == UNKNOWN:
        return None
    return Vendor.AWS if "." in machine else Vendor.GCP


def node_facts(labels: Mapping[str, str]) -> NodeFacts:
    """Return the facts in the labels of a kube_node_labels series."""

    def label(*keys: str) -> str:
        return next((value for key in keys if (value := labels.get(label_of(key)))), "")

    return NodeFacts(
        machine=label(INSTANCE_TYPE_LABEL) or UNKNOWN,
        region=label(REGION_LABEL) or UNKNOWN,
        capacity_type=_capacity_type(label),
        pool=label(KARPENTER_POOL_LABEL, GKE_POOL_LABEL, EKS_POOL_LABEL) or UNKNOWN,
        environment=label(ENVIRONMENT_LABEL),
        owner=label(TEAM_LABEL, OWNER_LABEL),
    )


def _capacity_type(label: _Label) -> CapacityType | None:
    for mark in CAPACITY_MARKS:
        value = label(mark.label)
        if value and mark.value in {None, value}:
            return mark.capacity_type
    return None


if TYPE_CHECKING:
    from collections.abc import Callable

    _Label = Callable[..., str]
