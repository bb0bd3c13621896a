"""How a report in another currency says so to programs: by the names of its amounts, and with its rate in every form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from capacity.catalog.exchange_rates import US_DOLLARS
from infra.cli.spreadsheets import spreadsheet_cell

if TYPE_CHECKING:
    from capacity.chargeback.report import Report


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


def rate_data(report: Report) -> dict[str, Any]:
    """The rate, its day and its source."""
    if report.into is None:
        return {}
    rate = report.into.rate
    return {"exchange_rate": {"per_usd": f"{rate.per_usd:f}", "as_of": rate.as_of.isoformat(), "source": rate.source, "month": rate.month}}


def rate_columns(report: Report) -> dict[str, str]:
    """The same as the last columns of a table: nothing of a report in US dollars."""
    if report.into is None:
        return {}
    rate = report.into.rate
    told = {"currency": report.currency, "per_usd": f"{rate.per_usd:f}", "rate_as_of": rate.as_of.isoformat()}
    return told | {"rate_source": spreadsheet_cell(rate.source)}
