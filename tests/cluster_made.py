"""Objects that a cluster, its cloud or a chart creates itself: the list in cluster_made.yaml, and lookups in it."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from flexspot.capacity.catalog.data_files import Record, SourcedFile, read_records

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

DATA = Path(__file__).with_name("cluster_made.yaml")


class MadeObject(Record):
    """Kubernetes objects of a kind that other software creates."""

    kind: str
    names: tuple[str, ...] = Field(min_length=1)
    maker: str
    source: str
    namespaces: tuple[str, ...] = ("*",)
    """Namespaces that it applies to. Default: all, and cluster-scoped objects."""

    def holds(self, kind: str, name: str, namespace: str) -> bool:
        return self.kind in {"*", kind} and _any(self.names, name) and _any(self.namespaces, namespace)


class MadeResource(Record):
    """Cloud resources that other software creates, by the input that names them."""

    type: str
    input: str
    names: tuple[str, ...] = Field(min_length=1)
    maker: str
    source: str
    unless_before: str | None = None
    unless: str | None = None

    def holds(self, token: str, inputs: Mapping[str, Any]) -> bool:
        # An unknown value is a mark, which only a pattern for any value matches.
        name = inputs.get(self.input)
        return token == self.type and _any(self.names, name if isinstance(name, str) else "")


class ClusterMade(SourcedFile):
    """The whole list."""

    objects: tuple[MadeObject, ...]
    resources: tuple[MadeResource, ...]


@cache
def cluster_made() -> ClusterMade:
    """Return the list, read once."""
    return read_records(DATA, ClusterMade)


def maker_of(kind: str, name: str, namespace: str = "", *, makers: Iterable[str] | None = None) -> str | None:
    """Return the software that creates the object. None if none is known. `makers` restricts the search."""
    wanted = None if makers is None else set(makers)
    found = (
        each.maker for each in cluster_made().objects if each.holds(kind, name, namespace) and (wanted is None or each.maker in wanted)
    )
    return next(found, None)


def _any(patterns: Iterable[str], text: str) -> bool:
    return any(fnmatchcase(text, pattern) for pattern in patterns)
