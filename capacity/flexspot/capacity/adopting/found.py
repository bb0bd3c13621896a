"""What was found of a platform that somebody else set up: pools, teams and cohorts in Flexspot's words, and what has no word there."""

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
"""Which shipped classes a pool is proposed to serve, where nothing on it says so: those whose order has its capacity type."""


_OWN_MARKS: Final = re.compile(
    r"flexspot\.dev/|nvidia\.com/gpu$|aws\.amazon\.com/neuron$|google\.com/tpu$|cloud\.google\.com/|kubernetes\.io/arch$|goog-"
)


@dataclass(frozen=True)
class Block:
    """An object of a state or a manifest, read without trust: what has another type than is asked for counts as not said."""

    fields: dict[str, Any]

    def text(self, *path: str) -> str | None:
        """A text that is not empty."""
        found = self.at(*path)
        return found if isinstance(found, str) and found else None

    def number(self, *path: str) -> int | None:
        """A whole number, also one that is written as text."""
        found = self.at(*path)
        if isinstance(found, str) and re.fullmatch(r"-?\d{1,12}", found):
            return int(found)
        return found if isinstance(found, int) and not isinstance(found, bool) and abs(found) < 10**12 else None

    def true(self, *path: str) -> bool:
        """Whether it is said to be so."""
        return self.at(*path) in (True, "true")

    def block(self, *path: str) -> Block:
        """A block; of a list of blocks the first, as Terraform writes one that may stand once. Empty where there is none."""
        found = self.at(*path)
        if isinstance(found, list) and found:
            found = cast("list[Any]", found)[0]
        return Block(cast("dict[str, Any]", found) if isinstance(found, dict) else {})

    def blocks(self, *path: str) -> list[Block]:
        """The blocks of a list, or the one that stands in its place."""
        found = self.at(*path)
        listed = cast("list[Any]", found) if isinstance(found, list) else [found]
        return [Block(cast("dict[str, Any]", each)) for each in listed if isinstance(each, dict)]

    def texts(self, *path: str) -> list[str]:
        """The texts of a list."""
        found = self.at(*path)
        return [each for each in cast("list[Any]", found) if isinstance(each, str)] if isinstance(found, list) else []

    def words(self, *path: str) -> dict[str, str]:
        """Texts by name, such as labels."""
        found = self.at(*path)
        fields = cast("dict[Any, Any]", found) if isinstance(found, dict) else {}
        return {key: value for key, value in fields.items() if isinstance(key, str) and isinstance(value, str)}

    def at(self, *path: str) -> Any:
        """Whatever stands at a path, in the first of the blocks where several may be; None for nothing."""
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
    """Something that is not in the proposal. `addresses` are where it stands; `why` it is left out, and what `remedy` there is."""

    addresses: tuple[str, ...]
    why: str
    remedy: str


@dataclass(frozen=True)
class Guess:
    """A value of the proposal that nothing said: its `path` in the settings, and what it was concluded from."""

    path: str
    why: str


@dataclass(frozen=True)
class Known:
    """A resource that is there: Pulumi's `type` and `id` of it, and by which `address` it was found.

    `name` is the resource's own in its cloud or cluster, such as a node pool's.
    """

    type: str
    id: str
    name: str
    address: str


@dataclass
class FoundPool:
    """A pool of GPU machines.

    `limits` are its settings `min_nodes` and `max_nodes` or `max_gpus`, `options` further ones; `guesses` are by the name of a setting.
    """

    name: str
    address: str
    machines: list[str]
    capacity_type: CapacityType
    limits: dict[str, int] = field(default_factory=dict[str, int])
    zones: list[str] = field(default_factory=list[str])
    serves: list[str] = field(default_factory=list[str])
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    guesses: dict[str, str] = field(default_factory=dict[str, str])
    labels: dict[str, str] = field(default_factory=dict[str, str])
    known: Known | None = None


@dataclass
class FoundTeam:
    """A team. `settings` are those of a team in a stack file; GPUs are by pool."""

    name: str
    address: str
    settings: dict[str, Any] = field(default_factory=dict[str, Any])
    guesses: dict[str, str] = field(default_factory=dict[str, str])


@dataclass
class Found:
    """All that was found. `settings` are those of the stack but for pools, teams and cohorts."""

    cloud: Platform | None = None
    settings: dict[str, Any] = field(default_factory=dict[str, Any])
    pools: list[FoundPool] = field(default_factory=list[FoundPool])
    teams: list[FoundTeam] = field(default_factory=list[FoundTeam])
    cohorts: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    guesses: list[Guess] = field(default_factory=list[Guess])
    remarks: list[Remark] = field(default_factory=list[Remark])
    known: list[Known] = field(default_factory=list[Known])
    tags: dict[str, str] = field(default_factory=dict[str, str])

    def leave_out(self, address: str | Iterable[str], why: str, remedy: str) -> None:
        """Notes what is not mapped."""
        self.remarks.append(Remark((address,) if isinstance(address, str) else tuple(address), why, remedy))

    def leave_marks_out(self, address: str, taints: Iterable[str | None], labels: Iterable[str] = ()) -> None:
        """Notes taints and labels of a pool that are not those of its device, capacity type and class."""
        for marks, keys, remedy in (
            ("taints", taints, "use a class of your own under `classes` for what the taint keeps apart"),
            ("labels", labels, "let work select the pool by its name or class"),
        ):
            if others := sorted(key for key in keys if key and not _OWN_MARKS.match(key)):
                why = f"a pool has the {marks} of its device, capacity type and class, and no others"
                self.leave_out(f"{address} {marks} ({', '.join(others)})", why, remedy)

    def guess(self, path: str, why: str) -> None:
        """Notes that the value at a path was concluded and not read."""
        self.guesses.append(Guess(path, why))

    def pool_name(self, wanted: str, address: str) -> tuple[str, str | None]:
        """A name for a pool that no other has, and why it is not the one that it had; None where it is."""
        taken = {each.name for each in self.pools}
        name = name_of(wanted)
        number = 2
        while name in taken:
            name = f"{name_of(wanted)[: LONGEST_NAME - len(str(number)) - 1]}-{number}"
            number += 1
        return name, None if name == wanted else f"{address} has another name, which is taken or is not a valid name of a pool"


def one_line(text: str) -> str:
    """Somebody else's text in a comment or a message: on one line, with nothing in it that a terminal obeys."""
    return printable(" ".join(text.split()))


def name_of(wanted: str) -> str:
    """The nearest name that settings take: small letters, digits and inner hyphens, beginning with a letter."""
    if re.fullmatch(NAME, wanted):
        return wanted
    plain = re.sub(r"[^a-z0-9]+", "-", wanted.lower()).strip("-")
    plain = plain if plain[:1].isalpha() else f"x-{plain}".rstrip("-")
    return plain[:LONGEST_NAME].rstrip("-")


def machine_with_gpus(cloud: Vendor, name: str) -> Machine | None:
    """A machine of the catalog that has GPUs, or to which they are attached; None for any other."""
    machine = machines_of(cloud).get(name)
    return machine if machine is not None and machine.gpu is not None else None


def with_the_same_gpus(cloud: Vendor, names: list[str]) -> list[str]:
    """Those of some machines that have the GPUs of the first one with any, in their order."""
    machines = [machine for name in dict.fromkeys(names) if (machine := machine_with_gpus(cloud, name)) is not None]
    return [each.name for each in machines if each.gpu == machines[0].gpu]


def gpus_of(cloud: Vendor, pool: FoundPool) -> int | None:
    """GPUs of one node of a pool; None where the catalog does not say it."""
    if isinstance(said := pool.options.get("gpus_per_node"), int):
        return said
    machine = machines_of(cloud).get(pool.machines[0])
    return machine.gpu.counts[0] if machine is not None and machine.gpu is not None and len(machine.gpu.counts) == 1 else None
