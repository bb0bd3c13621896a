"""A pool's nodes before they boot: the labels that an autoscaler knows, the possible machines, and the notice of Spot."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from flexspot.capacity.catalog import node_labels
from flexspot.capacity.catalog.accelerators import BY_MANUFACTURER, ON_EC2, Accelerator
from flexspot.capacity.catalog.node_labels import INSTANCE_TYPE_LABEL, KARPENTER_INSTANCE
from flexspot.policies.values.field import UNKNOWN, Field, Parts, Tri, Unknown, all_of, any_of, negated

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


# Not through flexspot.capacity.catalog.capacity_type: loading its models takes a third of a second in every run of lint.
_FACTS = Path(node_labels.__file__).parent / "capacity_types" / "eks.yaml"

EC2_NOTICE_SECONDS: Final[int] = yaml.load(_FACTS.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)["types"]["spot"]["notice_seconds"]
"""Seconds from SIGTERM to the end of a Spot instance."""


_CATALOG = Path(node_labels.__file__).parent


@dataclass(frozen=True)
class CatalogMachine:
    """One machine of the catalog."""

    name: str
    vcpu: int
    memory_mib: int
    gpu: str
    """The cloud's name of its GPU or other device; empty for none."""
    resource: str
    """Name of the resource that pods request."""
    gpu_counts: tuple[int, ...]
    """Possible numbers of devices."""
    tpu_topology: str
    """Topology of its TPU chips; empty for none."""
    labels: Mapping[str, str]
    """Karpenter's labels of the machine."""

    @property
    def family(self) -> str:
        """Common part of the names of one design: g6, g2, a3."""
        return self.name.partition("." if "." in self.name else "-")[0]


@dataclass(frozen=True)
class _Gpu:
    name: str
    manufacturer: str
    count: int
    memory_mib: int

    @property
    def accelerator(self) -> Accelerator:
        return BY_MANUFACTURER[self.manufacturer]


@dataclass(frozen=True)
class _Row:
    """The fields of a machine that flexspot.capacity.catalog.node_labels uses."""

    name: str
    vcpu: int
    memory_mib: int
    gpu: _Gpu | None
    local_ssd_gb: int


@cache
def machines_of(cloud: str) -> Mapping[str, CatalogMachine]:
    """Return the machines of `aws` or `gcp`, by name."""
    rows = yaml.load((_CATALOG / f"{cloud}.yaml").read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)["machines"]
    return {row["name"]: _machine(row, karpenter=cloud == "aws") for row in rows}


def _machine(row: dict[str, Any], *, karpenter: bool) -> CatalogMachine:
    gpu: dict[str, Any] = row.get("gpu") or {}
    counts = tuple(gpu.get("counts", ()))
    labels: dict[str, str] = {}
    if karpenter:
        own = _Gpu(gpu["name"], gpu["manufacturer"], counts[0], gpu["memory_mib"]) if gpu else None
        known: Any = _Row(row["name"], row["vcpu"], row["memory_mib"], own, row.get("local_ssd_gb", 0))
        labels = {**node_labels.karpenter_aws_labels(known), node_labels.INSTANCE_TYPE_LABEL: row["name"]}
    resource = BY_MANUFACTURER[gpu["manufacturer"]].resource if gpu else ""
    topology = row.get("tpu_topology", "")
    return CatalogMachine(row["name"], row["vcpu"], row["memory_mib"], gpu.get("name", ""), resource, counts, topology, labels)


def most_node_gpus(names: Iterable[object]) -> Decimal | Unknown | None:
    """Return the most GPUs that one of these AWS machines has. None if one is not in the catalog, or none is named."""
    listed = list(names)
    if UNKNOWN in listed:
        return UNKNOWN
    known = [machines_of("aws").get(str(each)) for each in listed]
    if not known or None in known:
        return None
    return Decimal(max(each.gpu_counts[0] if each.gpu_counts else 0 for each in known if each))


_KARPENTER = "karpenter.k8s.aws/"
_AUTO_MODE = "eks.amazonaws.com/instance-"
_FAMILY = f"{_KARPENTER}instance-family"

AFTER_BOOT = ("nvidia.com/", "feature.node.kubernetes.io/")
"""Prefixes of labels that NVIDIA's software and Node Feature Discovery write on a booted node. No autoscaler knows them before."""


def is_after_boot(key: str) -> bool:
    """Return whether only software on the node writes this label."""
    return key.startswith(AFTER_BOOT)


@dataclass(frozen=True)
class NodeOffer:
    """The labels of a pool's nodes."""

    fixed: Mapping[str, Field]
    """Labels of every node."""
    requirements: tuple[Field, ...] = ()
    """Karpenter's requirements, as written."""
    open_prefixes: tuple[str, ...] = ()
    """Prefixes of labels that the cloud sets without a complete list, so that any may exist."""
    complete: bool = True
    """True if any other label is certainly absent."""

    def carries(self, wanted: Mapping[str, Field]) -> Tri:
        """Return whether a node of this pool may have all these labels when it boots."""
        answers = [self._carries(key, value) for key, value in wanted.items()]
        if self.requirements and all_of(answers) is not False:
            answers.append(self._has_machine(wanted))
        return all_of([True, *answers])

    def meets(self, expression: Field) -> Tri:
        """Return whether a node of this pool may meet an expression `{key, operator, values}` of a node affinity.

        NotIn and DoesNotExist also match nodes without the label. Gt and Lt count as met.
        """
        key, operator, values = expression.at("key").text(), expression.at("operator").text(), expression.at("values").parts()
        if not isinstance(key, str) or operator is UNKNOWN:
            return UNKNOWN
        match operator:
            case "In":
                return values.any(lambda value: self.carries({key: value}))
            case "NotIn":
                return self._may_differ(key, values)
            case "DoesNotExist":
                return negated(self._has(key))
            case "Exists":
                return self._has(key) is not False or key.startswith(self.open_prefixes) or not self.complete
            case _:
                return True

    def _may_differ(self, key: str, refused: Parts) -> Tri:
        """Return whether a node may have a value of the label that is not refused, or no value."""

        def all_refused(values: Iterable[Field]) -> Tri:
            return all_of([True, *(refused.any(lambda no, own=value: _same(no, own)) for value in values)])

        answers: list[Tri] = []
        if key in self.fixed and not self.fixed[key].absent:
            answers.append(all_refused([self.fixed[key]]))
        for each in self.requirements:
            if each.at("operator").equals("In") is True and karpenter_key(each) == karpenters(key):
                listed = each.at("values").parts()
                answers.append(all_refused(listed.fields) if listed.complete and listed.fields else UNKNOWN)
        return negated(any_of(answers))

    def _has(self, key: str) -> Tri:
        """Return whether every node has a label. False if one may lack it."""
        own = self.fixed.get(key, Field(None))
        asked = (each.at("operator") for each in self.requirements if karpenter_key(each) == karpenters(key))
        return any_of([negated(own.absent) if own.known else UNKNOWN, *(each.equals(*_GIVES_A_VALUE) for each in asked)])

    def _carries(self, key: str, value: Field) -> Tri:
        text = value.text()
        answers = [allows(each, text) for each in self.requirements if karpenter_key(each) in {karpenters(key), None}]
        if key in self.fixed:
            own = self.fixed[key]
            answers.append(UNKNOWN if UNKNOWN in (text, own.text()) else own.text() == text)
        if answers:
            return all_of(answers)
        if key.startswith(self.open_prefixes):
            return True
        return False if self.complete else UNKNOWN

    @cached_property
    def _machines(self) -> tuple[list[CatalogMachine], bool]:
        return allowed_machines(self.requirements)

    @property
    def most_gpus(self) -> Decimal | Unknown | None:
        """The most GPUs of a node that Karpenter's requirements allow. None if the catalog may lack allowed machines."""
        machines, complete = self._machines
        if not self.complete or any(not each.at("values").known for each in self.requirements):
            return UNKNOWN
        return most_node_gpus(each.name for each in machines) if complete else None

    def _has_machine(self, wanted: Mapping[str, Field]) -> Tri:
        """Return whether one of the machines has the labels that Karpenter derives from the machine."""
        machines, complete = self._machines
        of_machines = {
            karpenters(key): value for key, value in wanted.items() if karpenters(key).startswith((_KARPENTER, INSTANCE_TYPE_LABEL))
        }
        if not complete or not of_machines:
            return True
        return any_of(all_of(value.equals(each.labels.get(key, "")) for key, value in of_machines.items()) for each in machines)


_GIVES_A_VALUE = ("In", "Exists", "Gt", "Gte", "Lt", "Lte")
"""Operators of requirements that give every node the label."""


def _same(one: Field, other: Field) -> Tri:
    return UNKNOWN if UNKNOWN in (one.text(), other.text()) else one.text() == other.text()


def karpenters(key: str) -> str:
    """Return a label's key as in Karpenter's own provider, where EKS Auto Mode spells it differently."""
    return f"{_KARPENTER}instance-{key.removeprefix(_AUTO_MODE)}" if key.startswith(_AUTO_MODE) else key


def karpenter_key(requirement: Field) -> str | None:
    """Return the key of a requirement. None while it is not known, so that it may be any."""
    key = requirement.at("key").text()
    return None if key is UNKNOWN else karpenters(key or "")


def allows(requirement: Field, value: object) -> Tri:
    """Return whether `{key, operator, values}` allows this value of its key."""
    operator, values = requirement.at("operator").text(), requirement.at("values")
    if UNKNOWN in (operator, value, requirement.at("key").value):
        return UNKNOWN
    match operator:
        case "In":
            return values.parts().any(lambda each: each.equals(str(value)))
        case "NotIn":
            return negated(values.parts().any(lambda each: each.equals(str(value))))
        case "DoesNotExist":
            return False
        case "Gt" | "Lt" | "Gte" | "Lte":
            return _compares(str(operator), str(value), values)
        case _:
            return True


def _compares(operator: str, value: str, values: Field) -> Tri:
    bounds = [each.number() for each in values.parts().fields]
    if not values.parts().complete or UNKNOWN in bounds:
        return UNKNOWN
    bound = bounds[0] if len(bounds) == 1 else None
    if not value.isdecimal() or not isinstance(bound, Decimal):
        return True
    difference = int(value) - bound
    return {"Gt": difference > 0, "Gte": difference >= 0, "Lt": difference < 0, "Lte": difference <= 0}[operator]


def allowed_machines(requirements: Iterable[Field]) -> tuple[list[CatalogMachine], bool]:
    """Return the catalog's machines that Karpenter's requirements allow, and whether the catalog contains all allowed machines.

    A machine stays while that is not known yet. The catalog is incomplete. It contains all machines only for a requirement that names
    machines, families or GPUs that it knows.
    """
    known = machines_of("aws")
    of_machines = [each for each in requirements if (key := karpenter_key(each)) and key.startswith((_KARPENTER, INSTANCE_TYPE_LABEL))]
    left = list(known.values())
    for each in of_machines:
        written = _written(each)
        # Many pools of a repository share one requirement.
        names = _names_left(*written) if written else {machine.name for machine in left if _leaves(each, machine)}
        left = [machine for machine in left if machine.name in names]
    vocabulary = {
        INSTANCE_TYPE_LABEL: set(known),
        _FAMILY: {machine.family for machine in known.values()},
        **{
            each.labels(KARPENTER_INSTANCE)[0]: {machine.gpu for machine in known.values() if machine.resource == each.resource}
            for each in ON_EC2
        },
    }
    return left, any(_only_names(each, vocabulary.get(karpenter_key(each) or "", set())) for each in of_machines)


def _written(requirement: Field) -> tuple[str, str, tuple[str, ...]] | None:
    """Return key, operator and values of a requirement, or None if one of them is unknown or no text."""
    values = requirement.at("values").parts()
    texts = tuple(each.text() for each in values.fields)
    key, operator = karpenter_key(requirement), requirement.at("operator").text()
    if not values.complete or not isinstance(key, str) or not isinstance(operator, str) or not all(isinstance(each, str) for each in texts):
        return None
    return key, operator, tuple(str(each) for each in texts)


@lru_cache(maxsize=1024)
def _names_left(key: str, operator: str, values: tuple[str, ...]) -> frozenset[str]:
    """Return the names of the machines that one requirement allows."""
    requirement = Field({"key": key, "operator": operator, "values": list(values)})
    return frozenset(machine.name for machine in machines_of("aws").values() if _leaves(requirement, machine))


def _leaves(requirement: Field, machine: CatalogMachine) -> bool:
    """Return whether this machine may meet a requirement on a label of machines."""
    key = karpenter_key(requirement) or ""
    if requirement.at("operator").text() == "DoesNotExist":
        return key not in machine.labels
    return allows(requirement, machine.labels.get(key, "0")) is not False


def _only_names(requirement: Field, known: set[str]) -> bool:
    values = requirement.at("values").parts()
    texts = {each.text() for each in values.fields}
    return bool(known) and requirement.at("operator").text() == "In" and values.complete and bool(texts) and texts <= known
