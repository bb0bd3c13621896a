"""The currency that a report is told in, and what a US dollar was worth in it: always from a person's file, never fetched or guessed."""

from __future__ import annotations

from collections import Counter
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, TypeVar

from pydantic import Field, model_validator

from capacity.catalog.data_files import Record, read_records
from capacity.values.rounding import to_cents

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping
    from pathlib import Path

KeyT = TypeVar("KeyT", bound="Hashable")

US_DOLLARS = "USD"
"""In which prices are, and everything is reckoned."""

NO_CENTS = frozenset(
    {"BHD", "BIF", "CLF", "CLP", "DJF", "GNF", "IQD", "ISK", "JOD", "JPY", "KMF", "KRW", "KWD", "LYD", "OMR", "PYG"}
    | {"RWF", "TND", "UGX", "UYI", "UYW", "VND", "VUV", "XAF", "XOF", "XPF"}
)
"""Currencies whose smallest unit is no hundredth (ISO 4217; so has CLDR of Babel 2.19, read 2026-11-27): amounts here have two decimals."""


class ExchangeRateError(ValueError):
    """There is no one rate for what is asked, and why."""


class ExchangeRate(Record):
    """`per_usd` units of the currency were one US dollar on the day `as_of`, by `source`.

    With `month` (such as 2026-10) it is for reports of that month; without it for those of any month that has none.
    """

    per_usd: Annotated[Decimal, Field(gt=Decimal(0), lt=Decimal(10) ** 6)]
    as_of: date
    source: Annotated[str, Field(min_length=5)]
    month: Annotated[str | None, Field(pattern=r"^\d{4}-(0[1-9]|1[0-2])$")] = None


class InCurrency(Record):
    """A rate with its currency: all that must be told beside an amount."""

    currency: str
    rate: ExchangeRate

    def __str__(self) -> str:
        rate = self.rate
        return f"1 {US_DOLLARS} is {rate.per_usd.normalize():f} {self.currency}, of {rate.as_of}, {rate.source}"

    def one(self, usd: Decimal) -> Decimal:
        """An amount by itself, half a cent up."""
        return to_cents({0: self.exact(usd)})[0]

    def parts(
        self, amounts: Mapping[KeyT, Decimal], into: Decimal | None = None, at_least: Mapping[KeyT, Decimal] | None = None
    ) -> dict[KeyT, Decimal]:
        """Parts, which sum to their converted sum; or to `into`, to which that was rounded up or down. None is a cent or more off.

        `at_least` is what some of them are to be told as, since less was converted to it before.
        """
        return to_cents({key: self.exact(usd) for key, usd in amounts.items()}, into if amounts else None, at_least)

    def exact(self, usd: Decimal) -> Fraction:
        """An amount before it is rounded."""
        return Fraction(usd) * Fraction(self.rate.per_usd)


class ExchangeRateFile(Record):
    """The file: one currency, and its rates."""

    currency: Annotated[str, Field(pattern="^[A-Z]{3}$")]
    rates: Annotated[list[ExchangeRate], Field(min_length=1)]

    @model_validator(mode="after")
    def _the_currency_is_another_one_with_cents(self) -> ExchangeRateFile:
        if self.currency == US_DOLLARS:
            raise ValueError(f"reports are in {US_DOLLARS} without such a file; leave it out, or name another currency")
        if self.currency in NO_CENTS:
            raise ValueError(f"amounts have two decimals, and {self.currency} has no hundredths; use a currency that has them")
        if twice := [month for month, times in Counter(each.month for each in self.rates).items() if times > 1]:
            raise ValueError(f"{twice[0] or 'any month'} has two rates")
        return self

    def of_months(self, months: Iterable[str]) -> InCurrency:
        """The rate of all of them. Raises ExchangeRateError where one has none, or they have several."""
        given = {each.month: each for each in self.rates}
        found: list[ExchangeRate] = []
        for month in months:
            rate = given.get(month, given.get(None))
            if rate is None:
                raise ExchangeRateError(f"there is no rate of {month}; add one with month: {month}, or one without a month")
            if rate not in found:
                found.append(rate)
        if len(found) != 1:
            raise ExchangeRateError("the period is in several months with rates of their own; make a report of each month")
        return InCurrency(currency=self.currency, rate=found[0])

    def newest(self) -> InCurrency:
        """The rate of the latest day, for a month to come: nobody knows its own. Of several of that day, the one without a month first."""
        rate = max(self.rates, key=lambda each: (each.as_of, each.month is None, each.month or ""))
        return InCurrency(currency=self.currency, rate=rate)


def read_exchange_rates(path: Path) -> ExchangeRateFile:
    """The file. Raises DataFileError with every problem at once."""
    return read_records(path, ExchangeRateFile)
