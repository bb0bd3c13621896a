"""PromQL expressions that rules judge, wherever they stand, and what gathers the series that they ask for."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from capacity.values.verdict import not_applicable, undecided
from policies.inventory.views import View
from policies.metrics.promql import parsed
from policies.values.unknown import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from capacity.values.verdict import Outcome
    from policies.metrics.promql import Node
    from policies.values.field import Field


@dataclass(frozen=True)
class Query(View):
    """One expression. `where` is the path to it and `role` what it is there for, such as `alert GpuIdle`.

    `templated`: a dashboard fills in variables before it asks, so that it may be no PromQL as it stands.
    """

    where: str
    role: str
    expression: Field
    templated: bool = False

    @property
    def described(self) -> str:
        """The expression as messages name it."""
        return f"{self.where} ({self.role})"


@dataclass(frozen=True)
class Exporter(View):
    """A program whose series are gathered: the object that installs it, or the one that says how it is scraped.

    `labels` are what that adds to its series: names of labels by series, both of which may end in *. Unless `complete`, there may be more.
    """

    program: str
    labels: Mapping[str, frozenset[str]]
    complete: bool

    def gives(self, series: str, label: str) -> bool:
        """Whether a label is among what is added to a series."""
        return any(
            fnmatchcase(series, pattern) and any(fnmatchcase(label, each) for each in added) for pattern, added in self.labels.items()
        )


def tree_of(query: Query) -> Node | Outcome:
    """The expression as a tree, or the outcome of every rule about expressions where it cannot be had."""
    text = query.expression.text()
    if text is UNKNOWN:
        return undecided(f"{query.described} is not known yet")
    tree = parsed(text or "")
    if tree is not None:
        return tree
    if query.templated or not text:
        return not_applicable("no PromQL as it stands")
    return undecided(f"{query.described} cannot be read as PromQL, or is too long to be")
