"""Costs in euros, by a file of rates: what is looked for in every form of them."""

from __future__ import annotations

import html
import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

RATE_FILE = """
currency: EUR
rates:
  - {per_usd: "0.8612", as_of: 2026-10-30, source: "ECB, reference rate", month: 2026-10}
  - {per_usd: "0.8655", as_of: 2026-11-27, source: "ECB, reference rate"}
"""
RATE = Decimal("0.8655")
RATE_WORDS = "1 USD is 0.8655 EUR, of 2026-11-27, ECB, reference rate."


def dollars_left(text: str, quoted: Iterable[str] = ()) -> list[str]:
    """Where a report still speaks of dollars, but for its rate and for what it quotes: sources' own words, and what policies say."""
    told = " ".join(html.unescape(text).split())
    for known in (RATE_WORDS.removesuffix("."), "Budgets are set, and compared, in USD", "What policies say is in USD", *quoted):
        told = told.replace(" ".join(known.split()), "")
    return [told[max(0, at - 60) : at + 20] for mark in ("USD", "$", "ollar") for at in range(len(told)) if told.startswith(mark, at)]


def sources_of(data: Any) -> set[str]:
    """Every source of a price in a report's JSON."""
    if isinstance(data, dict):
        own = {data["source"]} if isinstance(data.get("source"), str) else set()
        return own.union(*map(sources_of, data.values()))
    return set().union(*map(sources_of, data)) if isinstance(data, list) else set()


def in_usd_alone(data: Any) -> Any:
    """A converted report's JSON without what the currency added to it."""
    if isinstance(data, dict):
        added = {"currency", "exchange_rate"}
        return {name: in_usd_alone(each) for name, each in data.items() if name not in added and "eur" not in name.split("_")}
    return [in_usd_alone(each) for each in data] if isinstance(data, list) else data


def amounts(data: Any) -> Iterator[tuple[str, Decimal, Decimal]]:
    """Each amount of a converted report's JSON: its name, US dollars, euros; KeyError where one of the two is missing."""
    if isinstance(data, list):
        for each in data:
            yield from amounts(each)
    elif isinstance(data, dict):
        for name, each in data.items():
            words = name.split("_")
            if len(words) > 1 and "usd" in words and name not in {"expected_usd_without", "per_usd"}:
                beside = data["_".join("eur" if word == "usd" else word for word in words)]
                pairs = {"": (each, beside)} if not isinstance(each, dict) else {key: (each[key], beside[key]) for key in each}
                yield from ((f"{name}.{key}", Decimal(usd), Decimal(eur)) for key, (usd, eur) in pairs.items() if usd is not None)
                assert all((usd is None) == (eur is None) for usd, eur in pairs.values()), name
            else:
                yield from amounts(each)


def assert_both_currencies(converted: str, usd: str) -> dict[str, Any]:
    """What holds of a converted report's JSON beside the one in US dollars, which it contains; the former, read."""
    found = json.loads(converted)
    assert (found["currency"], found["exchange_rate"]["per_usd"], found["exchange_rate"]["as_of"]) == ("EUR", "0.8655", "2026-11-27")
    assert json.dumps(in_usd_alone(found), indent=2) + "\n" == usd
    told = list(amounts(found))
    assert told
    assert [each for each in told if abs(each[2] - each[1] * RATE) >= Decimal("0.02")] == []
    return found


def tables(markdown: str) -> list[list[int]]:
    """How many bars each row of each of a comment's tables has."""
    found: list[list[int]] = [[]]
    for line in markdown.splitlines():
        if line.startswith("|"):
            found[-1].append(line.count("|"))
        elif found[-1]:
            found.append([])
    return [each for each in found if each]
