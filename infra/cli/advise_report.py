"""What `flexspot advise` prints: tables for people, JSON for programs. Money is text there, so that no program rounds it."""

from __future__ import annotations

import json
import math
import sys
from typing import TYPE_CHECKING, Any

from rich.table import Table

from capacity.values.usd import cents
from infra.cli.console import Format, out, show_table

if TYPE_CHECKING:
    from decimal import Decimal

    from capacity.cost.advice import Advice, MixAdvice
    from capacity.cost.estimates import Estimate
    from capacity.cost.reservation import ReservationAdvice, ReservedLevel


def write_json(content: dict[str, Any]) -> None:
    """To standard output."""
    sys.stdout.write(json.dumps(content, indent=2, allow_nan=False) + "\n")


def money(usd: Decimal | None) -> str | None:
    """An amount in cents, as text; None where it is not known."""
    return None if usd is None else str(cents(usd))


def finite(number: float) -> float | None:
    """JSON has no word for what never ends."""
    return round(number, 4) if math.isfinite(number) else None


def shown_usd(usd: Decimal | None) -> str:
    """For people: with thousands."""
    return "not known" if usd is None else f"{cents(usd):,}"


def show_advice(advice: Advice, form: Format) -> None:
    """The answer first, then every way with its figures and why it is out."""
    if form is Format.JSON:
        write_json(_advice_data(advice))
        return
    out.print(f"[bold]{advice.method}[/]")
    for title, lines in (("why", advice.reasons), ("with it", advice.practices), ("arithmetic", advice.arithmetic)):
        for line in lines:
            out.print(f"  {title}: {line}")
    table = Table()
    for heading in ("method", "USD", "starts in h", "ends in h", "late", "out because of"):
        table.add_column(heading, overflow="fold")
    for option in advice.options:
        estimate = option.estimate
        late = "" if estimate.late_share is None else f"{estimate.late_share * 100:.0f} %"
        ends = f"{estimate.finish_hours:.1f}" if math.isfinite(estimate.finish_hours) else "never"
        rules = ", ".join(rule.name for rule in option.excluded_by)
        table.add_row(estimate.method.value, _range(estimate), f"{estimate.wait_hours:.1f}", ends, late, rules)
    show_table(table)


def _range(estimate: Estimate) -> str:
    if estimate.usd_least == estimate.usd_most:
        return shown_usd(estimate.usd_most)
    return f"{shown_usd(estimate.usd_least)} to {shown_usd(estimate.usd_most)}"


def _advice_data(advice: Advice) -> dict[str, Any]:
    return {
        "method": advice.method.value,
        "reasons": list(advice.reasons),
        "practices": list(advice.practices),
        "arithmetic": list(advice.arithmetic),
        "options": [
            {
                "method": option.estimate.method.value,
                "usd_least": money(option.estimate.usd_least),
                "usd_most": money(option.estimate.usd_most),
                "wait_hours": finite(option.estimate.wait_hours),
                "finish_hours": finite(option.estimate.finish_hours),
                "late_share": option.estimate.late_share,
                "excluded_by": [rule.name for rule in option.excluded_by],
            }
            for option in advice.options
        ],
    }


def show_mix(mix: MixAdvice, form: Format) -> None:
    """A line for each job, and the sum."""
    if form is Format.JSON:
        jobs = {name: _advice_data(advice) for name, advice in mix.advice.items()}
        write_json({"method": mix.method.value, "usd": money(mix.usd), "on_demand_usd": money(mix.on_demand_usd), "jobs": jobs})
        return
    table = Table("job", "method", "USD a run", "why")
    for name, advice in mix.advice.items():
        table.add_row(name, advice.method.value, _range(advice.chosen), advice.reasons[-1])
    show_table(table)
    saved = f"{mix.saved_percent:.0f} % less than {shown_usd(mix.on_demand_usd)} USD on demand"
    out.print(f"[bold]{mix.method}[/]: {shown_usd(mix.usd)} USD at most for all runs, {saved}.")


def show_reservation(advice: ReservationAdvice, hours: int, form: Format) -> None:
    """The best level between none and the peak."""
    levels = {"none": advice.none, "best": advice.best, "peak": advice.peak}
    if form is Format.JSON:
        data = {
            name: {"nodes": each.nodes, "usd": money(each.usd), "used_share": f"{each.used_share:.4f}"} for name, each in levels.items()
        }
        write_json({"hours": hours, "break_even_share": f"{advice.break_even_share:.4f}", **data})
        return
    table = Table("", "nodes", f"USD in {hours} h", "of it used")
    for name, each in levels.items():
        table.add_row(name, str(each.nodes), shown_usd(each.usd), _used(each))
    show_table(table)
    out.print(
        f"reserve {advice.best.nodes} node(s): a node pays for itself when it is used {advice.break_even_share * 100:.1f} % of the time."
    )


def _used(level: ReservedLevel) -> str:
    return f"{level.used_share * 100:.1f} %" if level.nodes else ""
