"""The monthly cost that a program of Flexspot declares."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policies.spending import MonthlyCost

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policies.reading.source import Source


def read(source: Source) -> Iterator[MonthlyCost]:
    """The one view of the component."""
    if (source.family, source.kind) == ("flexspot:index", "MonthlyCost"):
        teams = source.fields.at("teams").parts().named
        spenders = (("environment", source.fields.at("environment")), *((f"teams[{place}]", team) for place, team in teams))
        yield MonthlyCost(source.identity, True, False, spenders)
