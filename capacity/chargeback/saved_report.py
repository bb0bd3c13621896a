"""A report, read again from the JSON that `flexspot chargeback --format json` writes: what all who read one have in common."""

from __future__ import annotations

import json
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from capacity.catalog.exchange_rates import US_DOLLARS

if TYPE_CHECKING:
    from pathlib import Path

MAX_REPORT_BYTES = 256 * 2**20
"""No report is longer: it holds sums."""


class ReportError(ValueError):
    """A report that cannot be used, and why."""


class Part(BaseModel):
    """Reports say more than is needed of them."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)


Cents = Annotated[Decimal, Field(ge=0, le=10**15, decimal_places=2)]


class SavedPeriod(Part):
    """Its times are in ISO 8601."""

    name: str
    start: str = Field(alias="from")
    end: str = Field(alias="to")


class SavedReport(Part):
    """What every reader needs."""

    period: SavedPeriod
    complete: bool
    node_usd: Cents
    currency: str = US_DOLLARS


ReportT = TypeVar("ReportT", bound=SavedReport)


def read_saved(path: Path, model: type[ReportT]) -> tuple[ReportT, int, int]:
    """The report, and its period in seconds of Unix time. Raises ReportError for a file that is no such report, OSError for no file."""
    if path.stat().st_size > MAX_REPORT_BYTES:
        raise ReportError(f"it is longer than {MAX_REPORT_BYTES // 2**20} MiB, as no report is")
    try:
        report = model.model_validate(_in_own_names(json.loads(path.read_text(encoding="utf-8"))))
        start, end = (int(datetime.fromisoformat(each).timestamp()) for each in (report.period.start, report.period.end))
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, each['loc'])) or 'it'}: {each['msg']}" for each in error.errors()[:5])
        raise ReportError(f"it is not a report of flexspot chargeback --format json: {problems}") from error
    except (ValueError, RecursionError) as error:
        raise ReportError(f"it is not a report of flexspot chargeback --format json: {error}") from error
    return report, start, end


def _in_own_names(data: Any) -> Any:
    """A report in another currency names its amounts by it, as in total_eur; here they have the names that they have in US dollars."""
    currency = data.get("currency", US_DOLLARS) if isinstance(data, dict) else US_DOLLARS
    return data if currency == US_DOLLARS or not isinstance(currency, str) else _renamed(data, currency.lower())


def _renamed(data: Any, ending: str) -> Any:
    if isinstance(data, dict):
        return {_name(str(name), ending): _renamed(each, ending) for name, each in data.items()}
    return [_renamed(each, ending) for each in data] if isinstance(data, list) else data


def _name(name: str, ending: str) -> str:
    return name.removesuffix(ending) + "usd" if name == ending or name.endswith(f"_{ending}") else name


def refuse_another_sum(parts: str, summed: Decimal, report: SavedReport) -> None:
    """Raises ReportError where the `parts` of a report, such as its lines, do not sum to what its nodes cost."""
    if summed != report.node_usd:
        amounts = f"{summed} {report.currency} and not to its {report.node_usd} {report.currency}"
        raise ReportError(f"its {parts} sum to {amounts}: it was changed by hand, or is cut off")
