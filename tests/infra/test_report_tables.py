"""Tables of reports on a narrow terminal: figures are never split, and no text is lost."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from flexspot.infra.cli.console import Table, print_table
from flexspot.infra.cli.money.reserve import HEADINGS

AMOUNTS = ("1,234.5", "128", "> 62.5 %", "96", "87.4 %", "99.9 %", "1,234,567.89", "12,345,678.90", "+123,456.78", "+9,876,543.21")


@pytest.mark.parametrize("width", [60, 80, 110, 150])
def test_amounts_stay_in_one_piece_on_a_narrow_terminal(width: int) -> None:
    text = io.StringIO()
    table = Table("what to commit to", HEADINGS, (("p6-b200.48xlarge", "ap-southeast-2", *AMOUNTS),), texts=2)
    print_table(table, console=Console(file=text, width=width))

    for amount in AMOUNTS:
        assert amount in text.getvalue()


def test_a_long_text_is_folded_and_not_cut_beside_them() -> None:
    text = io.StringIO()
    name = "a-team-with-a-name-of-many-parts-" * 4
    print_table(Table("by team", ("team", "USD"), ((name, "1,234,567.89"),)), console=Console(file=text, width=80))

    shown = text.getvalue()
    assert "1,234,567.89" in shown
    assert name in "".join(line.split("│")[1].strip() for line in shown.splitlines() if line.startswith("│"))
    assert max(map(len, shown.splitlines())) <= 80
