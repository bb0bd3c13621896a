"""What the clouds make of each resource type: ids, outputs, what refers to what. The table is cloud_resources.yaml."""

from __future__ import annotations

import re
import uuid
import zlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

DATA = Path(__file__).with_name("cloud_resources.yaml")

MADE_BY_THE_CLOUD = "made by the cloud"

_HOLE = re.compile(r"(?<!{){(hash:)?(\w+)}(?!})")


@dataclass(frozen=True)
class Reference:
    """An input that leads to another resource. `holds` says that the other cannot be deleted as long as this is there."""

    path: str
    tokens: tuple[str, ...]
    holds: bool

    def values(self, inputs: Any) -> Iterator[str]:
        """What the input says; a path such as `subnetIds[]` or `subnetworks[].name` has several."""
        yield from _values_at(inputs, self.path.split("."))


@dataclass(frozen=True)
class ResourceKind:
    """One type. `form` is how its id follows from the inputs, None where the cloud makes an id that begins with `prefix`."""

    token: str
    form: str | None
    prefix: str
    outputs: Mapping[str, Any]
    references: tuple[Reference, ...]
    put: bool
    once: tuple[str, ...]
    taken: str

    def new_id(self, known: Mapping[str, Any]) -> str:
        """The id of a new resource of `known` values. Raises KeyError where one is missing that the id is made of."""
        if self.form is not None:
            return filled(self.form, known)
        unique = uuid.uuid4().hex
        return f"{self.prefix}{unique[:17]}" if self.prefix else str(uuid.UUID(unique))

    def answered(self, known: Mapping[str, Any]) -> dict[str, Any]:
        """What the cloud says of a resource besides its inputs."""
        return {key: filled(value, known) if isinstance(value, str) else value for key, value in self.outputs.items()}


def filled(form: str, known: Mapping[str, Any]) -> str:
    """A text with its holes filled; `{{x}}` stays `{{x}}`. Raises KeyError where a value is missing."""

    def value(match: re.Match[str]) -> str:
        text = str(known[match[2]])
        return str(zlib.crc32(text.encode())) if match[1] else text

    return _HOLE.sub(value, form)


@cache
def kinds() -> dict[str, ResourceKind]:
    """Every type that the stand-in clouds know, by Pulumi's type token."""
    table = yaml.load(DATA.read_text(encoding="utf-8"), yaml.CSafeLoader)
    return {f"{cloud}:{name}": _kind(cloud, name, facts) for cloud, types in table.items() for name, facts in types.items()}


def id_forms() -> dict[str, str]:
    """How the id of each type follows from its inputs, or that the cloud makes it."""
    # The name of a node group that only has a prefix is made by the provider.
    chosen = {"aws:eks/nodeGroup:NodeGroup"}
    return {
        token: MADE_BY_THE_CLOUD if kind.form is None or "{hash:" in kind.form or token in chosen else kind.form
        for token, kind in kinds().items()
        if not token.startswith("kubernetes:")
    }


def _kind(cloud: str, name: str, facts: dict[str, Any]) -> ResourceKind:
    references = [
        Reference(path, tuple(f"{cloud}:{each}" for each in said["to"]), said.get("holds", False))
        for path, said in facts.get("refers", {}).items()
    ]
    usual = "googleapi: Error 409: Already exists: {id}., alreadyExists" if cloud == "gcp" else "{id} already exists"
    return ResourceKind(
        f"{cloud}:{name}",
        facts.get("id"),
        facts.get("made", ""),
        facts.get("outputs", {}),
        tuple(references),
        facts.get("put", False),
        tuple(facts.get("once", ())),
        facts.get("taken", usual),
    )


def _values_at(value: Any, path: list[str]) -> Iterator[str]:
    if not path:
        if isinstance(value, str):
            yield value
        return
    key, rest = path[0], path[1:]
    inner = value.get(key.removesuffix("[]")) if isinstance(value, dict) else None
    if key.endswith("[]"):
        for each in inner or []:
            yield from _values_at(each, rest)
    else:
        yield from _values_at(inner, rest)
