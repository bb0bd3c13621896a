"""Strategies side by side, over many starts in many records, and the same as one HTML page."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from html import escape
from typing import TYPE_CHECKING

from capacity.catalog.capacity_type import CapacityType
from capacity.cost.replay import Outcome, replay
from capacity.cost.strategies import omniscient_usd, strategies
from capacity.values.quantities import SECONDS_OF_AN_HOUR, cents, saved_percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from capacity.cost.replay import Job, Rates, Trace


@dataclass(frozen=True)
class Trial:
    """One outcome beside what the same work cost at least, in the time that it was given or took."""

    outcome: Outcome
    bound_usd: Decimal


@dataclass(frozen=True)
class StrategyResult:
    """A strategy over all starts in one record. Means are over all starts; `mean_finish_hours` over those that ended (None: none did).

    `below_bound` counts trials that cost less than can be, of which there must be none. `saved_percent` is against on-demand, of finished
    runs alone: what has not ended has not earned its savings.
    """

    strategy: str
    starts: int
    finished: int
    missed: int
    below_bound: int
    mean_usd: Decimal
    mean_bound_usd: Decimal
    saved_percent: Decimal | None
    mean_finish_hours: float | None
    mean_interruptions: float


@dataclass(frozen=True)
class Comparison:
    """The strategies in one record. `available_share` is that of the first zone; `bound_usd` what the one who knows the future pays at
    least to end in time on Spot and on-demand.
    """

    name: str
    zones: int
    available_share: float
    job: Job
    bound_usd: Decimal
    results: tuple[StrategyResult, ...]


def trials(zones: Sequence[Trace], job: Job, rates: Rates) -> list[Trial]:
    """Every strategy from the begin of the traces on, each with its bound: the same work by the deadline, or by its end if later."""
    found: list[Trial] = []
    bounds: dict[tuple[int, int, bool], Decimal] = {}
    for strategy in strategies(rates, len(zones)):
        outcome = replay(zones, job, rates, strategy)
        # Each against the one who knows the future and has the same kinds of capacity: cheap flex-start would make all others look poor.
        used = rates if CapacityType.FLEX_START in outcome.billed_seconds else without_flex_start(rates)
        key = (outcome.work_seconds, max(job.deadline_seconds, outcome.played_seconds), used is rates)
        if key not in bounds:
            bounds[key] = omniscient_usd(zones, job, used, work_seconds=key[0], finish_seconds=key[1])
        found.append(Trial(outcome, bounds[key]))
    return found


def without_flex_start(rates: Rates) -> Rates:
    """The same prices of Spot and on-demand alone."""
    return replace(rates, flex_start_usd_per_hour=None)


def start_ticks(zones: Sequence[Trace], job: Job, starts: int) -> list[int]:
    """Evenly spread ticks from which the record reaches to the deadline; the begin alone where it is too short for that."""
    latest = len(zones[0].available) - -(-job.deadline_seconds // zones[0].gap_seconds)
    if latest <= 0 or starts == 1:
        return [0]
    return sorted({latest * each // (starts - 1) for each in range(starts)})


def compare(zones: Sequence[Trace], job: Job, rates: Rates, *, starts: int) -> Comparison:
    """All strategies from so many starts in the traces, which are zones of the same time."""
    by_strategy: dict[str, list[Trial]] = {}
    bounds: list[Decimal] = []
    for tick in start_ticks(zones, job, starts):
        later = [each.since(tick) for each in zones]
        for trial in trials(later, job, rates):
            by_strategy.setdefault(trial.outcome.strategy, []).append(trial)
        spot_and_on_demand = without_flex_start(rates)
        bounds.append(omniscient_usd(later, job, spot_and_on_demand, work_seconds=job.work_seconds, finish_seconds=job.deadline_seconds))
    on_demand = by_strategy["on-demand"][0].outcome.usd
    results = tuple(_result(name, each, job, on_demand) for name, each in by_strategy.items())
    name = zones[0].name if len(zones) == 1 else f"{zones[0].name} and {len(zones) - 1} more"
    return Comparison(name, len(zones), zones[0].available_share(job.nodes), job, _mean(bounds), results)


def _result(name: str, found: list[Trial], job: Job, on_demand_usd: Decimal) -> StrategyResult:
    ended = [each.outcome for each in found if each.outcome.finish_seconds is not None]
    finishes = [each.finish_seconds for each in ended if each.finish_seconds is not None]
    return StrategyResult(
        strategy=name,
        starts=len(found),
        finished=len(ended),
        missed=sum(not each.outcome.meets(job.deadline_seconds) for each in found),
        below_bound=sum(each.outcome.usd < each.bound_usd for each in found),
        mean_usd=_mean([each.outcome.usd for each in found]),
        mean_bound_usd=_mean([each.bound_usd for each in found]),
        saved_percent=saved_percent(_mean([each.usd for each in ended]), on_demand_usd) if ended else None,
        mean_finish_hours=sum(finishes) / len(finishes) / SECONDS_OF_AN_HOUR if finishes else None,
        mean_interruptions=sum(each.outcome.interruptions for each in found) / len(found),
    )


def _mean(amounts: list[Decimal]) -> Decimal:
    return sum(amounts, start=Decimal(0)) / len(amounts)


_WIDTH, _HEIGHT = 560, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 72, 20, 46, 56
_TICKS = 5
"""Marks on an axis at most, its beginning not counted."""
COLOURS = ("#4a73d9", "#c76a14", "#3b8a5a", "#b05cc2", "#d1493a", "#8d7945", "#6f8296", "#c2548a")
"""One for each strategy; each can be told from both grounds."""

STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --quiet: #5b6470; --line: #d4d8de; --ground: #ffffff }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ee; --quiet: #a3acb8; --line: #3a424d; --ground: #14181d } }
* { box-sizing: border-box }
body { font: 15px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--ground) }
body { max-width: 860px; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.4rem } h2 { font-size: 1.05rem; margin: 2.2rem 0 .3rem; overflow-wrap: anywhere }
p { color: var(--quiet); margin: .2rem 0 .8rem }
.plot { display: flex; flex-wrap: wrap; gap: .4rem 1.5rem } .plot > svg { flex: 1 1 22rem; min-width: 0; width: 100%; height: auto }
.key { list-style: none; margin: 2rem 0 0; padding: 0; font-size: .85rem; display: flex; flex-direction: column; gap: .15rem }
.key svg { width: 12px; height: 12px; margin-right: .45rem; vertical-align: -1px }
svg text { font: 12px system-ui, sans-serif; fill: var(--ink) } svg .quiet { fill: var(--quiet) }
svg line { stroke: var(--line) } svg .faint { stroke-opacity: .5 } svg .limit { stroke: var(--quiet); stroke-dasharray: 4 3 }
.wide { overflow-x: auto } table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums }
th, td { padding: .25rem .5rem; border-bottom: 1px solid var(--line) }
th { text-align: right; font-weight: 600 } td { text-align: right } th:first-child, td:first-child { text-align: left }
@media screen and (max-width: 620px) { svg text { font-size: 18px } .key { flex-flow: row wrap; gap: .2rem 1rem; margin: 0 }
  thead { position: absolute; left: -9999px }
  tr { display: grid; grid-template-columns: repeat(3, 1fr); gap: .2rem .6rem; padding: .5rem 0; border-bottom: 1px solid var(--line) }
  td { display: block; border: 0; padding: 0; text-align: left } td:first-child { grid-column: 1 / -1; font-weight: 600 }
  td::before { content: attr(data-of); display: block; color: var(--quiet); font-size: .75rem; font-weight: 400 }
  td:first-child::before { display: none } }
"""

_HEADS = ("strategy", "USD", "saved %", "ends in h", "missed", "interrupted", "at least USD")

# The policy forbids the page to load or run anything, whatever a name may hold.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def comparison_page(comparisons: Sequence[Comparison]) -> str:
    """The page. Nothing in it is loaded from elsewhere; names of traces are escaped."""
    sections = "".join(_section(each) for each in comparisons)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
        f"<title>Spot strategies</title><style>{STYLE}</style></head><body><h1>Ways to place a job, over records of Spot</h1>"
        "<p>Means over all starts. Left and low is good. Right of the upright dashed line is too late; below the other one nothing can be "
        "that is in time for certain, on Spot and on demand.</p>"
        f"{sections}</body></html>\n"
    )


def _section(found: Comparison) -> str:
    job = found.job
    work, deadline = job.work_seconds / SECONDS_OF_AN_HOUR, job.deadline_seconds / SECONDS_OF_AN_HOUR
    told = f"{work:g} h of work on {job.nodes} node(s), deadline after {deadline:g} h; Spot {found.available_share * 100:.0f} % of the time"
    rows = "".join(_row(each) for each in found.results)
    heads = "".join(f'<th scope="col">{each}</th>' for each in _HEADS)
    table = f'<div class="wide"><table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>'
    return f"<h2>{escape(found.name)}</h2><p>{escape(told)}</p>{_plot(found)}{table}"


def _row(result: StrategyResult) -> str:
    saved = "" if result.saved_percent is None else f"{result.saved_percent:z.0f}"
    ends = "none ended" if result.mean_finish_hours is None else f"{result.mean_finish_hours:.1f}"
    missed, interrupted = f"{result.missed} of {result.starts}", f"{result.mean_interruptions:.1f}"
    cells = (result.strategy, f"{cents(result.mean_usd):,}", saved, ends, missed, interrupted, f"{cents(result.mean_bound_usd):,}")
    told = "".join(f'<td data-of="{head}">{escape(each)}</td>' for head, each in zip(_HEADS, cells, strict=True))
    return f"<tr>{told}</tr>"


def ticks(most: int) -> list[int]:
    """Round numbers from 0 up to `most`, a few of them, as an axis shows them."""
    step = next(base * 10**power for power in range(20) for base in (1, 2, 5) if base * 10**power * _TICKS >= most)
    return list(range(0, most + 1, step))


def _plot(found: Comparison) -> str:
    """Mean cost over mean end. A strategy with unfinished runs has an open circle; one without a finished run is not drawn."""
    drawn = [(each, each.mean_finish_hours) for each in found.results if each.mean_finish_hours is not None]
    deadline = found.job.deadline_seconds / SECONDS_OF_AN_HOUR
    # Far later ones would squeeze the rest into a corner; they are drawn at the edge, and the table has their figures.
    last = min(max([deadline * 1.05, *(hours for _, hours in drawn)]), deadline * 1.5)
    most = max([found.bound_usd, *(each.mean_usd for each, _ in drawn)])

    def x(hours: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * min(hours, last) / last

    def y(usd: Decimal) -> float:
        return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * float(usd / most) / 1.08

    right, floor = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    parts = [
        *(
            f'<line class="faint" x1="{_LEFT}" y1="{y(Decimal(usd)):.1f}" x2="{right}" y2="{y(Decimal(usd)):.1f}"/>'
            f'<text class="quiet" x="{_LEFT - 6}" y="{y(Decimal(usd)) + 4:.1f}" text-anchor="end">{usd:,}</text>'
            for usd in ticks(int(most))
        ),
        *(
            f'<line x1="{x(hours):.1f}" y1="{floor}" x2="{x(hours):.1f}" y2="{floor + 4}"/>'
            f'<text class="quiet" x="{x(hours):.1f}" y="{floor + 20}" text-anchor="middle">{hours}</text>'
            for hours in ticks(int(last))
        ),
        f'<line x1="{_LEFT}" y1="{floor}" x2="{right}" y2="{floor}"/><line x1="{_LEFT}" y1="{_TOP}" x2="{_LEFT}" y2="{floor}"/>',
        f'<line class="limit" x1="{x(deadline):.1f}" y1="{_TOP}" x2="{x(deadline):.1f}" y2="{floor}"/>',
        f'<text class="quiet" x="{x(deadline):.1f}" y="{_TOP - 6}" text-anchor="middle">deadline</text>',
        f'<line class="limit" x1="{_LEFT}" y1="{y(found.bound_usd):.1f}" x2="{right}" y2="{y(found.bound_usd):.1f}"/>',
        f'<text class="quiet" x="{_LEFT + 4}" y="{y(found.bound_usd) - 4:.1f}">knowing the future, in time</text>',
        f'<text class="quiet" x="{right}" y="{_HEIGHT - 10}" text-anchor="end">mean end, hours after the start</text>',
        f'<text class="quiet" x="4" y="{_TOP - 28}">mean cost, USD</text>',
    ]
    key = ""
    for number, (each, hours) in enumerate(drawn):
        colour = COLOURS[number % len(COLOURS)]
        fill = colour if each.finished == each.starts else "none"
        late = " (beyond the edge)" if hours > last else ""
        title = f"<title>{escape(each.strategy)}: {cents(each.mean_usd)} USD, {hours:.1f} h</title>"
        look = f'fill="{fill}" stroke="{colour}" stroke-width="2"'
        # Those that cost and take the same lie on one another: rings of falling size show each.
        radius = 6 + 2 * sum(
            _near((x(hours), y(each.mean_usd)), (x(other_hours), y(other.mean_usd))) for other, other_hours in drawn[number + 1 :]
        )
        dot = f'cx="{x(hours):.1f}" cy="{y(each.mean_usd):.1f}" r="{radius}" fill-opacity="0.75"'
        parts.append(f"<circle {dot} {look}>{title}</circle>")
        mark = f'<svg viewBox="0 0 12 12" aria-hidden="true"><circle cx="6" cy="6" r="5" {look}/></svg>'
        key += f"<li>{mark}{escape(each.strategy)}{late}</li>"
    drawing = f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="cost over time of each strategy">{"".join(parts)}</svg>'
    return f'<div class="plot">{drawing}<ul class="key">{key}</ul></div>'


def _near(one: tuple[float, float], other: tuple[float, float]) -> bool:
    """Whether two points would hide each other."""
    return abs(one[0] - other[0]) + abs(one[1] - other[1]) < 3  # noqa: PLR2004 -- of the drawing's units, half a mark
