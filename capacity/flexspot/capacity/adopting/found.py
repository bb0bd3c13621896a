"""Findings about an existing platform: pools, teams and cohorts in Flexspot's terms, and parts without an equivalent."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.catalog.machines import Vendor, machines_of
from flexspot.capacity.values.names import NAME
from flexspot.capacity.values.shown_text import printable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flexspot.capacity.catalog.machines import Machine
    from flexspot.capacity.catalog.platform import Platform

LONGEST_NAME: Final = 40

SERVED: Final = {
    CapacityType.SPOT: ("training", "interactive", "best-effort"),
    CapacityType.ON_DEMAND: ("inference",),
    CapacityType.RESERVED: ("training",),
    CapacityType.FLEX_START: ("training",),
    CapacityType.QUEUED: ("training",),
}
"""Shipped classes that the proposal lets a pool serve if nothing on it names a class: those that use its capacity type."""


_OWN_MARKS: Final = re.compile(
    r"flexspot\.dev/|nvidia\.com/gpu$|aws\.amazon\.com/neuron$|google\.com/tpu$|cloud\.google\.com/|kubernetes\.io/arch$|goog-"
)


@dataclass(frozen=True)
class Block:
    """An object of a state or a manifest, read without trust: a value of another type than requested counts as missing."""

    fields: dict[str, Any]

    def text(self, *path: str) -> str | None:
        """Return a non-empty text, or None."""
        found = self.at(*path)
        return found if isinstance(found, str) and found else None

    def number(self, *path: str) -> int | None:
        """Return an integer, also if it is written as text, or None."""
        found = self.at(*path)
        if isinstance(found, str) and re.fullmatch(r"-?\d{1,12}", found):
            return int(found)
        return found if isinstance(found, int) and not isinstance(found, bool) and abs(found) < 10**12 else None

    def true(self, *path: str) -> bool:
        """Return whether the value is true."""
        return self.at(*path) in (True, "true")

    def block(self, *path: str) -> Block:
        """Return a block, or an empty one. Of a list it is the first, because Terraform writes a block that may occur once as a list."""
        found = self.at(*path)
        if isinstance(found, list) and found:
            found = cast("list[Any]", found)[0]
        return Block(cast("dict[str, Any]", found) if isinstance(found, dict) else {})

    def blocks(self, *path: str) -> list[Block]:
        """Return the blocks of a list, or a single block in its place."""
        found = self.at(*path)
        listed = cast("list[Any]", found) if isinstance(found, list) else [found]
        return [Block(cast("dict[str, Any]", each)) for each in listed if isinstance(each, dict)]

    def texts(self, *path: str) -> list[str]:
        """Return the texts of a list."""
        found = self.at(*path)
        return [each for each in cast("list[Any]", found) if isinstance(each, str)] if isinstance(found, list) else []

    def words(self, *path: str) -> dict[str, str]:
        """Return texts by name, such as labels."""
        found = self.at(*path)
        fields = cast("dict[Any, Any]", found) if isinstance(found, dict) else {}
        return {key: value for key, value in fields.items() if isinstance(key, str) and isinstance(value, str)}

    def at(self, *path: str) -> Any:
        """Return the value at a path, or None. Of a list on the path, the first item counts."""
        value: Any = self.fields
        for step in path:
            if isinstance(value, list):
                value = cast("list[Any]", value)[0] if value else None
            value = cast("dict[str, Any]", value).get(step) if isinstance(value, dict) else None
        return value

    def __bool__(self) -> bool:
        return bool(self.fields)


@dataclass(frozen=True)
class Remark:
    """Something that the proposal does not contain."""

    addresses: tuple[str, ...]
    """Addresses in the source."""
    why: str
    """Reason why it is left out."""
    remedy: str


@dataclass(frozen=True)
class Guess:
    """A value of the proposal that was not in the source."""

    path: str
    """Its path in the settings."""
    why: str
    """Basis of the guess."""


@dataclass(frozen=True)
class Known:
    """An existing resource."""

    type: str
    """Pulumi's type."""
    id: str
    """Pulumi's id."""
    name: str
    """The resource's name in its cloud or cluster, such as a node pool's."""
    address: str
    """Address in the source."""


@dataclass
class FoundPool:
    """A pool of GPU machines."""

    name: str
    address: str
    machines: list[str]
    capacity_type: CapacityType
    limits: dict[str, int] = field(default_factory=dict[str, int])
    """Its settings `min_nodes` and `max_nodes` or `max_gpus`."""
    zones: list[str] = field(default_factory=list[str])
    serves: list[str] = field(default_factory=list[str])
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    """Its further settings."""
    guesses: dict[str, str] = field(default_factory=dict[str, str])
    """Reasons for guessed settings, by the setting's name."""
    labels: dict[str, str] = field(default_factory=dict[str, str])
    known: Known | None = None


@dataclass
class FoundTeam:
    """A team."""

    name: str
    address: str
    settings: dict[str, Any] = field(default_factory=dict[str, Any])
    """Settings of the team in a stack file. GPUs are by pool."""
    guesses: dict[str, str] = field(default_factory=dict[str, str])


@dataclass
class Found:
    """All findings."""

    cloud: Platform | None = None
    settings: dict[str, Any] = field(default_factory=dict[str, Any])
    """Settings of the stack without pools, teams and cohorts."""
    pools: list[FoundPool] = field(default_factory=list[FoundPool])
    teams: list[FoundTeam] = field(default_factory=list[FoundTeam])
    cohorts: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    guesses: list[Guess] = field(default_factory=list[Guess])
    remarks: list[Remark] = field(default_factory=list[Remark])
    known: list[Known] = field(default_factory=list[Known])
    tags: dict[str, str] = field(default_factory=dict[str, str])

    def leave_out(self, address: str | Iterable[str], why: str, remedy: str) -> None:
        """Record what is not mapped."""
        self.remarks.append(Remark((address,) if isinstance(address, str) else tuple(address), why, remedy))

    def leave_marks_out(self, address: str, taints: Iterable[str | None], labels: Iterable[str] = ()) -> None:
        """Record taints and labels of a pool other than those of its device, capacity type and class."""
        for marks, keys, remedy in (
            ("taints", taints, "use a class of your own under `classes` for what the taint keeps apart"),
            ("labels", labels, "let work select the pool by its name or class"),
        ):
            if others := sorted(key for key in keys if key and not _OWN_MARKS.match(key)):
                why = f"a pool has the {marks} of its device, capacity type and class, and no others"
                self.leave_out(f"{address} {marks} ({', '.join(others)})", why, remedy)

    def guess(self, path: str, why: str) -> None:
        """Record that the value at a path was concluded rather than read."""
        self.guesses.append(Guess(path, why))

    def pool_name(self, wanted: str, address: str) -> tuple[str, str | None]:
        """Return a unique name for a pool, and the reason if it differs from the pool's present name, else None."""
        taken = {each.name for each in self.pools}
        name = name_of(wanted)
        number = 2
        while name in taken:
            name = f"{name_of(wanted)[: LONGEST_NAME - len(str(number)) - 1]}-{number}"
            number += 1
        return name, None if name == wanted else f"{address} has another name, which is taken or is not a valid name of a pool"


def one_line(text: str) -> str:
    """Return untrusted text for a comment or a message: on one line, without characters that control a terminal."""
    return printable(" ".join(text.split()))


def name_of(wanted: str) -> str:
    """Return the nearest valid name: lowercase letters, digits and inner hyphens, starting with a letter."""
    if re.fullmatch(NAME, wanted):
        return wanted
    plain = re.sub(r"[^a-z0-9]+", "-", wanted.lower()).strip("-")
    plain = plain if plain[:1].isalpha() else f"x-{plain}".rstrip("-")
    return plain[:LONGEST_NAME].rstrip("-")


def machine_with_gpus(cloud: Vendor, name: str) -> Machine | None:
    """Return the catalog's machine of that name if it has GPUs or if GPUs can be attached to it, else None."""
    machine = machines_of(cloud).get(name)
    return machine if machine is not None and machine.gpu is not None else None


def with_the_same_gpus(cloud: Vendor, names: list[str]) -> list[str]:
    """Return the machines that have the same GPUs as the first one with any, in their order."""
    machines = [machine for name in dict.fromkeys(names) if (machine := machine_with_gpus(cloud, name)) is not None]
    return [each.name for each in machines if each.gpu == machines[0].gpu]


def gpus_of(cloud: Vendor, pool: FoundPool) -> int | None:
    """Return the GPUs of one node of a pool, or None if the catalog does not have the number."""
    if isinstance(said := pool.options.get("gpus_per_node"), int):
        return said
    machine = machines_of(cloud).get(pool.machines[0])
    return machine.gpu.counts[0] if machine is not None and machine.gpu is not None and len(machine.gpu.counts) == 1 else None
