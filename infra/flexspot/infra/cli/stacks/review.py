"""`flexspot review`: effects of a change on every stack, for people, programs, a comment and code scanning services."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from rich.markup import escape
from rich.text import Text

from flexspot.capacity.cost.plan_comparison import comparison_data
from flexspot.capacity.values.errors import SettingsError, nearest
from flexspot.infra.cli.command_line import bad_usage, expect, option, own_version
from flexspot.infra.cli.console import Table, as_json, change, err, folded, literal, out, print_table, shown_usd
from flexspot.infra.cli.money.cost import changes, how_counted, of_known, price_sources, three
from flexspot.infra.cli.stacks.deploying import ready_engine
from flexspot.infra.project import FILE, project_here
from flexspot.infra.review.resource_changes import ProviderAnswer, ResourceChange, ResourceOperation
from flexspot.infra.review.revisions import affected, repository_of, stack_file_of
from flexspot.infra.review.stack_review import cost_of_untouched, stack_preview, stack_review
from flexspot.policies.lint.formats import SARIF_SCHEMA

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from flexspot.capacity.cost.plan_cost import PlanCost
    from flexspot.infra.project import Project
    from flexspot.infra.review.revisions import Repository, StackFile
    from flexspot.infra.review.stack_review import PolicyVerdict, StackPreview, StackReview


MARKER = "<!-- flexspot review -->"
"""First line of the comment. The next run finds the comment by it, and overwrites it."""

_ROWS = 100
"""Most resources and lines of one stack in a comment."""

_PATHS = 4
_MOST = 60_000
"""Most characters of a comment. GitHub takes 65,536."""


@dataclass(frozen=True)
class Review:
    """A change from `base` to `head`, both as people name them."""

    base: str
    head: str
    stacks: tuple[StackReview, ...]
    """The stacks that the change may affect."""
    untouched: Mapping[str, PlanCost | None]
    """Costs of the stacks that it cannot affect; None for one that is on no cloud."""
    not_costed: tuple[str, ...] = ()
    """Stacks that it cannot affect, and whose costs cannot be calculated."""

    @property
    def changed(self) -> list[StackReview]:
        """Stacks with something to report."""
        return [each for each in self.stacks if not each.same]

    @property
    def unchanged(self) -> list[str]:
        """Stacks that stay as they are."""
        return sorted([*self.untouched, *self.not_costed, *(each.stack for each in self.stacks if each.same)])

    @property
    def refused(self) -> list[StackReview]:
        """Stacks whose new version cannot be deployed."""
        return [each for each in self.stacks if each.refused]

    @property
    def more_usd(self) -> Decimal:
        """Change of a month's expected cost over all stacks, as far as it is known."""
        return sum((each.more_usd for each in self.stacks if each.more_usd is not None), start=Decimal(0))

    @property
    def costs(self) -> list[PlanCost]:
        """Cost of each stack on a cloud after the change, as far as it is known."""
        return [each for each in (*(review.cost for review in self.stacks), *self.untouched.values()) if each is not None]

    @property
    def total(self) -> str:
        """Expected monthly cost of all stacks, changed or not. Empty if no cost is known."""
        least = self.not_costed or any(each.runs_on_a_cloud is None for each in self.stacks) or any(each.unknown for each in self.costs)
        usd = sum((each.total.expected_usd for each in self.costs), start=Decimal(0))
        return f"{'at least ' if least else ''}{shown_usd(usd)}" if self.costs else ""

    @property
    def in_a_line(self) -> str:
        """Summary of the review in one line."""
        if not self.changed:
            return "no stack changes"
        total = "cost not known"
        if any(each.more_usd is not None for each in self.stacks):
            total = f"{f'{change(self.more_usd)} USD a month' if self.more_usd else 'the same cost'}, {self.total} in all,"
        summary = f"{total} over {_counted(len(self.changed), 'changed stack')}, {len(self.unchanged)} unchanged"
        return f"{summary}; {_counted(len(self.refused), 'stack')} refused" if self.refused else summary


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def state_of(review: StackReview) -> str:
    """Return a stack's state after the change, in a few words."""
    if review.head is None:
        return "leaves the repository"
    if review.refused:
        return "refused"
    if review.is_new:
        return "new"
    return "can be deployed again" if review.base is not None and review.base.refused else "can be deployed"


def _cost_words(review: StackReview) -> tuple[str, str]:
    """Return a month's expected cost, and its change."""
    if review.head is not None and review.runs_on_a_cloud is False:
        return "(no cloud)", ""
    cost = "" if review.head is None else "not known"
    if review.cost is not None:
        cost = f"{'at least ' if review.cost.unknown else ''}{shown_usd(review.cost.total.expected_usd)}{mark(review.cost)}"
    known = "" if review.comparison is None else of_known(review.comparison)
    return cost, "" if review.more_usd is None else f"{change(review.more_usd)}{known}"


def mark(cost: PlanCost) -> str:
    """Return the mark behind a sum that uses unchecked prices."""
    return "" if all(each.verified for each in price_sources(cost)) else " (?)"


_MARKED = "(?) with prices that are not checked against the cloud's own list"


def _month(cost: PlanCost) -> str:
    """Return the range of a stack's monthly cost, depending on its use."""
    expected, worst, floor = three(cost.total, bool(cost.unknown), bool(cost.unbounded))
    return f"a month, by use: {floor} with nothing running, {expected} expected, {worst} at worst"


def left_out(cost: PlanCost) -> list[tuple[str, str]]:
    """Return the items that a stack's sums do not include, with the reasons."""
    unknown = [(each, f"price not known; counted {how_counted(cost, each)}") for each in cost.unknown]
    return [*unknown, *((each, "passed over") for each in cost.notes)]


_OPERATIONS = (ResourceOperation.CREATED, ResourceOperation.CHANGED, ResourceOperation.REPLACED, ResourceOperation.DELETED)


def why(each: ResourceChange) -> str:
    """Return the inputs whose change updates or replaces a resource."""
    more = f" and {len(each.paths) - _PATHS} more" if len(each.paths) > _PATHS else ""
    return ", ".join(each.paths[:_PATHS]) + more


def _lines(review: StackReview) -> Iterator[tuple[str, str]]:
    """Yield the important lines of a stack, the worst first, each with its kind."""
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
"""A policy pack's heading, which has its path on the machine that ran it."""


def _refusal(lines: Iterable[str], verdicts: Iterable[PolicyVerdict]) -> Iterator[str]:
    """Yield the lines of a failed preview without their margin, one per text. Omits lines that repeat new verdicts."""
    found = list(verdicts)
    messages = [" ".join(each.message.split()) for each in found]
    for line in lines:
        text = " ".join(line.strip().removeprefix("|").split())
        heads_one = text.startswith("- [mandatory]") and any(f" {each.policy} (" in text for each in found)
        if not heads_one and not _PACK.fullmatch(text) and not any(text in message for message in messages):
            yield text


def verdict_words(verdict: PolicyVerdict) -> str:
    """Return a verdict in one line."""
    return " ".join(f"{verdict.policy}, {verdict.resource or 'the stack'}: {verdict.message}".split())


def show_review(review: Review) -> None:
    """Print the summary, a table of the stacks, then the important lines of each."""
    out.print(f"[bold]{escape(review.base)} → {escape(review.head)}[/]: {escape(review.in_a_line)}.")
    if review.changed:
        print_table(_table_of(review))
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
    for state, what, quantity, expected, worst in changes(review.comparison).rows if review.comparison is not None else ():
        out.print(f"  cost, {state}: {escape(str(what))} ({escape(str(quantity))}): expected {expected}, worst case {worst}")


_MARKS = {"refused": "⛔", "loss": "⚠️", "new": "🔴", "doubt": "🟡", "advice": "🟡", "fixed": "✅"}


def review_markdown(review: Review) -> str:
    """Return the comment. Names and messages are escaped, so that they contain neither markup nor mentions.

    If it is too long for a comment, the later stacks have one line each.
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
    legend = f"{literal(review.base)} → {literal(review.head)}, previewed without any cloud: what is deployed may differ."
    if review.not_costed and review.changed:
        legend += f" Not in the sum: {', '.join(map(literal, review.not_costed))}."
    if any(map(mark, review.costs)):
        legend += f" {literal(_MARKED)}."
    head.append(f"<sub>{legend}</sub>")
    return "\n".join(head) + "\n"


def _table_of(review: Review) -> Table:
    headings = ("stack", "", *(each.value for each in _OPERATIONS), "expected", "change")
    rows: list[tuple[Text | str, ...]] = []
    for each in review.changed:
        state = Text(state_of(each), "bold red") if each.refused else state_of(each)
        rows.append((each.stack, state, *(str(each.count(operation) or "") for operation in _OPERATIONS), *_cost_words(each)))
    total = ("all stacks", *[""] * 5, review.total, change(review.more_usd)) if review.total else None
    return Table("the stacks that change, USD a month expected", headings, rows, 2, total=total)


def _comment_table(review: Review) -> Iterator[str]:
    """Yield the table of stacks as Markdown, with each stack's name as code."""
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
    lines = [f"**<code>{literal(review.stack)}</code>**", ""]
    lines += [f"- {_MARKS[kind]} {kind}: {literal(line)}" for kind, line in _lines(review)]
    if review.cost is not None:
        lines.append(f"- {literal(_month(review.cost))}")
    lines.append("")
    if review.changes:
        rows = [(each.becomes.value, each.token.rpartition(":")[2], each.name, why(each)) for each in review.changes]
        counts = Counter(each.becomes for each in review.changes)
        summed = ", ".join(f"{counts[each]} {each.value}" for each in _OPERATIONS if counts[each])
        lines += folded(f"Resources: {summed}", Table("", ("", "type", "resource", "because of"), rows, 4), _ROWS, "review")
    if review.comparison is not None and review.comparison.lines:
        title = f"{_counted(len(review.comparison.lines), 'changed line')} of the cost"
        lines += folded(title, changes(review.comparison), _ROWS, "review")
    if review.cost is not None and (left := left_out(review.cost)):
        lines += folded(f"{len(left)} not in the sums", Table("", ("what", "why"), left, 2), _ROWS, "review")
    return lines


def review_json(review: Review) -> str:
    """Return the whole review as JSON, with money as text."""
    data = {
        "base": review.base,
        "head": review.head,
        "summary": review.in_a_line,
        "expected_usd_more": str(review.more_usd),
        "expected_usd": str(sum((each.total.expected_usd for each in review.costs), start=Decimal(0))),
        "expected_usd_without": sorted([*review.not_costed, *(each.stack for each in review.stacks if each.runs_on_a_cloud is None)]),
        "refused": [each.stack for each in review.refused],
        "unchanged": review.unchanged,
        "stacks": [_stack_data(each) for each in review.changed],
    }
    return as_json(data)


def _stack_data(review: StackReview) -> dict[str, Any]:
    total = None if review.cost is None else review.cost.total
    return {
        "stack": review.stack,
        "state": state_of(review),
        "refused": list(review.head.refused) if review.head is not None else [],
        "resources": [
            {"urn": each.urn, "type": each.token, "name": each.name, "becomes": each.becomes, "because_of": each.paths}
            for each in review.changes
        ],
        "losses": [each.words for each in review.losses],
        "cloud_refuses": [
            {"rule": each.rule, "certain": each.certain, "words": each.words, "remedy": each.remedy} for each in review.refusals
        ],
        "verdicts": {"new": _verdict_data(review.new_verdicts), "fixed": _verdict_data(review.fixed_verdicts)},
        "expected_usd": None if total is None else total.expected_usd,
        "worst_case_usd": None if total is None else total.worst_usd,
        "idle_usd": None if total is None else total.floor_usd,
        "not_in_the_sums": [] if review.cost is None else [{"what": what, "why": reason} for what, reason in left_out(review.cost)],
        "cost": None if review.comparison is None else comparison_data(review.comparison),
    }


def _verdict_data(verdicts: Iterable[PolicyVerdict]) -> list[dict[str, Any]]:
    return [{"policy": each.policy, "urn": each.urn or None, "mandatory": each.mandatory, "message": each.message} for each in verdicts]


def review_sarif(review: Review, version: str, files: dict[str, str]) -> str:
    """Return new verdicts and refusals as SARIF.

    A resource has no line, so each result is at the first line of its stack's file. `files` has these files by stack.
    """
    results = [
        {
            "ruleId": rule,
            "level": level,
            "message": {"text": f"{each.stack}: {text}"},
            "locations": [{"physicalLocation": {"artifactLocation": {"uri": files[each.stack]}, "region": {"startLine": 1}}}],
        }
        for each in review.changed
        if each.stack in files
        for rule, level, text in _results(each)
    ]
    rules = [{"id": each} for each in dict.fromkeys(result["ruleId"] for result in results)]
    run = {"tool": {"driver": {"name": "flexspot review", "semanticVersion": version, "rules": rules}}, "results": results}
    return as_json({"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]})


def _results(review: StackReview) -> Iterator[tuple[str, str, str]]:
    for each in review.new_verdicts:
        yield each.policy, "error" if each.mandatory else "warning", verdict_words(each)
    for each in review.refusals:
        yield each.rule, "error" if each.certain else "warning", f"{each.words}. What to do: {each.remedy}"
    explained = any(each.mandatory for each in review.new_verdicts)
    if review.head is not None and review.head.refused and not explained:
        yield "stack-is-refused", "error", " ".join(review.head.refused)


_SHORT = 9
_STACK_FILE = re.compile(r"Pulumi\.([A-Za-z0-9_.-]+)\.yaml")
"""Names of stack files that Pulumi accepts. Other names could be mistaken for something else where they are printed."""

_AT_ONCE = 4


def review(
    base: Annotated[str, option("--base", "The branch, tag or commit that the change will be merged into.", metavar="REV")],
    head: Annotated[
        str | None, option("--head", "The branch, tag or commit with the change. Default: the working tree.", metavar="REV")
    ] = None,
    stacks: Annotated[list[str] | None, option("--stack -s", "Only this stack, whatever changed. Repeatable.", metavar="STACK")] = None,
    form: Annotated[
        Literal["text", "json", "markdown", "sarif"],
        option("--format", "text for people, json for programs, markdown for a comment, sarif for code scanning."),
    ] = "text",
) -> None:
    """Report what a change does to every stack: resources and why, new and fixed verdicts, cost. Exit code 1 if a stack cannot be deployed.

    Previews both revisions offline, each with its own program, in copies. Needs no credentials, cloud or state. The base is the last commit
    that both have, as in a pull request.
    """
    from flexspot.lab.providers.values import UNKNOWN  # noqa: PLC0415

    project = project_here()
    repository = repository_of(project.folder)
    head_commit = None if head is None else repository.commit(head)
    base_commit = repository.common(repository.commit(base), head_commit or repository.commit("HEAD"))
    changed = {
        path: (repository.content(base_commit, path), repository.content(head_commit, path))
        for path in repository.changed(base_commit, head_commit)
    }
    files = _stack_files(repository, project, base_commit, head_commit)
    for name in stacks or ():
        if name not in files:
            raise bad_usage(f"--stack: neither revision has a stack {name}.", f"name another stack; {nearest(name, files)}.")
    asked = sorted(set(stacks)) if stacks else affected(changed, files)
    err.print(f"{_counted(len(changed), 'changed file')}; {len(asked)} of {len(files)} stacks may change: {', '.join(asked) or 'none'}")
    with tempfile.TemporaryDirectory(prefix="flexspot-review-") as made:
        previews = _previews(repository, project, {base_commit: "base", head_commit: "head"}, asked, Path(made)) if asked else {}
        sides = [(each, previews[each, base_commit], previews[each, head_commit]) for each in asked]
        found = tuple(stack_review(*each, predicted_answer, UNKNOWN) for each in sides)
        rest = sorted(files.keys() - set(asked))
        folder = repository.root if head_commit is None else Path(made) / "head"
        costs = _costs_of_untouched({each: folder / files[each].path for each in rest}) if asked else {}
        found_review = Review(
            base_commit[:_SHORT],
            "the files here" if head_commit is None else head_commit[:_SHORT],
            found,
            costs,
            tuple(each for each in rest if each not in costs),
        )
        if form == "text":
            show_review(found_review)
        elif form == "sarif":
            sys.stdout.write(review_sarif(found_review, own_version(), {stack: file.path for stack, file in files.items()}))
        else:
            sys.stdout.write((review_json if form == "json" else review_markdown)(found_review))
    expect(not found_review.refused)


def _costs_of_untouched(paths: Mapping[str, Path]) -> dict[str, PlanCost | None]:
    """Return the costs of stacks without a preview, as far as their files can be read here.

    Either revision may use another version of Flexspot.
    """
    found: dict[str, PlanCost | None] = {}
    for stack, path in paths.items():
        with suppress(SettingsError, OSError, ValueError):
            found[stack] = cost_of_untouched(path)
    return found


def _stack_files(repository: Repository, project: Project, base: str, head: str | None) -> dict[str, StackFile]:
    """Return the stacks of either revision, each with its file."""
    folder = project.stacks.resolve().relative_to(repository.root.resolve())
    found: dict[str, StackFile] = {}
    for commit in (base, head):
        for path in repository.files(commit, folder):
            named = _STACK_FILE.fullmatch(path.rpartition("/")[2])
            if named is not None:
                found[named[1]] = stack_file_of(path, (repository.content(base, path), repository.content(head, path)))
    return found


def _previews(
    repository: Repository, project: Project, sides: Mapping[str | None, str], stacks: list[str], made: Path
) -> dict[tuple[str, str | None], StackPreview | None]:
    """Return previews of every stack at both commits, several at a time. None if a commit does not have the stack."""
    from flexspot.lab.engine import own_root  # noqa: PLC0415

    # Builds what is missing once, with its progress shown.
    own_root(ready_engine)
    below = project.folder.resolve().relative_to(repository.root.resolve())
    checkouts: dict[str | None, Path] = {None: repository.root}
    for commit, side in sides.items():
        if commit is not None:
            checkouts[commit] = made / side
            repository.written_to(made / side, commit)

    def previewed(stack: str, commit: str | None) -> StackPreview | None:
        folder = checkouts[commit] / below
        if not (folder / FILE).is_file() or stack not in project_here(folder).stack_names():
            return None
        found = stack_preview(stack, folder, checkouts[commit], made / f"{stack}-{sides[commit]}.json")
        err.print(f"  {'✗' if found.refused else '✓'} {stack}, {sides[commit]}: {'refused' if found.refused else 'can be deployed'}")
        return found

    with ThreadPoolExecutor(max_workers=min(_AT_ONCE, os.cpu_count() or 1)) as pool:
        running = {(stack, commit): pool.submit(previewed, stack, commit) for stack in stacks for commit in sides}
        return {key: each.result() for key, each in running.items()}


def predicted_answer(token: str, old: dict[str, object], new: dict[str, object]) -> ProviderAnswer:
    """Return how the provider would answer changed inputs, according to the provider's rules that Flexspot knows."""
    from flexspot.lab.providers.cloud_rules.rule_differences import answered, deletes_first  # noqa: PLC0415

    found = answered(token, old, new)
    replacing = tuple(each.written for each in found if each.replaces)
    return ProviderAnswer(tuple(each.written for each in found), replacing, bool(replacing) and deletes_first(token, old, new))
