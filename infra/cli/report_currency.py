"""The currency of a report: the file that a person gives for it, and how the report says so in every form."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from capacity.catalog.exchange_rates import US_DOLLARS, ExchangeRateFile, InCurrency, read_exchange_rates
from capacity.values.shown_text import spreadsheet_cell
from infra.cli.given_files import given_file

if TYPE_CHECKING:
    from capacity.chargeback.report import Report

Currency = Annotated[
    Path | None,
    typer.Option(
        "--currency", metavar="FILE", help="A file with a currency and exchange rates: amounts are shown in it. Default: US dollars."
    ),
]


def given_rates(path: Path) -> ExchangeRateFile:
    """The file of `--currency`. Raises ExplainedError with everything that is wrong with it."""
    return given_file(path, read_exchange_rates, "its form is in docs/guides/chargeback.md")


def newest_rate(path: Path | None) -> InCurrency | None:
    """The currency and the rate that a month to come is told in; None: in US dollars. Raises what `given_rates` does."""
    return None if path is None else given_rates(path).newest()


def currency_of(into: InCurrency | None) -> str:
    """In what amounts are told."""
    return US_DOLLARS if into is None else into.currency


def rate_lines(into: InCurrency | None, *more: str) -> list[str]:
    """The rate, its day and its source, and what else is to be said of amounts; nothing of a report in US dollars."""
    return [] if into is None else [f"{'. '.join((f'{into}', *more))}."]


BUDGETS_ARE_CONVERTED = f"Budgets are set, and compared, in {US_DOLLARS}"
OWN_WORDS_ARE_NOT = f"What policies say is in {US_DOLLARS}"


def in_currency(name: str, currency: str) -> str:
    """The name of an amount: total_usd, or total_eur. Prices an hour keep theirs, as they are in US dollars."""
    amount = name == "usd" or name.endswith("_usd")
    return name.removesuffix("usd") + currency.lower() if amount else name


def renamed(data: Any, currency: str) -> Any:
    """Plain data with its amounts so named."""
    if currency == US_DOLLARS:
        return data
    if isinstance(data, dict):
        return {in_currency(str(name), currency): renamed(each, currency) for name, each in data.items()}
    return [renamed(each, currency) for each in data] if isinstance(data, list) else data


def beside(data: Any, told: Any, into: InCurrency) -> Any:
    """The plain `data` of a report in US dollars, with each amount again behind it, as the same report `told` in the currency has it.

    An amount has `usd` among the words of its name: beside expected_usd there is expected_eur. A price, whose name is `usd` alone, has none
    beside it: the cloud sells in US dollars.
    """
    if isinstance(data, dict):
        found: dict[str, Any] = {}
        for name, each in data.items():
            words = name.split("_")
            if len(words) > 1 and "usd" in words and not isinstance(each, list):
                found[name] = each
                found["_".join(into.currency.lower() if word == "usd" else word for word in words)] = told[name]
            else:
                found[name] = beside(each, told[name], into)
        return found
    if isinstance(data, list):
        return [beside(*each, into) for each in zip(data, told, strict=True)]
    return data


def rate_data(into: InCurrency | None) -> dict[str, Any]:
    """The rate, its day and its source."""
    if into is None:
        return {}
    rate = into.rate
    return {"exchange_rate": {"per_usd": f"{rate.per_usd:f}", "as_of": rate.as_of.isoformat(), "source": rate.source, "month": rate.month}}


def rate_columns(report: Report) -> dict[str, str]:
    """The same as the last columns of a table: nothing of a report in US dollars."""
    if report.into is None:
        return {}
    rate = report.into.rate
    told = {"currency": report.currency, "per_usd": f"{rate.per_usd:f}", "rate_as_of": rate.as_of.isoformat()}
    return told | {"rate_source": spreadsheet_cell(rate.source)}
