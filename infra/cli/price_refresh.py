"""`flexspot prices refresh`: asks a cloud's own lists for prices and writes them into a price file of one's own."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path  # noqa: TC003 -- typer reads the annotations
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from capacity.values.errors import ExitCode, ExplainedError
from infra.cli.console import err, out, show_table

if TYPE_CHECKING:
    from datetime import date

    from capacity.catalog.fresh_prices import PriceChange
    from capacity.catalog.machines import Cloud, Machine
    from capacity.catalog.price_book import PriceFile
    from infra.cli.price_lists import PriceList


def refresh(
    cloud: Annotated[str, typer.Option("--cloud", help="Whose prices: aws or gcp.")],
    file: Annotated[Path, typer.Option("--file", help="The price file to write; prices in it that are not refreshed are kept.")],
    regions: Annotated[list[str] | None, typer.Option("--region", help="Which regions; those of the stacks, when not given.")] = None,
    machines: Annotated[list[str] | None, typer.Option("--machine", help="Which machines; all of the catalog, when not given.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would change, and write nothing.")] = False,
) -> None:
    """Ask the cloud for on-demand and Spot prices, show what changed, and write the price file.

    Needs an account of the cloud, found as its own tools find it. Nothing else of Flexspot needs the network for prices.
    """
    from capacity.catalog.data_files import Source  # noqa: PLC0415
    from capacity.catalog.fresh_prices import changes, with_fresh_rows  # noqa: PLC0415
    from infra.cli.price_lists import fresh_prices, price_list_of  # noqa: PLC0415

    asked_cloud = _cloud(cloud)
    asked_machines = _machines(asked_cloud, machines)
    asked_regions = sorted(set(regions or _regions_of_stacks(asked_cloud)))
    before = _read(file, asked_cloud)
    today = datetime.now(UTC).date()
    price_list: PriceList = price_list_of(asked_cloud, err.print)
    rows, missing = fresh_prices(price_list, asked_machines, asked_regions, _source_names(price_list, today))
    if not rows:
        raise ExplainedError(
            f"{price_list.name} has no price of what was asked for.", "check --region and --machine; what the file had is as it was."
        )
    sources = {
        name: Source(citation=citation, as_of=today, verified=True)
        for name, citation in zip(_source_names(price_list, today).values(), price_list.citations.values(), strict=True)
    }
    after = with_fresh_rows(before, asked_cloud, rows, sources)
    _show(changes(before, after), missing)
    if dry_run:
        out.print(f"{escape(str(file))} is as it was.")
        return
    _write(file, after)
    out.print(f"{escape(str(file))} has {len(after.prices)} prices, {len(rows)} of them fresh.")


def _source_names(price_list: PriceList, today: date) -> dict[str, str]:
    """A source is of one day: rows that are not asked for again keep theirs."""
    return {kind: f"{name}-{today.isoformat()}" for kind, name in price_list.sources.items()}


def _cloud(written: str) -> Cloud:
    from capacity.catalog.machines import Cloud  # noqa: PLC0415

    try:
        return Cloud(written)
    except ValueError:
        told = f"--cloud {written!r} has no price list that is known."
        raise ExplainedError(told, f"write {' or '.join(Cloud)}.", exit_code=ExitCode.BAD_USAGE) from None


def _machines(cloud: Cloud, names: list[str] | None) -> list[Machine]:
    from capacity.catalog.machines import machines_of  # noqa: PLC0415
    from capacity.values.errors import nearest  # noqa: PLC0415

    known = machines_of(cloud)
    for name in names or ():
        if name not in known:
            raise ExplainedError(f"{name} is not in the catalog of {cloud}.", nearest(name, sorted(known)), exit_code=ExitCode.BAD_USAGE)
    return [known[name] for name in names or known]


def _regions_of_stacks(cloud: Cloud) -> list[str]:
    from capacity.catalog.machines import Cloud as Clouds  # noqa: PLC0415
    from capacity.catalog.platform import Platform  # noqa: PLC0415
    from infra.cli.stacks import planned, stack_names  # noqa: PLC0415

    platform = Platform.EKS if cloud is Clouds.AWS else Platform.GKE
    plans = [planned(stack).plan for stack in stack_names()]
    return [plan.region for plan in plans if plan.cloud is platform]


def _read(path: Path, cloud: Cloud) -> PriceFile | None:
    from capacity.catalog.data_files import DataFileError, read_records  # noqa: PLC0415
    from capacity.catalog.price_book import PriceFile  # noqa: PLC0415

    remedy = "mend it, or name another file; its form is that of capacity/catalog/prices."
    try:
        found = read_records(path, PriceFile)
    except FileNotFoundError:
        if not path.absolute().parent.is_dir():
            # Said before a cloud is asked, which takes minutes that would be lost.
            told = f"there is no folder {path.parent} to write {path.name} into."
            raise ExplainedError(told, "make it, or name another file.", exit_code=ExitCode.BAD_USAGE) from None
        return None
    except (DataFileError, OSError, UnicodeDecodeError) as error:
        raise ExplainedError(f"{path} cannot be used.", remedy, exit_code=ExitCode.BAD_USAGE, evidence=(str(error),)) from error
    if found.cloud is not cloud:
        raise ExplainedError(f"{path} has prices of {found.cloud}, not of {cloud}.", remedy, exit_code=ExitCode.BAD_USAGE)
    return found


def _write(path: Path, file: PriceFile) -> None:
    """Writes the whole file or nothing: no reader sees half a file."""
    from capacity.catalog.fresh_prices import as_yaml  # noqa: PLC0415

    half = path.with_name(f".{path.name}.half")
    try:
        half.write_text(as_yaml(file), encoding="utf-8")
        half.replace(path)
    except OSError as error:
        half.unlink(missing_ok=True)
        remedy = "name a file in a folder that you may write."
        raise ExplainedError(f"{path} cannot be written: {error.strerror or error}.", remedy, exit_code=ExitCode.BAD_USAGE) from error


def _show(found: list[PriceChange], missing: list[str]) -> None:
    table = Table(title="changed, USD an hour", title_justify="left")
    for heading in ("machine", "region", "capacity", "before", "after", "change"):
        table.add_column(heading, justify="right" if heading in {"before", "after", "change"} else "left", overflow="fold")
    for each in found:
        by = "new" if each.before is None else f"{(each.after / each.before - 1) * 100:+.1f} %"
        table.add_row(*each.key[:2], each.key[2].value, "" if each.before is None else str(each.before), str(each.after), by)
    if found:
        show_table(table)
    else:
        out.print("no price differs.")
    for each in missing:
        out.print(f"[yellow]not found[/], and left as it was: {escape(each)}")
