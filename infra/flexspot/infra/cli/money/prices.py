"""`flexspot prices`: known prices with their age, and fresh prices from the clouds' own lists."""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.markup import escape
from rich.text import Text

from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.catalog.data_files import Source, read_records
from flexspot.capacity.catalog.fresh_prices import (
    as_yaml,
    changes,
    with_fresh_rows,
)
from flexspot.capacity.catalog.machines import Machine, Vendor, machines_of
from flexspot.capacity.catalog.platform import VOCABULARIES, Platform
from flexspot.capacity.catalog.price_book import LIST_PRICE_DAYS, SPOT_PRICE_DAYS, PriceFile
from flexspot.capacity.values.errors import ExplainedError, nearest
from flexspot.capacity.values.names import AWS_REGION, FORMS, GCP_REGION
from flexspot.infra.cli.command_line import PRICE_FORM, AsFormat, bad_usage, expect, given_file, option, planned, write_whole
from flexspot.infra.cli.console import Table, as_json, err, out, print_table, show
from flexspot.infra.price_lists import PriceList, fresh_prices, price_list_of
from flexspot.infra.project import from_the_root, project_here

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexspot.capacity.catalog.fresh_prices import PriceChange
    from flexspot.capacity.plan.build import StackPlan


def refresh(
    cloud: Annotated[Vendor, option("--cloud", "The cloud of the prices: aws or gcp.")],
    file: Annotated[Path, option("--file", "The price file to write. Prices in it that are not refreshed stay.")],
    regions: Annotated[list[str] | None, option("--region", "A region. Repeatable. Default: those of the stacks.")] = None,
    machines: Annotated[list[str] | None, option("--machine", "A machine type. Repeatable. Default: all of the catalog.")] = None,
    dry_run: Annotated[bool, option("--dry-run", "Show what would change; write nothing.")] = False,
) -> None:
    """Ask the cloud for prices of machines and services, show what changed, and write the price file.

    Covers all regions of the stacks. Needs credentials, found as the cloud's own tools find them. No other command fetches prices from the
    network.
    """
    asked_machines = _machines(cloud, machines)
    asked_regions = _regions(cloud, regions)
    before = _read(file, cloud)
    today = datetime.now(UTC).date()
    price_list: PriceList = price_list_of(cloud, err.print)
    # A source has one day: rows that are not refreshed keep their source.
    names = {kind: f"{name}-{today.isoformat()}" for kind, name in price_list.sources.items()}
    rows, services, missing = fresh_prices(price_list, asked_machines, asked_regions, names)
    if not rows and not services:
        raise ExplainedError(
            f"{price_list.name} has none of the requested prices.", "check --region and --machine. The file was not changed."
        )
    sources = {
        name: Source(citation=citation, as_of=today, verified=True)
        for name, citation in zip(names.values(), price_list.citations.values(), strict=True)
    }
    after = with_fresh_rows(before, cloud, rows, services, sources)
    _show_changes(changes(before, after), missing)
    if dry_run:
        out.print(f"{escape(str(file))} is unchanged.")
        return
    write_whole(file, as_yaml(after))
    held, fresh = len(after.prices) + len(after.services), len(rows) + len(services)
    out.print(f"{escape(str(file))} has {held} prices, {fresh} of them fresh.")


def _machines(cloud: Vendor, names: list[str] | None) -> list[Machine]:
    known = machines_of(cloud)
    for name in names or ():
        if name not in known:
            raise bad_usage(f"--machine: {name} is not in the catalog of {cloud}.", f"{nearest(name, sorted(known))}.")
    return [known[name] for name in names or known]


def _regions(cloud: Vendor, written: list[str] | None) -> list[str]:
    """Return the given regions, or those of the project's stacks on the cloud.

    Raises ExplainedError for an invalid or missing region.
    """
    form = AWS_REGION if cloud is Vendor.AWS else GCP_REGION
    for region in written or ():
        if re.fullmatch(form, region) is None:
            problem = f"--region: {region!r} is not a region of {cloud}."
            raise bad_usage(problem, f"name {FORMS[form]}.")
    regions = written or _regions_of_stacks(cloud)
    if not regions:
        problem = f"--region is required, as no stack of this project is on {cloud}."
        raise bad_usage(problem, "add the regions with --region.")
    return sorted(set(regions))


def _regions_of_stacks(cloud: Vendor) -> list[str]:
    plans = [planned(stack).plan for stack in project_here().stack_names()]
    # Fake nodes have no cost.
    return [plan.region for plan in plans if plan.cloud is not Platform.LOCAL and VOCABULARIES[plan.cloud].catalog is cloud]


def _read(path: Path, cloud: Vendor) -> PriceFile | None:
    if not path.exists():
        if not from_the_root(path).parent.is_dir():
            # Checked before the cloud's list is read, which takes minutes.
            problem = f"--file: the folder {path.parent} does not exist."
            raise bad_usage(problem, "create it, or name another file.")
        return None
    found = given_file(path, lambda each: read_records(each, PriceFile), PRICE_FORM)
    if found.cloud is not cloud:
        raise bad_usage(f"--file: {path} has prices of {found.cloud}, not of {cloud}.", f"name another file; {PRICE_FORM}.")
    return found


def _show_changes(found: list[PriceChange], missing: list[str]) -> None:
    rows: list[tuple[str, ...]] = []
    for each in found:
        before, by = (str(each.before), f"{(each.after / each.before - 1) * 100:+.1f} %") if each.before is not None else ("", "new")
        rows.append((each.what, each.region, each.by, before, str(each.after), by))
    if rows:
        headings = ("what", "region", "by", "before", "after", "change")
        print_table(Table("changed, USD an hour or per the unit shown", headings, rows, 3))
    else:
        out.print("no price differs.")
    for each in missing:
        out.print(f"[yellow]not found[/], so unchanged: {escape(each)}")


def check(
    stacks: Annotated[list[str] | None, option("--stack -s", "Check the pools of this stack. Repeatable. Default: all stacks.")] = None,
    max_age_days: Annotated[
        int | None,
        option("--max-age-days", "Days after which a price is too old. Default: 30 for Spot, 180 for list prices.", min=1),
    ] = None,
    form: AsFormat = "text",
) -> None:
    """Show the price of every pool's machines, with its source and date; exit code 1 when one is missing or too old."""
    rows = [row for stack in stacks or project_here().stack_names() for row in _rows(stack, planned(stack))]
    missing = [row for row in rows if row["usd_per_hour"] is None]
    for row in rows:
        spot = row["capacity_type"] == CapacityType.SPOT
        row["too_old"] = row["age_days"] is not None and row["age_days"] > (max_age_days or (SPOT_PRICE_DAYS if spot else LIST_PRICE_DAYS))
    old = [row for row in rows if row["too_old"]]
    if form == "json":
        sys.stdout.write(as_json({"prices": rows, "missing": len(missing), "too_old": len(old)}))
    else:
        _show_known(rows)
        unverified = sum(row["verified"] is False for row in rows)
        out.print(f"{len(rows)} prices: {len(missing)} not known, {len(old)} too old, {unverified} not verified (?).")
        if missing:
            out.print("unknown prices are left out of every sum, which then says so; give them in a file that prices_file names.")
    expect(not missing and not old)


def _rows(stack: str, planned_stack: StackPlan) -> Iterator[dict[str, Any]]:
    """Yield a row for each machine of each pool. Money is text, so that no program rounds it."""
    today = datetime.now(UTC).date()
    plan, book = planned_stack.plan, planned_stack.prices
    for pool in plan.pools:
        for machine in pool.machines:
            price = book.paid(machine, plan.region, pool.capacity_type, pool.name)
            source = book.source_of(price) if price else None
            per_gpu = (price.usd_per_hour / pool.gpus_per_node).quantize(Decimal("0.0001")) if price else None
            yield {
                "stack": stack,
                "pool": pool.name,
                "machine": machine,
                "region": plan.region,
                "capacity_type": pool.capacity_type.value,
                "usd_per_hour": str(price.usd_per_hour) if price else None,
                "usd_per_gpu_hour": str(per_gpu) if per_gpu is not None else None,
                "source": price.source if price else None,
                "as_of": source.as_of.isoformat() if source else None,
                "age_days": (today - source.as_of).days if source else None,
                "verified": source.verified if source else None,
                "undated": source.undated if source else None,
            }


def _show_known(rows: list[dict[str, Any]]) -> None:
    lines: list[tuple[Text | str, ...]] = []
    for row in rows:
        known = row["usd_per_hour"] is not None
        day = f"read {row['as_of']}" if row["undated"] else (row["as_of"] or "")
        # A question mark marks prices that are not checked against the cloud's own list.
        mark = "" if row["verified"] or not known else " ?"
        price = row["usd_per_hour"] or Text("not known", "red")
        place = (row["stack"], row["pool"], row["machine"], row["capacity_type"])
        dated = Text(day, "red" if row["too_old"] else "")
        lines.append((*place, price, row["usd_per_gpu_hour"] or "", dated, f"{row['source'] or ''}{mark}"))
    show("", ("stack", "pool", "machine", "capacity", "USD/h", "USD/GPU h", "as of", "source"), lines)
