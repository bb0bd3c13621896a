"""A price file with fresh rows in it: what changed, and how it is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import yaml

from capacity.price_book import Price, PriceFile

if TYPE_CHECKING:
    from collections.abc import Iterable
    from decimal import Decimal

    from capacity.machines import Cloud
    from capacity.price_book import PriceKey
    from capacity.records import Source

_HEADER = """\
# Prices of one's own, before the shipped ones: `prices_file` of a stack and `--prices` of commands take this file.
# `flexspot prices refresh` writes it. It replaces rows that it asked for, keeps all others, and keeps no comments.
"""


@dataclass(frozen=True)
class PriceChange:
    """A row that is new (`before` is None) or has another price; US dollars an hour."""

    key: PriceKey
    before: Decimal | None
    after: Decimal


def with_fresh_rows(file: PriceFile | None, cloud: Cloud, rows: Iterable[Price], sources: dict[str, Source]) -> PriceFile:
    """`file` with the fresh rows in place of its own of the same machine, region and capacity type, and the sources that rows name."""
    known = PriceFile(cloud=cloud, sources={}) if file is None else file
    by_key = {_key(each): each for each in known.prices} | {_key(each): each for each in rows}
    prices = [by_key[key] for key in sorted(by_key)]
    used = {each.source for each in (*prices, *known.services)}
    kept = {name: source for name, source in (known.sources | sources).items() if name in used}
    return PriceFile(cloud=cloud, sources=kept, services=known.services, prices=prices)


def changes(before: PriceFile | None, after: PriceFile) -> list[PriceChange]:
    """What differs, by machine, region and capacity type."""
    known = {} if before is None else {_key(each): each.usd_per_hour for each in before.prices}
    found = ((_key(each), each.usd_per_hour) for each in after.prices)
    return [PriceChange(key, known.get(key), usd) for key, usd in found if known.get(key) != usd]


def as_yaml(file: PriceFile) -> str:
    """The file as text, a row a line. Money is quoted, so that no reader takes it for a float."""
    sources = yaml.safe_dump({"sources": {name: each.model_dump() for name, each in file.sources.items()}}, sort_keys=False, width=120)
    services = [_row(each.model_dump(mode="json", exclude_none=True)) for each in file.services]
    prices = [_row(each.model_dump(mode="json")) for each in file.prices]
    parts = [_HEADER, f"cloud: {file.cloud}\n", sources]
    for name, rows in (("services", services), ("prices", prices)):
        if rows:
            parts += [f"{name}:\n", *rows]
    return "".join(parts)


def _row(fields: dict[str, str]) -> str:
    return f"  - {yaml.safe_dump(fields, default_flow_style=True, sort_keys=False, width=10_000).strip()}\n"


def _key(price: Price) -> PriceKey:
    return price.machine, price.region, price.capacity_type
