"""What `flexspot review` prints: for people, and as a comment on a pull request."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.text import Text

from flexspot.infra.cli.console import out, table_console
from flexspot.infra.cli.money.cost import changes, how_counted, price_sources, three
from flexspot.infra.cli.tables import Table, change, folded, literal, print_table, shown_usd
from flexspot.infra.review.resource_changes import Becomes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from flexspot.capacity.cost.plan_cost import PlanCost
    from flexspot.infra.review.resource_changes import ResourceChange
    from flexspot.infra.review.stack_review import PolicyVerdict, StackReview


MARKER = "<!-- flexspot review -->"
"""The comment's first line, by which the next run finds the comment that it writes anew."""

_ROWS = 100
"""Resources and lines of one stack that a comment lists."""

_PATHS = 4
_MOST = 60_000
"""Characters of a comment: GitHub takes 65,536."""


@dataclass(frozen=True)
class Review:
    """A change from `base` to `head`, both as people name them: the stacks that it may mean something to, and those that it cannot.

    `untouched` has the costs of the latter, None for one on no cloud; a stack whose cost cannot be told is in `not_costed` instead.
    """

    base: str
    head: str
    stacks: tuple[StackReview, ...]
    untouched: Mapping[str, PlanCost | None]
    not_costed: tuple[str, ...] = ()

    @property
    def changed(self) -> list[StackReview]:
        """The stacks of which there is something to say."""
        return [each for each in self.stacks if not each.same]

    @property
    def unchanged(self) -> list[str]:
        """The stacks that stay as they are."""
        return sorted([*self.untouched, *self.not_costed, *(each.stack for each in self.stacks if each.same)])

    @property
    def refused(self) -> list[StackReview]:
        """The stacks that cannot be deployed as they would be."""
        return [each for each in self.stacks if each.refused]

    @property
    def more_usd(self) -> Decimal:
        """How much more a month is expected to cost over all stacks, as far as that is known."""
        return sum((each.more_usd for each in self.stacks if each.more_usd is not None), start=Decimal(0))

    @property
    def costs(self) -> list[PlanCost]:
        """What each stack on a cloud costs in a month after the change, as far as that is known."""
        return [each for each in (*(review.cost for review in self.stacks), *self.untouched.values()) if each is not None]

    @property
    def total(self) -> str:
        """What all stacks are expected to cost in a month, changed or not; empty where nothing is known."""
        least = self.not_costed or any(each.runs_on_a_cloud is None for each in self.stacks) or any(each.unknown for each in self.costs)
        usd = sum((each.total.expected_usd for each in self.costs), start=Decimal(0))
        return f"{'at least ' if least else ''}{shown_usd(usd)}" if self.costs else ""

    @property
    def in_a_line(self) -> str:
        """What it comes to."""
        if not self.changed:
            return "no stack changes"
        more = f"{change(self.more_usd)} USD a month" if self.more_usd else "the same cost"
        total = more if self._costed else "cost not known"
        total += f", {self.total} in all," if self._costed else ""
        told = f"{total} over {_counted(len(self.changed), 'changed stack')}, {len(self.unchanged)} unchanged"
        return f"{told}; {_counted(len(self.refused), 'stack')} refused" if self.refused else told

    @property
    def _costed(self) -> bool:
        return any(each.more_usd is not None for each in self.stacks)


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def unknown_of(review: StackReview) -> str:
    """What to say of the prices of a stack that nobody knows."""
    found = review.comparison
    return "" if found is None or not (found.before.unknown or found.after.unknown) else " in known prices"


def state_of(review: StackReview) -> str:
    """What becomes of a stack, in a word or two."""
    if review.head is None:
        return "leaves the repository"
    if review.refused:
        return "refused"
    if review.is_new:
        return "new"
    return "can be deployed again" if review.base is not None and review.base.refused else "can be deployed"


def _cost_words(review: StackReview) -> tuple[str, str]:
    """What a month is expected to cost, and the change."""
    if review.head is not None and review.runs_on_a_cloud is False:
        return "(no cloud)", ""
    cost = "not known"
    if review.cost is not None:
        cost = f"{at_least(review.cost)}{shown_usd(review.cost.total.expected_usd)}{mark(review.cost)}"
    elif review.head is None:
        cost = ""
    return cost, "" if review.more_usd is None else f"{change(review.more_usd)}{unknown_of(review)}"


def at_least(cost: PlanCost) -> str:
    """What to say before a sum from which prices are missing."""
    return "at least " if cost.unknown else ""


def mark(cost: PlanCost) -> str:
    """What to write behind a sum that stands on prices that nobody has checked."""
    return "" if all(each.verified for each in price_sources(cost)) else " (?)"


_MARKED = "(?) with prices that are not checked against the cloud's own list"


def _month(cost: PlanCost) -> str:
    """Between what and what a month of a stack is, by what is used."""
    expected, worst, floor = three(cost.total, bool(cost.unknown), bool(cost.unbounded))
    return f"a month, by use: {floor} with nothing running, {expected} expected, {worst} at worst"


def left_out(cost: PlanCost) -> list[tuple[str, str]]:
    """What is not in the sums of a stack, and why."""
    return [(each, f"price not known; counted {how_counted(cost, each)}") for each in cost.unknown] + [
        (each, "passed over") for each in cost.notes
    ]


_OPERATIONS = (Becomes.CREATED, Becomes.CHANGED, Becomes.REPLACED, Becomes.DELETED)


def why(each: ResourceChange) -> str:
    """The inputs that a resource changes in, or is made anew for."""
    more = f" and {len(each.paths) - _PATHS} more" if len(each.paths) > _PATHS else ""
    return ", ".join(each.paths[:_PATHS]) + more


def _lines(review: StackReview) -> Iterator[tuple[str, str]]:
    """What matters of a stack, the worst first, each with its kind."""
    head, base = review.head, review.base
    for line in _refusal(head.refused, review.new_verdicts) if head is not None else ():
        yield "refused", line
    if base is not None and base.refused and head is not None and not head.refused:
        yield "fixed", f"it was refused before: {base.refused[0]}"
    for each in review.refusals:
        yield "refused" if each.certain else "doubt", f"{each.words}. What to do: {each.remedy}"
    for loss in review.losses:
        yield "loss", loss.words
    for verdict in review.new_verdicts:
        yield "new" if verdict.mandatory else "advice", verdict_words(verdict)
    for verdict in review.fixed_verdicts:
        yield "fixed", verdict_words(verdict)


_PACK = re.compile(r"❌ \S+@v\S+( \(local: .*\))?")
"""A policy pack's heading, which says where it lies on the machine that ran it."""


def _refusal(lines: Iterable[str], verdicts: Iterable[PolicyVerdict]) -> Iterator[str]:
    """The lines that say why a preview failed, without their margin, and without what the new verdicts say below, in one line each."""
    found = list(verdicts)
    messages = [" ".join(each.message.split()) for each in found]
    for line in lines:
        text = " ".join(line.strip().removeprefix("|").split())
        heads_one = text.startswith("- [mandatory]") and any(f" {each.policy} (" in text for each in found)
        if not heads_one and not _PACK.fullmatch(text) and not any(text in message for message in messages):
            yield text


def verdict_words(verdict: PolicyVerdict) -> str:
    """A verdict in one line."""
    return " ".join(f"{verdict.policy}, {verdict.resource or 'the stack'}: {verdict.message}".split())


def show_review(review: Review) -> None:
    """The sum, a table of the stacks, then what matters of each."""
    out.print(f"[bold]{escape(review.base)} → {escape(review.head)}[/]: {escape(review.in_a_line)}.")
    if review.changed:
        print_table(table_console(), _table_of(review))
    for each in review.changed:
        _show_stack(each)
    if any(map(mark, review.costs)):
        out.print(f"[dim]{_MARKED}.[/]")
    if review.unchanged:
        out.print(f"[dim]unchanged: {escape(', '.join(review.unchanged))}[/]")


_COLOURS = {"refused": "bold red", "loss": "bold red", "new": "red", "doubt": "yellow", "advice": "yellow", "fixed": "green"}


def _show_stack(review: StackReview) -> None:
    out.print(f"[bold]{escape(review.stack)}[/]")
    for kind, line in _lines(review):
        out.print(f"  [{_COLOURS[kind]}]{kind}[/]: {escape(line)}")
    for each in review.changes[:_ROWS]:
        reason = f"  [dim]{escape(why(each))}[/]" if each.paths else ""
        out.print(f"  {each.becomes.value} {escape(each.token.rpartition(':')[2])} {escape(each.name)}{reason}")
    if review.cost is not None:
        out.print(f"  {_month(review.cost)}")
    for what, reason in left_out(review.cost) if review.cost is not None else ():
        out.print(f"  [dim]not in the sums: {escape(what)} ({escape(reason)})[/]")
    if len(review.changes) > _ROWS:
        out.print(f"  and {len(review.changes) - _ROWS} more; --format json has them all.")
    for told, what, quantity, expected, worst in changes(review.comparison).rows if review.comparison is not None else ():
        out.print(f"  cost, {told}: {escape(str(what))} ({escape(str(quantity))}): expected {expected}, worst case {worst}")


_MARKS = {"refused": "⛔", "loss": "⚠️", "new": "🔴", "doubt": "🟡", "advice": "🟡", "fixed": "✅"}


def review_markdown(review: Review) -> str:
    """The comment. Names and messages are shown as they are: no markup in them counts, and nobody is mentioned.

    One that is too long for a comment tells its later stacks in a line each.
    """
    parts = [_comment_of(each) for each in review.changed]
    head = [MARKER, f"### Flexspot: {literal(review.in_a_line)}", "", *_comment_table(review), ""]
    left = _MOST - sum(len(line) + 1 for line in head)
    for stack, part in zip(review.changed, parts, strict=True):
        text = "\n".join(part)
        if len(text) > left:
            text = f"**<code>{literal(stack.stack)}</code>**: too much for a comment; `flexspot review` shows it.\n"
        left -= len(text) + 1
        head.append(text)
    if review.unchanged:
        head.append(f"Unchanged: {', '.join(f'<code>{literal(each)}</code>' for each in review.unchanged)}.")
    head.append("")
    sides = f"{literal(review.base)} → {literal(review.head)}"
    head.append(f"<sub>{sides}, previewed without any cloud: what is deployed may differ.{_legend(review)}</sub>")
    return "\n".join(head) + "\n"


def _legend(review: Review) -> str:
    told = [f"Not in the sum: {', '.join(review.not_costed)}."] if review.not_costed and review.changed else []
    told += [f"{_MARKED}."] if any(map(mark, review.costs)) else []
    return "".join(f" {literal(each)}" for each in told)


def _table_of(review: Review) -> Table:
    headings = ("stack", "", *(each.value for each in _OPERATIONS), "expected", "change")
    rows: list[tuple[Text | str, ...]] = []
    for each in review.changed:
        state = Text(state_of(each), "bold red") if each.refused else state_of(each)
        rows.append((each.stack, state, *(str(each.count(operation) or "") for operation in _OPERATIONS), *_cost_words(each)))
    total = ("all stacks", *[""] * 5, review.total, change(review.more_usd)) if review.total else None
    return Table("the stacks that change, USD a month expected", headings, rows, 2, total=total)


def _comment_table(review: Review) -> Iterator[str]:
    """The same, with each stack's name as code."""
    if not review.changed:
        return
    yield "| stack | | created | changed | replaced | deleted | USD a month expected | change |"
    yield "|:--|:--|--:|--:|--:|--:|--:|--:|"
    for each, (_, state, *figures) in zip(review.changed, _table_of(review).rows, strict=True):
        cells = " | ".join(literal(str(figure)) for figure in figures)
        yield f"| <code>{literal(each.stack)}</code> | {'⛔ ' if each.refused else ''}{state} | {cells} |"
    if review.total:
        yield f"| all stacks | | | | | | {review.total} | {change(review.more_usd)} |"


def _comment_of(review: StackReview) -> list[str]:
    told = [f"**<code>{literal(review.stack)}</code>**", ""]
    told += [f"- {_MARKS[kind]} {kind}: {literal(line)}" for kind, line in _lines(review)]
    if review.cost is not None:
        told.append(f"- {literal(_month(review.cost))}")
    told.append("")
    if review.changes:
        rows = [(each.becomes.value, each.token.rpartition(":")[2], each.name, why(each)) for each in review.changes]
        told += folded(_summed(review.changes), Table("", ("", "type", "resource", "because of"), rows, 4), _ROWS, "review")
    if review.comparison is not None and review.comparison.lines:
        title = f"{_counted(len(review.comparison.lines), 'changed line')} of the cost"
        told += folded(title, changes(review.comparison), _ROWS, "review")
    if review.cost is not None and (left := left_out(review.cost)):
        told += folded(f"{len(left)} not in the sums", Table("", ("what", "why"), left, 2), _ROWS, "review")
    return told


def _summed(found: Iterable[ResourceChange]) -> str:
    counts = Counter(each.becomes for each in found)
    return "Resources: " + ", ".join(f"{counts[each]} {each.value}" for each in _OPERATIONS if counts[each])
