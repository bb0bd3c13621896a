"""A review in another currency: stacks that sum to all stacks, changes that sum to the change, and no dollar but what policies say."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from converted_costs import RATE, RATE_FILE, RATE_WORDS, assert_both_currencies, dollars_left, tables
from currency_reports import in_euros
from made_reviews import review_of
from typer.testing import CliRunner

from capacity.catalog.exchange_rates import ExchangeRateFile
from capacity.cost.plan_comparison import compared
from capacity.values.errors import ExitCode, ExplainedError
from infra.cli import console
from infra.cli.app import app
from infra.cli.review_formats import review_json, review_sarif
from infra.cli.review_report import Review, exchanged_review, review_markdown, show_review
from infra.review.stack_previews import StackPreview
from infra.review.stack_review import StackReview, cost_of_untouched

if TYPE_CHECKING:
    from capacity.cost.plan_cost import PlanCost

STACKS = Path(__file__).parents[3] / "stacks"
INTO = ExchangeRateFile.model_validate(yaml.safe_load(RATE_FILE)).newest()
VERDICT = "dev costs 5,000.00 USD in a month (expected), and its budget is 4,000"


@pytest.fixture(scope="module")
def costs() -> dict[str, PlanCost]:
    """Of the shipped stacks on clouds."""
    found = {path.name.split(".")[1]: cost_of_untouched(path) for path in sorted(STACKS.glob("Pulumi.*.yaml"))}
    return {name: cost for name, cost in found.items() if cost is not None}


def stack(name: str, **other: Any) -> StackReview:
    return replace(review_of("h100"), stack=name, head=StackPreview(Path("plan")), **other)


@pytest.fixture(scope="module")
def review(costs: dict[str, PlanCost]) -> Review:
    """One stack that changes into another, one that is new, one that leaves, one that nobody can cost, and two untouched."""
    changed = stack("dev-eks", cost=costs["dev-eks"], comparison=compared(costs["prod-eks"], costs["dev-eks"]))
    new = stack("prod-gke", base=None, cost=costs["prod-gke"])
    leaves = replace(stack("old", former=costs["dev-gke"]), head=None)
    unknown = replace(stack("broken"), head=StackPreview(None, ("error: no such machine",)))
    return Review("base", "head", (changed, new, leaves, unknown), {"dev-gke": costs["dev-gke"], "local": None}, ("lost",))


def euro(text: str) -> Decimal:
    return Decimal(text.removeprefix("at least ").removesuffix(" in known prices").removesuffix(" (?)").replace(",", ""))


def test_the_comment_has_no_dollars_and_its_columns_sum_to_all_stacks(review: Review) -> None:
    after = exchanged_review(review, INTO)
    told = review_markdown(after)

    assert dollars_left(told) == []
    assert RATE_WORDS.removesuffix(".") in told.splitlines()[-1]
    assert all(len(set(rows)) == 1 for rows in tables(told))
    assert "| stack | | created | changed | replaced | deleted | EUR a month expected | change |" in told
    rows = [[each.strip() for each in line.split("|")] for line in told.splitlines() if line.startswith(("| <code>", "| all stacks"))]
    *stacks, whole = [(row[7], row[8]) for row in rows]
    assert sum(euro(more) for _, more in stacks if more) == euro(whole[1])
    changes = [each.more_usd for each in review.stacks if each.more_usd is not None]
    assert abs(euro(whole[1]) - sum(changes) * RATE) <= Decimal("0.005")
    assert whole[1] in told.splitlines()[1]
    # What is not listed is in the sum, too.
    untouched = after.untouched["dev-gke"]
    assert untouched is not None
    listed = [euro(cost) for cost, _ in stacks if cost not in {"", "not known"}]
    assert sum(listed) + untouched.total.expected_usd == euro(whole[0])
    assert euro(whole[0]) == in_euros(sum((each.total.expected_usd for each in review.costs), Decimal(0)), RATE)
    new = stacks[1]
    assert euro(new[0]) == euro(new[1]), "a new stack adds what it costs"


def test_programs_get_every_amount_in_both_currencies_and_those_in_dollars_as_they_were(review: Review) -> None:
    after = exchanged_review(review, INTO)
    usd = review_json(review)
    found = json.loads(review_json(after))

    assert found["summary"] == after.in_a_line
    assert "EUR a month" in found["summary"]
    found["summary"] = json.loads(usd)["summary"]
    assert_both_currencies(json.dumps(found, indent=2) + "\n", usd)
    assert found["expected_usd_without"] == json.loads(usd)["expected_usd_without"]


def test_what_policies_say_is_in_their_own_words_and_said_to_be(
    review: Review, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console.out, "width", 400)
    first, *others = review.stacks
    verdict = replace(first.new_verdicts[0], policy="budget-exceeded", message=VERDICT)
    refused = exchanged_review(replace(review, stacks=(replace(first, new_verdicts=(verdict,)), *others)), INTO)

    comment = review_markdown(refused)
    assert dollars_left(comment, [VERDICT]) == []
    assert "What policies say is in USD." in comment
    assert "What policies say" not in review_markdown(exchanged_review(review, INTO))
    show_review(refused)
    assert f"{RATE_WORDS} What policies say is in USD." in capsys.readouterr().out
    files = {each.stack: each.stack for each in review.stacks}
    assert review_sarif(exchanged_review(review, INTO), "1.2.3", files) == review_sarif(review, "1.2.3", files), "it has no amounts"


def test_a_file_without_a_rate_is_bad_usage_before_anything_is_previewed(tmp_path: Path) -> None:
    rates = tmp_path / "rates.yaml"
    rates.write_text("currency: EUR\nrates: []\n")

    for path, told in ((tmp_path / "none.yaml", "there is no file"), (rates, "rates: ")):
        result = CliRunner().invoke(app, ["review", "--base", "no such commit", "--currency", str(path)])
        assert isinstance(result.exception, ExplainedError)
        assert result.exception.exit_code == ExitCode.BAD_USAGE
        assert told in str(result.exception)
