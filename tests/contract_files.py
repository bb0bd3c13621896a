"""Price files of users, as for a contract."""

from __future__ import annotations

from typing import Any

from flexspot.capacity.catalog.price_book import PriceFile

CONTRACT = {"contract": {"citation": "the contract of May", "as_of": "2026-11-01", "verified": True}}


def contract_file(cloud: str = "aws", **rows: list[dict[str, Any]]) -> PriceFile:
    """Return a file with these rows, each from the contract of May."""
    sourced = {name: [{"source": "contract", **each} for each in of_name] for name, of_name in rows.items()}
    return PriceFile.model_validate({"cloud": cloud, "sources": CONTRACT, **sourced})
