"""A report in another currency: sums that are converted once and parts that sum to them; the file of the rate."""

from __future__ import annotations

from collections import defaultdict
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from currency_reports import RATES, euros, in_euros, usd_report
from hypothesis import given
from hypothesis import strategies as st

from capacity.catalog.data_files import DataFileError
from capacity.catalog.exchange_rates import ExchangeRate, ExchangeRateError, ExchangeRateFile, read_exchange_rates
from capacity.chargeback.charges import ChargeKind
from capacity.chargeback.exchanged import exchanged, months_of
from capacity.chargeback.report import IdlePolicy
from capacity.chargeback.samples import period_between

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.slow
@given(RATES, st.sampled_from(IdlePolicy))
def test_sums_are_converted_once_and_their_parts_sum_to_them_to_the_cent(rate: Decimal, policy: IdlePolicy) -> None:
    before = usd_report(policy)
    after = exchanged(before, euros(rate))

    assert after.node_usd == in_euros(before.node_usd, rate)
    assert after.extra_usd == in_euros(before.extra_usd, rate)
    assert after.total.usd == after.node_usd == sum(each.usd for each in after.nodes) == sum(each.usd for each in after.charges)
    assert after.total.saved_usd == in_euros(before.total.saved_usd, rate)
    assert after.idle_usd == after.total.idle_usd
    of_line: dict[tuple[object, bool], Decimal] = defaultdict(Decimal)
    for each in after.charges:
        of_line[each.line, each.kind in {ChargeKind.ALLOCATED, ChargeKind.PLATFORM}] += each.usd
    for line in after.lines:
        assert of_line[line.key, True] == line.totals.allocated_usd
        assert of_line[line.key, False] == line.totals.idle_usd
    for (team,), totals in after.by("team").items():
        had = [each.totals.allocated_usd for each in after.work if each.team == team]
        assert not had or sum(had) == totals.allocated_usd
        # A team is off by less than a cent in each of the two amounts that it has, and a line by less than two.
        assert abs(totals.usd - before.by("team")[team,].usd * rate) < Decimal("0.02")
    for was, line in zip(before.lines, after.lines, strict=True):
        assert abs(line.totals.usd - was.totals.usd * rate) < Decimal("0.04")
    assert after.in_usd is before


@pytest.mark.parametrize(
    "text,told",
    [
        ("currency: USD", "reports are in USD without such a file"),
        ("currency: JPY", "amounts have two decimals, and JPY has no hundredths; use a currency that has them"),
        ("currency: euro", "currency"),
        ("currency: EUR\nrates: []", "rates"),
    ],
)
def test_a_file_without_a_usable_currency_or_rate_is_refused(text: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "rates.yaml"
    row = "\nrates:\n  - {per_usd: '0.86', as_of: 2026-10-30, source: the central bank}\n"
    path.write_text(text if "rates" in text else text + row)

    with pytest.raises(DataFileError, match=told):
        read_exchange_rates(path)


def test_months_are_those_of_the_periods_own_time_zone_and_each_has_one_rate() -> None:
    assert months_of(period_between("2026-10-31T23:30:00+00:00", "2026-11-01T00:00:00+00:00", "Europe/Berlin")) == ["2026-11"]
    assert months_of(period_between("2026-11-30", "2027-02-01", "UTC")) == ["2026-11", "2026-12", "2027-01"]
    one = ExchangeRate(per_usd=Decimal("0.9"), as_of=date(2026, 10, 1), source="the central bank")
    file = ExchangeRateFile(currency="EUR", rates=[one])
    assert file.of_months(["2026-10", "2026-11"]).rate is one
    with pytest.raises(ExchangeRateError, match="no rate of 2026-11"):
        ExchangeRateFile(currency="EUR", rates=[one.model_copy(update={"month": "2026-10"})]).of_months(["2026-11"])
    with pytest.raises(ValueError, match="any month has two rates"):
        ExchangeRateFile(currency="EUR", rates=[one, one])
