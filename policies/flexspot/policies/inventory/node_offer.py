"""What a pool's nodes are before they boot: the labels that an autoscaler knows of them, the machines they may be, and Spot's notice."""

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


# Not through flexspot.capacity.catalog.capacity_type: its models take a third of a second to load, which lint would pay in every run.
_FACTS = Path(node_labels.__file__).parent / "capacity_types" / "eks.yaml"

EC2_NOTICE_SECONDS: Final[int] = yaml.load(_FACTS.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)["types"]["spot"]["notice_seconds"]
"""Seconds from SIGTERM to the end of a Spot instance."""


_CATALOG = Path(node_labels.__file__).parent


@dataclass(frozen=True)
class CatalogMachine:
    """One machine.

    `gpu` is the cloud's name of its GPU, or of its device of another kind, empty for none; `resource` what pods ask for it by, `gpu_counts`
    how many it can have; `tpu_topology` how its TPU chips are joined, empty for none; `labels` Karpenter's of it.
    """

    name: str
    vcpu: int
    memory_mib: int
    gpu: str
    resource: str
    gpu_counts: tuple[int, ...]
    tpu_topology: str
    labels: Mapping[str, str]

    @property
    def family(self) -> str:
        """The part of the name that machines of one design share: g6, g2, a3."""
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
    """What flexspot.capacity.catalog.node_labels asks of a machine."""

    name: str
    vcpu: int
    memory_mib: int
    gpu: _Gpu | None
    local_ssd_gb: int


@cache
def machines_of(cloud: str) -> Mapping[str, CatalogMachine]:
    """The machines of `aws` or `gcp`, by name."""
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
    """The most GPUs that one of these machines of AWS has; None where one is not in the catalog, or none is named."""
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
"""Prefixes of labels that NVIDIA's and the Node Feature Discovery write on a node that has booted; no autoscaler knows them before."""


def is_after_boot(key: str) -> bool:
    """Whether only software on the node writes this label."""
    return key.startswith(AFTER_BOOT)


@dataclass(frozen=True)
class NodeOffer:
    """The labels of a pool's nodes.

    `fixed` are labels that every node has. `requirements` are Karpenter's, as it writes them. Of keys that begin with one of
    `open_prefixes` the cloud sets more than anybody lists, so nothing can be said against them; any other label that is not listed is not
    there, unless the list is not `complete`.
    """

    fixed: Mapping[str, Field]
    requirements: tuple[Field, ...] = ()
    open_prefixes: tuple[str, ...] = ()
    complete: bool = True

    def carries(self, wanted: Mapping[str, Field]) -> Tri:
        """Whether a node of this pool may have all these labels when it boots."""
        answers = [self._carries(key, value) for key, value in wanted.items()]
        if self.requirements and all_of(answers) is not False:
            answers.append(self._has_machine(wanted))
        return all_of([True, *answers])

    def meets(self, expression: Field) -> Tri:
        """Whether a node of this pool may meet an expression `{key, operator, values}` of a node affinity.

        NotIn and DoesNotExist hold for nodes without the label, too. What Gt and Lt leave is taken for met.
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
        """Whether a node may have another value of a label than those that are refused, or none."""

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
        """Whether every node has a label; no where one may lack it."""
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
        """The most GPUs that a node can have by Karpenter's requirements; None where the catalog may lack some of what they leave."""
        machines, complete = self._machines
        if not self.complete or any(not each.at("values").known for each in self.requirements):
            return UNKNOWN
        return most_node_gpus(each.name for each in machines) if complete else None

    def _has_machine(self, wanted: Mapping[str, Field]) -> Tri:
        """Whether one of the machines has the labels that Karpenter takes from the machine."""
        machines, complete = self._machines
        of_machines = {
            karpenters(key): value for key, value in wanted.items() if karpenters(key).startswith((_KARPENTER, INSTANCE_TYPE_LABEL))
        }
        if not complete or not of_machines:
            return True
        return any_of(all_of(value.equals(each.labels.get(key, "")) for key, value in of_machines.items()) for each in machines)


_GIVES_A_VALUE = ("In", "Exists", "Gt", "Gte", "Lt", "Lte")
"""Operators of requirements by which every node has the label."""


def _same(one: Field, other: Field) -> Tri:
    return UNKNOWN if UNKNOWN in (one.text(), other.text()) else one.text() == other.text()


def karpenters(key: str) -> str:
    """A label's key as Karpenter's own provider has it, where EKS Auto Mode spells it otherwise."""
    return f"{_KARPENTER}instance-{key.removeprefix(_AUTO_MODE)}" if key.startswith(_AUTO_MODE) else key


def karpenter_key(requirement: Field) -> str | None:
    """The key of a requirement; None while it is not known, so that it may be any."""
    key = requirement.at("key").text()
    return None if key is UNKNOWN else karpenters(key or "")


def allows(requirement: Field, value: object) -> Tri:
    """Whether `{key, operator, values}` leaves this value of its key."""
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
    """The machines of the catalog that Karpenter's requirements leave, and whether the catalog has all that they leave.

    A machine of which that is not known yet stays. The catalog is not complete: it has all of a requirement that names machines, families
    or GPUs that it knows, and may lack something of any other.
    """
    known = machines_of("aws")
    of_machines = [each for each in requirements if (key := karpenter_key(each)) and key.startswith((_KARPENTER, INSTANCE_TYPE_LABEL))]
    left = list(known.values())
    for each in of_machines:
        written = _written(each)
        # A repository has many pools of one requirement.
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
    """Key, operator and values of a requirement, where all of them are texts that are known."""
    values = requirement.at("values").parts()
    texts = tuple(each.text() for each in values.fields)
    key, operator = karpenter_key(requirement), requirement.at("operator").text()
    if not values.complete or not isinstance(key, str) or not isinstance(operator, str) or not all(isinstance(each, str) for each in texts):
        return None
    return key, operator, tuple(str(each) for each in texts)


@lru_cache(maxsize=1024)
def _names_left(key: str, operator: str, values: tuple[str, ...]) -> frozenset[str]:
    """The names of the machines that one requirement leaves."""
    requirement = Field({"key": key, "operator": operator, "values": list(values)})
    return frozenset(machine.name for machine in machines_of("aws").values() if _leaves(requirement, machine))


def _leaves(requirement: Field, machine: CatalogMachine) -> bool:
    """Whether a requirement on a label of machines may be one that this machine meets."""
    key = karpenter_key(requirement) or ""
    if requirement.at("operator").text() == "DoesNotExist":
        return key not in machine.labels
    return allows(requirement, machine.labels.get(key, "0")) is not False


def _only_names(requirement: Field, known: set[str]) -> bool:
    values = requirement.at("values").parts()
    texts = {each.text() for each in values.fields}
    return bool(known) and requirement.at("operator").text() == "In" and values.complete and bool(texts) and texts <= known
