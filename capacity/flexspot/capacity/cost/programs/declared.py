"""A program in Pulumi's output (`pulumi preview --json`, or `pulumi stack export`), and the billed parts of a resource."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, cast

from flexspot.capacity.cost.costed_plan import not_costable
from flexspot.capacity.values.engine_marks import SIGNATURE, UNKNOWN_TEXT, UNKNOWNS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from flexspot.capacity.catalog.capacity_type import CapacityType
    from flexspot.capacity.catalog.machines import Vendor
    from flexspot.capacity.catalog.price_book import ServiceItem


UNKNOWN = UNKNOWN_TEXT
"""Placeholder of any type for a value that is known only after deployment."""

_STACK = "pulumi:pulumi:Stack"
_PROVIDERS = "pulumi:providers:"
_GONE = frozenset({"delete", "delete-replaced", "read-discard", "discard", "remove-pending-replace"})
_ZONE = re.compile(r"([a-z]+-[a-z]+\d+)-[a-z]|([a-z]{2}(?:-[a-z]+)+-\d+)[a-z]")


@dataclass(frozen=True)
class Declared:
    """A resource with its declared `inputs` and its present `outputs`.

    `depends` are URNs by property. `region` is None if unknown. `other` marks a second one of the same URN, left by an unfinished
    replacement.
    """

    urn: str
    type: str
    inputs: dict[str, Any]
    outputs: dict[str, Any] = field(default_factory=dict[str, Any])
    region: str | None = None
    depends: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    other: bool = False

    @property
    def name(self) -> str:
        """Name of the resource in the program."""
        return self.urn.rpartition("::")[2]

    @property
    def key(self) -> tuple[str, bool]:
        """Identity of a resource before and after a change."""
        return self.urn, self.other

    def get(self, *path: str) -> Any:
        """Return a value; in a block that is a one-element list, its field. None if it is not set, UNKNOWN if it is not known yet."""
        said = _walk(self.inputs, path)
        return said if said is not None and said != UNKNOWN else (_walk(self.outputs, path) or said)

    def text(self, *path: str) -> str | None:
        """Return a known text. None if it is not set or not known."""
        found = self.get(*path)
        return found if isinstance(found, str) and found and found != UNKNOWN else None

    def number(self, *path: str) -> Decimal | None:
        """Return a known number of 0 or more. None if it is not set or not known."""
        return number_of(self.get(*path))

    def true(self, *path: str) -> bool:
        """Return whether a value is known to be true."""
        return self.get(*path) in (True, "true")

    def items(self, *path: str) -> list[Any]:
        """Return the members of a list, or the one block in its place."""
        found = self.get(*path)
        return [] if found is None or found == UNKNOWN else list(cast("list[Any]", found)) if isinstance(found, list) else [found]

    def part(self, block: Any) -> Declared:
        """Return the resource with a block as its inputs, so that the block is read in the same way."""
        inputs = cast("dict[str, Any]", block) if isinstance(block, dict) else {}
        return Declared(self.urn, self.type, inputs, {}, self.region, self.depends, self.other)


def number_of(value: Any) -> Decimal | None:
    """Return a number of 0 or more, also from text. None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        found = Decimal(str(value))
    except InvalidOperation:
        return None
    return found if found.is_finite() and found >= 0 else None


def _walk(value: Any, path: Iterable[str]) -> Any:
    for each in path:
        if isinstance(value, list):
            value = value[0] if value else None
        if not isinstance(value, dict):
            return UNKNOWN if value == UNKNOWN else None
        value = cast("dict[str, Any]", value).get(each)
    return UNKNOWN if (isinstance(value, dict) and SIGNATURE in value) or (isinstance(value, str) and value in UNKNOWNS) else value


@dataclass(frozen=True)
class Program:
    """The resources of a stack as they will be (`after`), and as they are (`before`; None for a state, which is both).

    `not_shown` is the number of unchanged resources that are not in the file. `region` is the default region of resources.
    """

    name: str
    after: tuple[Declared, ...]
    before: tuple[Declared, ...] | None
    not_shown: int = 0
    region: str | None = None


def read_program(written: dict[str, Any], name: str, region: str | None = None) -> Program:
    """Return the program of a preview's or a state's JSON; `region` is the default region of resources.

    Raises ExplainedError for other JSON.
    """
    settings = cast("dict[str, Any]", written.get("config") or {})
    if isinstance(written.get("steps"), list):
        return _of_preview(cast("list[dict[str, Any]]", written["steps"]), written, settings, name, region)
    state = written.get("deployment") or (cast("dict[str, Any]", written.get("checkpoint") or {})).get("latest")
    if isinstance(state, dict) and isinstance(resources := cast("dict[str, Any]", state).get("resources") or [], list):
        states = cast("list[dict[str, Any]]", resources)
        return Program(_stack_name(states, name), tuple(_declared(states, settings)), None, region=region)
    raise not_costable(f"{name} is neither a preview nor a state: it has no steps, deployment or checkpoint.")


def is_program(written: Any) -> bool:
    """Return whether JSON is a preview or a state."""
    fields = cast("dict[str, Any]", written) if isinstance(written, dict) else {}
    return isinstance(fields.get("steps"), list) or any(isinstance(fields.get(each), dict) for each in ("deployment", "checkpoint"))


def _of_preview(steps: list[dict[str, Any]], written: dict[str, Any], settings: dict[str, Any], name: str, region: str | None) -> Program:
    before: dict[tuple[str, bool], dict[str, Any]] = {}
    after: dict[tuple[str, bool], dict[str, Any]] = {}
    same = 0
    for step in steps:
        operation, old, new = str(step.get("op")), step.get("oldState"), step.get("newState")
        same += operation == "same"
        if isinstance(old, dict):
            before[_key(old)] = old
        if isinstance(new, dict) and operation not in _GONE:
            after[_key(new)] = new
    counted = cast("dict[str, Any]", written.get("changeSummary") or {}).get("same")
    not_shown = max(0, counted - same) if isinstance(counted, int) else 0
    states = [*after.values(), *before.values()]
    return Program(
        _stack_name(states, name),
        tuple(_declared(list(after.values()), settings)),
        tuple(_declared(list(before.values()), settings)),
        not_shown,
        region,
    )


def _key(state: dict[str, Any]) -> tuple[str, bool]:
    return str(state.get("urn")), state.get("delete") is True


def _stack_name(states: list[dict[str, Any]], otherwise: str) -> str:
    """Return PROJECT/STACK from the first URN: urn:pulumi:STACK::PROJECT::TYPE::NAME."""
    for state in states:
        parts = str(state.get("urn", "")).split("::")
        if len(parts) >= 4 and parts[0].startswith("urn:pulumi:"):  # noqa: PLR2004 -- the parts of a URN
            return f"{parts[1]}/{parts[0].removeprefix('urn:pulumi:')}"
    return otherwise


def _declared(states: list[dict[str, Any]], settings: dict[str, Any]) -> Iterator[Declared]:
    """Yield the resources that a cloud or a cluster will hold, without components, providers and resources that are only read."""
    providers = {str(each.get("urn")): _fields(each, "inputs") for each in states if str(each.get("type")).startswith(_PROVIDERS)}
    for each in states:
        kind = str(each.get("type"))
        if kind == _STACK or kind.startswith(_PROVIDERS) or each.get("custom") is not True or each.get("external") is True:
            continue
        inputs, outputs = _fields(each, "inputs"), _fields(each, "outputs")
        provider = providers.get(str(each.get("provider", "")).rpartition("::")[0], {})
        depends = {name: tuple(map(str, urns or ())) for name, urns in _fields(each, "propertyDependencies").items()}
        place = _region(kind, inputs, outputs, provider, settings)
        yield Declared(str(each.get("urn")), kind, inputs, outputs, place, depends, each.get("delete") is True)


def _fields(state: dict[str, Any], name: str) -> dict[str, Any]:
    found = state.get(name)
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _region(kind: str, inputs: dict[str, Any], outputs: dict[str, Any], provider: dict[str, Any], settings: dict[str, Any]) -> str | None:
    cloud = kind.partition(":")[0]
    for fields in (inputs, outputs):
        for name in ("region", "location", "zone", "availabilityZone"):
            if found := region_of(fields.get(name)):
                return found
    for name in ("zone", "region"):
        # A provider's region of several resources: those of the zone, as Google's provider takes the zone's where both are set.
        if found := region_of(provider.get(name)) or region_of(settings.get(f"{cloud}:{name}")):
            return found
    return None


def region_of(place: Any) -> str | None:
    """Return the region of a region's or a zone's name, also at the end of a URL. None for anything else."""
    if not isinstance(place, str) or place == UNKNOWN:
        return None
    name = place.rpartition("/")[2]
    zone = _ZONE.fullmatch(name)
    return (zone[1] or zone[2]) if zone is not None else name if re.fullmatch(r"[a-z]+-[a-z]+\d+|[a-z]{2}(?:-[a-z]+)+-\d+", name) else None


NONE = Decimal(0)


@dataclass(frozen=True)
class UnitCounts:
    """Number of units, between the bounds of scaling. `most` is None if unbounded. `declared` is the number at first."""

    declared: Decimal
    least: Decimal
    most: Decimal | None

    def __mul__(self, by: Decimal | int) -> UnitCounts:
        return UnitCounts(self.declared * by, self.least * by, None if self.most is None else self.most * by)

    def __str__(self) -> str:
        text = f"{self.declared.normalize():f}"
        if self.least == self.declared == self.most:
            return text
        return f"{text} ({self.least.normalize():f} to {'any' if self.most is None else f'{self.most.normalize():f}'})"


def fixed(number: Decimal | int = 1) -> UnitCounts:
    """Return a constant number of units."""
    return UnitCounts(Decimal(number), Decimal(number), Decimal(number))


@dataclass(frozen=True)
class Limit:
    """A limit on an amount that all nodes together may have, and the amount of a node of each machine."""

    what: str
    most: Decimal
    of_a_node: dict[str, Decimal]


@dataclass(frozen=True)
class MachinePart:
    """Nodes of one of several machines: the first is the declared one, the dearest counts for the maximum.

    `limits` bound the nodes, however machines and capacity types are mixed. `managed`: of EKS Auto Mode, with its fee.
    """

    cloud: Vendor
    machines: tuple[str, ...]
    capacity_types: tuple[CapacityType, ...]
    nodes: UnitCounts
    limits: tuple[Limit, ...] = ()
    managed: bool = False


@dataclass(frozen=True)
class ServiceUnits:
    """Units of a service: a number for hourly items, else GiB, operations or keys in a month."""

    cloud: Vendor
    item: ServiceItem
    units: UnitCounts


@dataclass
class Billed:
    """Billed parts of one resource. `by_use`: parts that are billed by use; `missing`: values that would have to be known."""

    parts: list[MachinePart | ServiceUnits] = field(default_factory=list["MachinePart | ServiceUnits"])
    by_use: list[str] = field(default_factory=list[str])
    missing: list[str] = field(default_factory=list[str])

    def service(self, cloud: Vendor, item: ServiceItem, units: UnitCounts | Decimal | int = 1) -> None:
        """Adds units of a service."""
        self.parts.append(ServiceUnits(cloud, item, units if isinstance(units, UnitCounts) else fixed(units)))

    def machine(self, cloud: Vendor, machines: tuple[str, ...], capacity_type: CapacityType, nodes: UnitCounts) -> None:
        """Adds nodes."""
        self.parts.append(MachinePart(cloud, machines, (capacity_type,), nodes))
