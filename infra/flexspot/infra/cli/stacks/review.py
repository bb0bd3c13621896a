"""What `flexspot review` writes for programs, and for code scanning services."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flexspot.capacity.cost.plan_comparison import comparison_data
from flexspot.capacity.values.errors import ExitCode, SettingsError, nearest
from flexspot.infra.cli.command_line import bad_usage, own_version
from flexspot.infra.cli.console import err
from flexspot.infra.cli.stacks.deployed import ready_engine
from flexspot.infra.cli.stacks.review_report import Review, left_out, review_markdown, show_review, state_of, verdict_words
from flexspot.infra.cli.tables import as_json
from flexspot.infra.project import FILE, project_here
from flexspot.infra.review.resource_changes import ProviderAnswer
from flexspot.infra.review.revisions import affected, repository_of, stack_file_of
from flexspot.infra.review.stack_review import cost_of_untouched, stack_preview, stack_review
from flexspot.policies.lint.formats import SARIF_SCHEMA

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from flexspot.capacity.cost.plan_cost import PlanCost
    from flexspot.infra.project import Project
    from flexspot.infra.review.revisions import Repository, StackFile
    from flexspot.infra.review.stack_review import PolicyVerdict, StackPreview, StackReview


def review_json(review: Review) -> str:
    """The whole of it, money as text."""
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
    return {
        "stack": review.stack,
        "state": state_of(review),
        "refused": list(review.head.refused) if review.head is not None else [],
        "resources": [
            {"urn": each.urn, "type": each.token, "name": each.name, "becomes": each.becomes.value, "because_of": list(each.paths)}
            for each in review.changes
        ],
        "losses": [each.words for each in review.losses],
        "cloud_refuses": [
            {"rule": each.rule, "certain": each.certain, "words": each.words, "remedy": each.remedy} for each in review.refusals
        ],
        "verdicts": {"new": _verdict_data(review.new_verdicts), "fixed": _verdict_data(review.fixed_verdicts)},
        "expected_usd": None if review.cost is None else str(review.cost.total.expected_usd),
        "worst_case_usd": None if review.cost is None else str(review.cost.total.worst_usd),
        "idle_usd": None if review.cost is None else str(review.cost.total.floor_usd),
        "not_in_the_sums": [] if review.cost is None else [{"what": what, "why": reason} for what, reason in left_out(review.cost)],
        "cost": None if review.comparison is None else comparison_data(review.comparison),
    }


def _verdict_data(verdicts: Iterable[PolicyVerdict]) -> list[dict[str, Any]]:
    return [{"policy": each.policy, "urn": each.urn or None, "mandatory": each.mandatory, "message": each.message} for each in verdicts]


def review_sarif(review: Review, version: str, files: dict[str, str]) -> str:
    """New verdicts, and what refuses a stack, each at the first line of its stack's file (`files` by stack): a resource has no line."""
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
    told = any(each.mandatory for each in review.new_verdicts)
    if review.head is not None and review.head.refused and not told:
        yield "stack-is-refused", "error", " ".join(review.head.refused)


class ReviewFormat(StrEnum):
    """How the report is printed: for people, for programs, as a comment, or for code scanning services."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"
    SARIF = "sarif"


_SHORT = 9
_STACK_FILE = re.compile(r"Pulumi\.([A-Za-z0-9_.-]+)\.yaml")
"""With a name as Pulumi takes it, so that no name of a file is taken for anything else where it is told."""

_AT_ONCE = 4


def review(
    base: Annotated[str, typer.Option("--base", metavar="REV", help="The branch, tag or commit that the change will be merged into.")],
    head: Annotated[
        str | None, typer.Option("--head", metavar="REV", help="The branch, tag or commit with the change. Default: the working tree.")
    ] = None,
    stacks: Annotated[
        list[str] | None, typer.Option("--stack", "-s", metavar="STACK", help="Only this stack, whatever changed. Repeatable.")
    ] = None,
    form: Annotated[
        ReviewFormat, typer.Option("--format", help="text for people, json for programs, markdown for a comment, sarif for code scanning.")
    ] = ReviewFormat.TEXT,
) -> None:
    """Report what a change does to every stack: resources and why, new and fixed verdicts, cost. Exit code 1 if a stack cannot be deployed.

    Previews both revisions offline, each with its own program, in copies. Needs no credentials, cloud or state. The base is
    the last commit that both have, as in a pull request.
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
            raise bad_usage(f"there is no stack {name} on either side.", f"{nearest(name, files)}.")
    asked = sorted(set(stacks)) if stacks else affected(changed, files)
    touched = "1 changed file" if len(changed) == 1 else f"{len(changed)} changed files"
    err.print(f"{touched}; {len(asked)} of {len(files)} stacks may be another: {', '.join(asked) or 'none'}")
    with tempfile.TemporaryDirectory(prefix="flexspot-review-") as made:
        previews = _previews(repository, project, {base_commit: "base", head_commit: "head"}, asked, Path(made)) if asked else {}
        found = tuple(
            stack_review(each, previews[each, base_commit], previews[each, head_commit], ask_providers, UNKNOWN) for each in asked
        )
        rest = sorted(files.keys() - set(asked))
        folder = repository.root if head_commit is None else Path(made) / "head"
        costs = _costs_of_untouched({each: folder / files[each].path for each in rest}) if asked else {}
        told = Review(
            base_commit[:_SHORT],
            "the files here" if head_commit is None else head_commit[:_SHORT],
            found,
            costs,
            tuple(each for each in rest if each not in costs),
        )
        if form is ReviewFormat.JSON:
            sys.stdout.write(review_json(told))
        elif form is ReviewFormat.MARKDOWN:
            sys.stdout.write(review_markdown(told))
        elif form is ReviewFormat.SARIF:
            sys.stdout.write(review_sarif(told, own_version(), {stack: file.path for stack, file in files.items()}))
        else:
            show_review(told)
    if told.refused:
        raise typer.Exit(ExitCode.UNMET)


def _costs_of_untouched(paths: Mapping[str, Path]) -> dict[str, PlanCost | None]:
    """What each stack costs that is not previewed, as far as its file can be read here: both sides may be of another version."""
    found: dict[str, PlanCost | None] = {}
    for stack, path in paths.items():
        with suppress(SettingsError, OSError, ValueError):
            found[stack] = cost_of_untouched(path)
    return found


def _stack_files(repository: Repository, project: Project, base: str, head: str | None) -> dict[str, StackFile]:
    """The stacks of either side, each with its file."""
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
    """Every stack at both commits, several at a time; None where a commit does not have it."""
    from flexspot.lab.engine import own_root  # noqa: PLC0415

    # What must be built is built once, and shown.
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


def ask_providers(token: str, old: dict[str, object], new: dict[str, object]) -> ProviderAnswer:
    """A provider's answer to other inputs, by its own rules as far as they are known here."""
    from flexspot.lab.providers.cloud_rules.rule_differences import answered, deletes_first  # noqa: PLC0415

    found = answered(token, old, new)
    replacing = tuple(each.written for each in found if each.replaces)
    return ProviderAnswer(tuple(each.written for each in found), replacing, bool(replacing) and deletes_first(token, old, new))
