"""The chargeback report for an issue, a wiki or a message."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infra.cli import chargeback_words as words
from infra.cli.cost_markdown import literal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from capacity.chargeback.report import Report


def report_markdown(report: Report) -> str:
    """All tables. Names are shown as they are: no markup in them counts, and nobody is mentioned."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Report) -> Iterator[str]:
    yield f"# {literal(words.title(report))}"
    yield ""
    yield literal(words.how(report))
    yield ""
    yield from (f"- {name}: **{literal(figure)}**" for name, figure in words.summary(report))
    for each in words.tables(report):
        yield ""
        yield f"## {each.title}"
        yield ""
        yield f"| {' | '.join(each.headings)} |"
        yield f"|{'|'.join(':--' if column < each.texts else '--:' for column in range(len(each.headings)))}|"
        yield from (f"| {' | '.join(map(literal, row))} |" for row in each.rows)
    notes = [*words.warnings(report), *words.price_notes(report)]
    if notes:
        yield ""
        yield "## To be known"
        yield ""
        yield from (f"- {literal(each)}" for each in notes)
