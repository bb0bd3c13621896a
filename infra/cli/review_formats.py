"""What `flexspot review` writes for programs, and for code scanning services."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from capacity.cost.plan_comparison import comparison_data
from infra.cli.review_report import left_out, state_of, verdict_words
from policies.lint.formats import SARIF_SCHEMA

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from infra.cli.review_report import Review
    from infra.review.stack_previews import Verdict
    from infra.review.stack_review import StackReview


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
    return json.dumps(data, indent=2) + "\n"


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


def _verdict_data(verdicts: Iterable[Verdict]) -> list[dict[str, Any]]:
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
    return json.dumps({"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _results(review: StackReview) -> Iterator[tuple[str, str, str]]:
    for each in review.new_verdicts:
        yield each.policy, "error" if each.mandatory else "warning", verdict_words(each)
    for each in review.refusals:
        yield each.rule, "error" if each.certain else "warning", f"{each.words}. What to do: {each.remedy}"
    told = any(each.mandatory for each in review.new_verdicts)
    if review.head is not None and review.head.refused and not told:
        yield "stack-is-refused", "error", " ".join(review.head.refused)
