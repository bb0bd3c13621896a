"""What `flexspot chargeback` is given, made of options and files: errors say what is wrong, and what would be right."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.catalog.data_files import DataFileError, read_records
from capacity.catalog.price_book import PriceFile, prices_of
from capacity.chargeback.costs import read_extra_costs
from capacity.chargeback.period import PeriodError, month_period, period_between
from capacity.values.errors import ExitCode, ExplainedError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from capacity.catalog.machines import Cloud
    from capacity.catalog.price_book import PriceBook
    from capacity.chargeback.costs import ExtraCost
    from capacity.chargeback.period import Period


def period_asked(month: str | None, start: str | None, end: str | None, timezone: str) -> Period:
    """The month or the times that are asked for. Raises ExplainedError where there is neither, or both."""
    try:
        if month is not None and start is None and end is None:
            return month_period(month, timezone)
        if month is None and start is not None and end is not None:
            return period_between(start, end, timezone)
    except PeriodError as error:
        problem, _, remedy = str(error).partition("; ")
        raise ExplainedError(f"{problem}.", f"{remedy}.", exit_code=ExitCode.BAD_USAGE) from error
    raise ExplainedError(
        "what the report is of is not said, or said twice.", "give --month, or else --from and --to.", exit_code=ExitCode.BAD_USAGE
    )


def period_begun(asked: Period, now: int) -> Period:
    """What of it is over by `now`. Raises ExplainedError for a period of the future."""
    try:
        return asked.until(now)
    except PeriodError as error:
        problem, _, remedy = str(error).partition("; ")
        raise ExplainedError(f"{problem}.", f"{remedy}.", exit_code=ExitCode.BAD_USAGE) from error


def extra_costs(path: Path | None) -> tuple[ExtraCost, ...]:
    """The costs of the file, or none. Raises ExplainedError with everything that is wrong with it."""
    if path is None:
        return ()
    try:
        return read_extra_costs(path)
    except (DataFileError, OSError, UnicodeDecodeError) as error:
        remedy = "mend it; its form is in docs/guides/chargeback.md."
        raise ExplainedError(f"{path} cannot be used.", remedy, exit_code=ExitCode.BAD_USAGE, evidence=(str(error),)) from error


def own_prices(path: Path | None) -> Callable[[Cloud], PriceBook]:
    """The price book of each cloud, with the file's rows before the shipped ones. Raises ExplainedError for a file of another form."""
    if path is None:
        return prices_of
    try:
        own = read_records(path, PriceFile)
    except (DataFileError, OSError, UnicodeDecodeError) as error:
        remedy = "mend it; its form is that of capacity/catalog/prices."
        raise ExplainedError(
            f"the prices of {path} cannot be used.", remedy, exit_code=ExitCode.BAD_USAGE, evidence=(str(error),)
        ) from error
    return lambda cloud: prices_of(cloud).with_rows_of(own, path.name) if cloud is own.cloud else prices_of(cloud)
