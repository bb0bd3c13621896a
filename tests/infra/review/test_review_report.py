"""Reports of a review. Names and messages from users are shown without effect as markup or control characters."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from review_examples import POOL, pool, review_of

from flexspot.infra.cli.stacks.review import MARKER, Review, review_json, review_markdown, review_sarif, show_review
from flexspot.infra.review.resource_changes import ResourceOperation
from flexspot.infra.review.stack_review import StackPreview, StackReview, cost_of_untouched

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexspot.capacity.cost.plan_cost import PlanCost

STACKS = Path(__file__).parents[3] / "stacks"
SARIF = json.loads((Path(__file__).parents[2] / "policies" / "lint" / "sarif-schema-2.1.0.json").read_text(encoding="utf-8"))
HOSTILE = "</details><img src=x onerror=alert(1)> @everyone [click](javascript:1) | `x` \x1b[2J ![a](http://a/b)\n# no\n<!-- -->"


def reviewed(*stacks: StackReview, untouched: tuple[str, ...] = ("dev-gke",)) -> Review:
    return Review("3cbc82280", "the files here", stacks, dict.fromkeys(untouched))


def test_the_comment_names_deletions_their_reasons_and_new_verdicts() -> None:
    report = review_markdown(reviewed(review_of("h100")))

    assert report.startswith(f"{MARKER}\n### Flexspot: ")
    assert "pool h100 is deleted and created again, with its nodes and what runs on them, because gpus&#95;per&#95;node changes" in report
    assert "🔴 new: gpu-pool-without-taint, NodePool h100: the pool has no taint" in report
    assert "Unchanged: <code>dev-gke</code>." in report


def test_names_and_messages_stay_text_in_the_comment() -> None:
    report = review_markdown(reviewed(review_of(HOSTILE, HOSTILE, head=StackPreview(None, (HOSTILE,)))))
    ours = {"code", "/code", "details", "/details", "summary", "/summary", "sub", "/sub", "!-- flexspot review --"}

    assert set(re.findall(r"<([^>]*)>", report)) <= ours
    assert report.count("<details>") == report.count("</details>")
    assert "@" not in report
    assert "](" not in report
    assert "\x1b" not in report
    assert [line for line in report.splitlines() if line.startswith("#")] == [report.splitlines()[1]]
    rows = [line for line in report.splitlines() if line.startswith("| replaced")]
    assert [row.count("|") for row in rows] == [5], "a bar in a name would be another column"


def test_control_characters_are_escaped_on_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    show_review(reviewed(review_of(HOSTILE, HOSTILE)))

    assert "\x1b" not in capsys.readouterr().out


def many() -> Iterator[StackReview]:
    for number in range(30):
        changes = tuple(pool(f"pool-{number}-{each}-{'x' * 60}", ResourceOperation.CHANGED, "initialNodeCount") for each in range(100))
        yield replace(review_of("h100"), stack=f"stack-{number}", changes=changes)


def test_a_comment_fits_into_githubs_limit_and_names_every_stack() -> None:
    report = review_markdown(reviewed(*many()))

    assert len(report) < 65_536
    assert all(f"<code>stack-{number}</code>" in report for number in range(30))


@pytest.fixture(scope="module")
def costs() -> dict[str, PlanCost | None]:
    """Return the costs of the shipped stacks."""
    return {path.name.split(".")[1]: cost_of_untouched(path) for path in sorted(STACKS.glob("Pulumi.*.yaml"))}


def expected_of(cost: PlanCost | None) -> Decimal:
    """Return the sum of the lines, each rounded to cents as shown."""
    assert cost is not None
    return sum((line.figures.expected_usd for line in cost.lines if line.figures is not None), start=Decimal(0)).quantize(Decimal("0.01"))


def test_the_heading_has_one_total_over_all_stacks_and_names_missing_ones(costs: dict[str, PlanCost | None]) -> None:
    gke = review_of("h100", stack="dev-gke", head=StackPreview(Path("plan")), cost=costs["dev-gke"])
    review = Review("base", "head", (gke,), {"dev-eks": costs["dev-eks"], "local": costs["local"]}, ("prod-eks",))
    least = Decimal(json.loads(review_json(review))["expected_usd"])

    assert costs["local"] is None
    assert least.quantize(Decimal("0.01")) == expected_of(costs["dev-gke"]) + expected_of(costs["dev-eks"])
    report = review_markdown(review)
    assert f"| all stacks | | | | | | at least {least:,.2f} |" in report
    assert "may differ. Not in the sum: prod-eks. " in report
    assert json.loads(review_json(review))["expected_usd_without"] == ["prod-eks"]


@pytest.mark.parametrize(
    "changed,sign",
    [({"base": None, "cost": True, "head": StackPreview(Path("plan"))}, 1), ({"head": None, "former": True}, -1)],
    ids=["a new stack", "one that leaves"],
)
def test_a_new_stack_costs_more_and_a_removed_one_less(changed: dict[str, Any], sign: int, costs: dict[str, PlanCost | None]) -> None:
    more: dict[str, Any] = {name: costs["dev-eks"] if value is True else value for name, value in changed.items()}
    review = reviewed(replace(review_of("h100"), **more), untouched=())

    assert Decimal(json.loads(review_json(review))["expected_usd_more"]).quantize(Decimal("0.01")) == sign * expected_of(costs["dev-eks"])
    assert f"{sign * expected_of(costs['dev-eks']):+,.2f} USD a month" in review_markdown(review).splitlines()[1]


def test_a_stack_lists_costs_by_use_unverified_prices_and_costs_outside_of_sums(costs: dict[str, PlanCost | None]) -> None:
    cost = costs["dev-eks"]
    assert cost is not None
    first, *others = cost.lines
    lines = (replace(first, unknown=("Spot price of p9.48xlarge in us-east-1",)), *others)
    guessed = replace(cost, lines=lines, notes=("the use names class trainig",))
    review = reviewed(review_of("h100", stack="dev-eks", head=StackPreview(Path("plan")), cost=guessed), untouched=())

    report = review_markdown(review)
    assert re.search(r"- a month, by use: [\d,.]+ \+\? with nothing running, [\d,.]+ \+\? expected, [\d,.]+ \+\? at worst", report)
    assert "<summary>2 not in the sums</summary>" in report
    assert "Spot price of p9" in report
    assert "(?)" in report
    checked = tuple(replace(line, prices=tuple(replace(price, verified=True) for price in line.prices)) for line in cost.lines)
    fine = reviewed(review_of("h100", head=StackPreview(Path("plan")), cost=replace(cost, lines=checked)), untouched=())
    assert "(?)" not in review_markdown(fine)
    [stack] = json.loads(review_json(review))["stacks"]
    assert [each["what"] for each in stack["not_in_the_sums"]] == [*guessed.unknown, *guessed.notes]
    assert Decimal(stack["idle_usd"]) <= Decimal(stack["expected_usd"]) <= Decimal(stack["worst_case_usd"])


def test_a_review_without_changes_is_one_line() -> None:
    report = review_markdown(reviewed(untouched=("dev-gke", "prod-gke")))

    assert report.splitlines()[1] == "### Flexspot: no stack changes"
    assert "Unchanged: <code>dev-gke</code>, <code>prod-gke</code>." in report


def test_programs_get_everything_as_json() -> None:
    report = json.loads(review_json(reviewed(review_of("h100"))))

    assert report["unchanged"] == ["dev-gke"]
    stack = report["stacks"][0]
    assert stack["resources"] == [
        {
            "urn": POOL.format("h100"),
            "type": "gcp:container/nodePool:NodePool",
            "name": "h100",
            "becomes": "replaced",
            "because_of": ["nodeConfig.guestAccelerators[0].count"],
        }
    ]
    assert [each["policy"] for each in stack["verdicts"]["new"]] == ["gpu-pool-without-taint"]


def test_a_refusal_is_reported_once_and_without_paths_of_the_machine() -> None:
    lines = (
        "error: preview of stack prod-gke failed.",
        "  |     ❌ flexspot@v0.1.0 (local: /x/policies/pack)",
        "  |         - [mandatory]  [severity: high]  gpu-pool-without-taint  (gcp:container/nodePool:NodePool: h100)",
        "  |           the pool has no taint",
        "  |         - [mandatory]  [severity: high]  budget-exceeded  (flexspot:index:MonthlyCost: monthly-cost)",
        "  |           it costs too much, as before",
        "what to do: fix what the policies report above; nothing that they refused was deployed.",
    )
    report = review_markdown(reviewed(review_of("h100", head=StackPreview(None, lines))))

    assert [line for line in report.splitlines() if line.startswith("- ⛔")] == [
        "- ⛔ refused: error: preview of stack prod-gke failed.",
        "- ⛔ refused: - &#91;mandatory&#93; &#91;severity: high&#93; budget-exceeded (flexspot:index:MonthlyCost: monthly-cost)",
        "- ⛔ refused: it costs too much, as before",
        "- ⛔ refused: what to do: fix what the policies report above; nothing that they refused was deployed.",
    ]
    assert report.count("the pool has no taint") == 1


def test_code_scanning_gets_sarif_at_the_stacks_file() -> None:
    refused = review_of("h100", head=StackPreview(None, ("error: no such machine",)), new_verdicts=())
    report = json.loads(review_sarif(reviewed(review_of("a"), refused), "1.2.3", {"prod-gke": "stacks/Pulumi.prod-gke.yaml"}))

    jsonschema.validate(report, SARIF)
    results = report["runs"][0]["results"]
    assert [each["ruleId"] for each in results] == ["gpu-pool-without-taint", "stack-is-refused"]
    assert {each["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for each in results} == {"stacks/Pulumi.prod-gke.yaml"}


@pytest.mark.parametrize(
    "changed, words",
    [
        ({"base": None}, "new"),
        ({"head": None}, "leaves the repository"),
        ({"base": StackPreview(None, ("error: x",))}, "can be deployed again"),
        ({"head": StackPreview(None, ("error: x",))}, "refused"),
        ({}, "can be deployed"),
    ],
)
def test_the_state_of_a_stack_is_in_words(changed: dict[str, Any], words: str) -> None:
    assert json.loads(review_json(reviewed(review_of("h100", **changed))))["stacks"][0]["state"] == words
