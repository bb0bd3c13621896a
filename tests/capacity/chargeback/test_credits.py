"""Credits reduce payments for the nodes they cover, to the cent. They are separate lines and in no other sum."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest
from chargeback_months import HOUR, Month, at
from contract_files import contract_file
from hypothesis import given, settings
from hypothesis import strategies as st

from flexspot.capacity.catalog.data_files import DataFileError
from flexspot.capacity.catalog.machines import Vendor
from flexspot.capacity.chargeback.charges import Credit, moments_of, read_credits
from flexspot.capacity.chargeback.charging import charge
from flexspot.capacity.chargeback.node_costs import PriceTimes, cost_nodes
from flexspot.capacity.chargeback.queries import CENTRAL
from flexspot.capacity.chargeback.report import IdlePolicy, Report
from flexspot.infra.cli.money import chargeback_tables as words
from flexspot.infra.cli.money.chargeback_formats import report_csv, report_data

if TYPE_CHECKING:
    from pathlib import Path

PRICES = contract_file(
    prices=[
        {"machine": "p4d.24xlarge", "region": "us-east-1", "capacity_type": kind, "usd_per_hour": usd}
        for kind, usd in (("spot", "8.00"), ("on-demand", "20.00"))
    ]
)


def credit(usd: str, name: str = "research", **more: Any) -> Credit:
    return Credit.model_validate({"name": name, "usd": usd, "cloud": "aws", "source": "the console on 2026-11-02"} | more)


def report_of(month: Month, granted: list[Credit], idle: IdlePolicy = IdlePolicy.CENTRAL) -> Report:
    prices = PriceTimes(own=PRICES, name="own")
    books = month.books(cuts=prices.cuts(month.period, moments_of(granted)))
    return charge(books, cost_nodes(books, prices), idle=idle, asked=month.period, granted=granted)


@pytest.fixture
def month() -> Month:
    """Return ten hours of a Spot node (8 an hour), half of it idle, and of an on-demand node (20 an hour)."""
    found = Month(hours=10)
    found.node("spot-1", 0, 10 * HOUR)
    found.node("od-1", 0, 10 * HOUR, bought="on-demand", pool="a100-on-demand")
    found.pod("a", "spot-1", 0, 10 * HOUR, gpus=4, team="vision")
    found.pod("b", "od-1", 0, 10 * HOUR, gpus=8, team="speech", project="asr")
    return found


def by_team(report: Report, number: int = 0) -> dict[str, Decimal]:
    return {team: usd for (team, _), usd in report.credits[number].lines.items()}


def test_a_credit_takes_from_each_by_what_each_pays_and_changes_no_other_sum(month: Month) -> None:
    report = report_of(month, [credit("100.00")])

    # 40 and 40 of Spot, allocated and idle, and 200 on demand.
    assert by_team(report) == {"vision": Decimal("14.28"), CENTRAL: Decimal("14.29"), "speech": Decimal("71.43")}
    assert (report.node_usd, report.total.usd, report.credit_usd, report.paid_usd) == (280, 280, 100, 180)
    assert report.lines == report_of(month, []).lines


def test_a_credit_pays_for_what_it_covers_while_valid_and_nothing_else(month: Month) -> None:
    report = report_of(month, [credit("100.00", capacity_types=["spot"], start=at(2), end=at(5))])

    assert by_team(report) == {"vision": Decimal("12.00"), CENTRAL: Decimal("12.00")}
    assert any("76.00 USD of the credit research had no effect" in each for each in words.warnings(report))
    others: list[dict[str, Any]] = [{"cloud": "gcp"}, {"regions": ["us-west-2"]}, {"machines": ["p5.48xlarge"]}, {"start": at(10)}]
    for other in others:
        assert report_of(month, [credit("100.00", **other)]).credit_usd == 0


def test_programs_and_spreadsheets_have_credits_in_lines_of_their_own(month: Month) -> None:
    report = report_of(month, [credit("12.34", capacity_types=["on-demand"])])

    [credit_data] = report_data(report)["credits"]
    assert (credit_data["used_usd"], credit_data["lines"]) == ("12.34", [{"team": "speech", "project": "asr", "usd": "12.34"}])
    rows = list(csv.DictReader(io.StringIO(report_csv(report))))
    assert sum((Decimal(row["total_usd"]) for row in rows), Decimal(0)) == report.paid_usd
    assert [row["team"] for row in rows if row["kind"] == "credit"] == ["speech"]


def test_missing_reserved_nodes_are_covered_while_the_credit_is_valid() -> None:
    own = contract_file(commitments=[{"machine": "p5.48xlarge", "region": "us-east-1", "nodes": 1}])
    month, granted = Month(hours=10), [credit("1000.00", start=at(9))]
    month.node("spot-1", 0, HOUR)
    prices = PriceTimes(own=own, name="own")
    books = month.books(cuts=prices.cuts(month.period, moments_of(granted)))
    report = charge(books, cost_nodes(books, prices), idle=IdlePolicy.CENTRAL, asked=month.period, granted=granted)

    assert report.credit_usd == Decimal("55.04")


def test_books_that_are_not_cut_where_a_credit_begins_are_refused(month: Month) -> None:
    books = month.books()
    with pytest.raises(ValueError, match="not cut where credits begin and end"):
        charge(books, cost_nodes(books, PriceTimes()), idle=IdlePolicy.CENTRAL, asked=month.period, granted=[credit("1.00", start=at(3))])


@pytest.mark.parametrize(
    "text,problem",
    [
        ("{name: a, usd: '1.005', cloud: aws, source: the console of today}", "2 decimal places"),
        ("{name: a, usd: '-1', cloud: aws, source: the console of today}", "greater than 0"),
        ("{name: a, usd: '1', cloud: aws, source: it}", "at least 10 characters"),
        ("{name: a, usd: '1', source: the console of today}", "cloud: Field required"),
        ("{name: a, usd: '1', cloud: aws, source: the console of today, start: 2026-10-01}", "no offset from UTC"),
        (
            "{name: a, usd: '1', cloud: aws, source: the console of today, start: 2026-10-02T00:00:00Z, end: 2026-10-01T00:00:00Z}",
            "not after",
        ),
    ],
)
def test_an_impossible_credit_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "credits.yaml"
    file.write_text(f"credits:\n  - {text}\n")
    with pytest.raises(DataFileError, match=problem):
        read_credits(file)


def test_a_file_of_credits_is_read_and_two_of_one_name_are_refused(tmp_path: Path) -> None:
    file, row = tmp_path / "credits.yaml", "  - {name: a, usd: '1', cloud: gcp, source: the console of today}\n"
    file.write_text(f"credits:\n{row}")
    assert [(each.name, each.cloud) for each in read_credits(file)] == [("a", Vendor.GCP)]
    file.write_text(f"credits:\n{row}{row}")
    with pytest.raises(DataFileError, match="a is the name of two credits"):
        read_credits(file)


CREDITS = st.lists(
    st.tuples(st.integers(1, 30_000), st.sampled_from([(), ("spot",), ("on-demand",)]), st.integers(0, 8), st.integers(1, 9)), max_size=3
)
NODES = st.lists(st.tuples(st.sampled_from(["spot", "on-demand"]), st.integers(0, 400), st.integers(1, 300)), min_size=1, max_size=4)
PODS = st.lists(st.tuples(st.sampled_from(["vision", "speech"]), st.integers(0, 3), st.integers(0, 400), st.integers(1, 300)), max_size=4)


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(wanted=CREDITS, nodes=NODES, pods=PODS)
def test_any_credits_agree_with_counting_minute_by_minute(
    wanted: list[tuple[int, tuple[str, ...], int, int]],
    nodes: list[tuple[str, int, int]],
    pods: list[tuple[str, int, int, int]],
) -> None:
    """Counts each minute separately: the unpaid amount by capacity type and team. Each credit takes the same part of all of these."""
    month = Month(hours=9)
    owed: defaultdict[tuple[int, str, str], Fraction] = defaultdict(Fraction)
    for number, (bought, start, lasts) in enumerate(nodes):
        month.node(f"n{number}", start * 60, (start + lasts) * 60, bought=bought)
        for minute in range(start, min(start + lasts, 540)):
            owed[minute, bought, CENTRAL] += Fraction({"spot": 8, "on-demand": 20}[bought] * 100, 60)
    for number, (team, index, start, lasts) in enumerate(pods):
        if index < len(nodes):
            month.pod(f"p{number}", f"n{index}", start * 60, (start + lasts) * 60, gpus=2, team=team)
            bought, first, there = nodes[index]
            for minute in range(max(start, first), min(start + lasts, first + there, 540)):
                had = Fraction({"spot": 8, "on-demand": 20}[bought] * 100, 60) / 4
                owed[minute, bought, CENTRAL] -= had
                owed[minute, bought, team] += had
    granted = [
        credit(str(Decimal(usd).scaleb(-2)), name=f"c{number}", capacity_types=list(kinds), start=at(first), end=at(first + lasts))
        for number, (usd, kinds, first, lasts) in enumerate(wanted)
    ]

    report = report_of(month, granted)

    for found, (usd, kinds, first, lasts) in zip(report.credits, wanted, strict=True):
        for_it = [key for key in owed if first * 60 <= key[0] < (first + lasts) * 60 and (not kinds or key[1] in kinds)]
        whole = sum((owed[key] for key in for_it), Fraction(0))
        part = min(Fraction(1), usd / whole) if whole else Fraction(0)
        taken: defaultdict[str, Fraction] = defaultdict(Fraction)
        for key in for_it:
            taken[key[2]] += owed[key] * part
            owed[key] -= owed[key] * part
        assert found.usd == sum(found.lines.values(), Decimal(0)) <= found.credit.usd
        # Amounts are rounded to cents line by line before a credit is applied.
        assert abs(Fraction(found.usd) * 100 - whole * part) <= len(report.charges)
        teams = {team for team, _ in found.lines}
        for team in teams | set(taken):
            said = sum((each for (of, _), each in found.lines.items() if of == team), Decimal(0))
            assert abs(Fraction(said) * 100 - taken[team]) <= len(report.charges)
    assert report.paid_usd == report.node_usd - sum((each.usd for each in report.credits), Decimal(0)) >= 0
