"""`flexspot cost`: what a plan costs in a month, against another plan, and against its budgets."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from capacity.values.errors import ExitCode, ExplainedError, nearest

if TYPE_CHECKING:
    from capacity.catalog.machines import Cloud
    from capacity.catalog.price_book import PriceBook


STANDARD_INPUT = Path("-")
"""What stands for what is read from a pipe."""


class ReportFormat(StrEnum):
    """How the report is printed: for people, for programs, or for a comment on a pull request."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"


class Against(StrEnum):
    """Which month is held against the budgets."""

    EXPECTED = "expected"
    WORST_CASE = "worst-case"


def cost(  # noqa: PLR0913, PLR0917 -- each is an option of the command line
    plan: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="What `flexspot preview --offline --plan-out FILE` wrote; or of any Pulumi program what `pulumi stack export` or "
            "`pulumi preview --json --show-sames` prints (- reads it from a pipe).",
        ),
    ],
    base: Annotated[
        Path | None, typer.Option("--base", metavar="FILE", help="Another file of the same kind to compare with, at the same prices.")
    ] = None,
    use: Annotated[Path | None, typer.Option("--use", help="The expected use in a month; see docs/guides/costs.md.")] = None,
    prices: Annotated[Path | None, typer.Option("--prices", help="Your own price file; its prices come first.")] = None,
    against: Annotated[Against, typer.Option("--budget-against", help="Which figure budgets are compared with.")] = Against.EXPECTED,
    near: Annotated[int, typer.Option("--near-percent", min=1, max=100, help="The percentage of a budget from which to warn.")] = 80,
    region: Annotated[
        str | None, typer.Option("--region", help="For any program: the region of resources where neither they nor their provider say it.")
    ] = None,
    form: Annotated[
        ReportFormat, typer.Option("--format", help="text for people, json for programs, markdown for comments.")
    ] = ReportFormat.TEXT,
) -> None:
    """Estimate what a plan, or any Pulumi program, costs in a month. Exit code 1 above a budget.

    Of a plan: at worst, as expected, idle; by pool, team and cloud resource. Exit code 1, too, where missing prices may exceed a budget
    of a stack whose budget.on_unknown_prices is refuse. Of any program: as declared, at most and at least, by resource.
    """
    from capacity.cost.costed_plan import plan_of, read_json, read_plan_file, read_use_file, shipped_use  # noqa: PLC0415
    from capacity.cost.programs.declared import is_program  # noqa: PLC0415

    written = read_json(plan, sys.stdin.buffer.read() if plan == STANDARD_INPUT else None)
    if is_program(written):
        _program(written, plan, base, prices, region, form)
        return
    from capacity.cost.budget_checks import Standing  # noqa: PLC0415
    from capacity.cost.figures import Scenario  # noqa: PLC0415
    from capacity.cost.plan_comparison import budget_checks, compared  # noqa: PLC0415
    from capacity.cost.plan_cost import plan_cost  # noqa: PLC0415
    from capacity.settings.spending import OnUnknownPrices  # noqa: PLC0415
    from infra.cli.cost_report import CostReport, cost_json, cost_markdown, show_cost  # noqa: PLC0415

    file = plan_of(written, plan)
    base_file = None if base is None else read_plan_file(base)
    expected = shipped_use() if use is None else read_use_file(use)
    book = _with_own(file.prices(), prices)
    found = plan_cost(file.plan, book, expected)
    comparison = None
    if base_file is not None:
        same = base_file.prices().cloud is book.cloud
        comparison = compared(plan_cost(base_file.plan, book if same else _with_own(base_file.prices(), None), expected), found)
    checks = budget_checks(found, Scenario(against.value), near)
    report = CostReport(file.stack, found, comparison, tuple(checks), Scenario(against.value), datetime.now(UTC).date())
    if form is ReportFormat.JSON:
        sys.stdout.write(cost_json(report))
    elif form is ReportFormat.MARKDOWN:
        sys.stdout.write(cost_markdown(report))
    else:
        show_cost(report)
    refused = (
        {Standing.EXCEEDED, Standing.UNKNOWN} if file.plan.spending.on_unknown_prices is OnUnknownPrices.REFUSE else {Standing.EXCEEDED}
    )
    if any(each.standing in refused for each in checks):
        raise typer.Exit(ExitCode.UNMET)


def _program(  # noqa: PLR0913, PLR0917 -- the options of the command
    written: dict[str, Any],
    path: Path,
    base: Path | None,
    prices: Path | None,
    region: str | None,
    form: ReportFormat,
) -> None:
    """The same of anybody's program, which has neither pools nor budgets."""
    from capacity.catalog.machine_list import machine_list  # noqa: PLC0415
    from capacity.catalog.machines import Cloud  # noqa: PLC0415
    from capacity.catalog.price_book import prices_of  # noqa: PLC0415
    from capacity.cost.costed_plan import read_json  # noqa: PLC0415
    from capacity.cost.programs.declared import read_program  # noqa: PLC0415
    from capacity.cost.programs.program_cost import compared, program_cost  # noqa: PLC0415
    from infra.cli.program_cost_report import (  # noqa: PLC0415
        ProgramReport,
        program_json,
        program_markdown,
        show_program,
    )

    books = {cloud: prices_of(cloud) for cloud in Cloud}
    known = {each for cloud in Cloud for each in machine_list(cloud).regions} | {
        each for book in books.values() for _, each, _ in book.prices
    }
    if region is not None and region not in known:
        raise ExplainedError(
            f"--region is {region}, of which no price is known.", f"{nearest(region, known)}.", exit_code=ExitCode.BAD_USAGE
        )
    if prices is not None:
        own = _cloud_of(prices)
        books[own] = _with_own(books[own], prices)
    found = program_cost(read_program(written, str(path), region), books)
    if base is not None:
        found = compared(program_cost(read_program(read_json(base), str(base), region), books), found)
    report = ProgramReport(found, datetime.now(UTC).date())
    if form is ReportFormat.TEXT:
        show_program(report)
    else:
        sys.stdout.write(program_json(report) if form is ReportFormat.JSON else program_markdown(report))


def _cloud_of(prices: Path) -> Cloud:
    """The cloud that a price file is of."""
    from capacity.catalog.data_files import read_records  # noqa: PLC0415
    from capacity.catalog.price_book import PriceFile  # noqa: PLC0415
    from infra.cli.given_files import given_file  # noqa: PLC0415

    return given_file(prices, lambda path: read_records(path, PriceFile), _PRICE_FORM).cloud


_PRICE_FORM = "its form is that of capacity/catalog/prices"


def _with_own(book: PriceBook, path: Path | None) -> PriceBook:
    from infra.cli.given_files import given_file  # noqa: PLC0415

    return book if path is None else given_file(path, book.overridden_by, _PRICE_FORM)
