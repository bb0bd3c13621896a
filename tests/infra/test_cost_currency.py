"""`flexspot cost --currency` as a person, a program and a pull request meet it: no dollar is left, and USD stays as it was."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from converted_costs import RATE, RATE_FILE, RATE_WORDS, assert_both_currencies, dollars_left, sources_of, tables
from currency_reports import in_euros
from test_cost_commands import flex_start, plan_file, run, with_budget

from infra.cli import console

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.thorough

STACKS = ("dev-eks", "dev-gke", "local", "prod-eks", "prod-gke")


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console.out, "width", 400)


@pytest.fixture
def rates(tmp_path: Path) -> Path:
    path = tmp_path / "rates.yaml"
    path.write_text(RATE_FILE)
    return path


@pytest.mark.parametrize("stack", STACKS)
def test_no_form_of_a_stacks_cost_speaks_of_dollars_but_for_its_rate_and_sources(stack: str, rates: Path, tmp_path: Path) -> None:
    other = STACKS[STACKS.index(stack) - 1]
    arguments = (plan_file(tmp_path, stack), "--base", plan_file(tmp_path, other, "base.json"))
    usd = run(*arguments, "--format", "json")
    found = assert_both_currencies(run(*arguments, "--currency", rates, "--format", "json"), usd)

    for form in ("text", "markdown"):
        shown = run(*arguments, "--currency", rates, "--format", form)
        assert dollars_left(shown, sources_of(found)) == [], form
        assert RATE_WORDS.removesuffix(".") in shown, form
        assert f"{Decimal(found['expected_eur']):,}" in shown, form
    assert all(len(set(rows)) == 1 for rows in tables(shown)), "a row with another number of cells is no row"
    assert shown.count("<details>") == shown.count("</details>") == shown.count("</summary>\n\n|")


def column(shown: str, title: str, number: int) -> list[Decimal]:
    """The amounts in a column of a table, but for what is not known."""
    rows = [line.split("│")[1:-1] for line in shown.partition(title)[2].partition("└")[0].splitlines() if line.startswith("│")]
    texts = [row[number].strip().removesuffix(" +?") for row in rows]
    return [Decimal(text.replace(",", "")) for text in texts if re.fullmatch(r"[+-]?[\d,]+(\.\d\d)?", text)]


@pytest.mark.parametrize("stack", STACKS)
def test_what_is_shown_sums_to_what_is_shown(stack: str, rates: Path, tmp_path: Path) -> None:
    base = plan_file(tmp_path, stack.replace("dev", "prod") if "dev" in stack else stack.replace("prod", "dev"), "base.json")
    shown = run(plan_file(tmp_path, stack), "--base", base, "--currency", rates)

    for number in (3, 4, 5):
        *lines, whole = column(shown, "what is billed, EUR a month", number)
        assert sum(lines) == whole
        assert sum(column(shown, "whose it is, EUR a month", number - 1)) == whole
    told = re.search(r"against the base: expected ([+-][\d,.]+), worst case ([+-][\d,.]+)", shown)
    if "not known" not in shown.partition("what is billed")[0] and told is not None:
        for number, change in zip((3, 4), told.groups(), strict=True):
            assert sum(column(shown, "changed against the base", number)) == Decimal(change.replace(",", ""))


ONE_FOR_ONE = """
currency: EUR
rates: [{per_usd: "1", as_of: 2026-11-27, source: "ECB, reference rate"}]
"""


def in_dollars_again(text: str) -> str:
    """A converted report at a rate of one, as it would be of US dollars."""
    kept = [line for line in text.replace(".00 (converted)", "").splitlines() if "1 USD is 1 EUR" not in line]
    return "\n".join(kept).replace("EUR", "USD")


@pytest.mark.parametrize("stack", STACKS)
def test_at_a_rate_of_one_nothing_but_the_currency_differs(stack: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is rounded then: what is decided and told is decided and told as it is in US dollars."""
    monkeypatch.setattr(console.out, "width", 160)
    (tmp_path / "one.yaml").write_text(ONE_FOR_ONE)
    arguments = (plan_file(tmp_path, stack), "--base", plan_file(tmp_path, "dev-eks", "base.json"))

    text = run(*arguments, "--currency", tmp_path / "one.yaml")
    assert in_dollars_again(text) == run(*arguments).removesuffix("\n")
    comment = run(*arguments, "--currency", tmp_path / "one.yaml", "--format", "markdown")
    told, was = (re.sub(r"\n\n+", "\n\n", each).strip() for each in (in_dollars_again(comment), run(*arguments, "--format", "markdown")))
    assert told == was


@pytest.mark.parametrize(
    "usd,code,told",
    [(1840, 0, "near: expected 1,591.99 of 1,592.52 (converted) budgeted for dev (100 %)"), (1839, 1, "exceeded: expected 1,591.99 of")],
)
def test_a_budget_is_judged_in_us_dollars_and_told_converted(usd: int, code: int, told: str, rates: Path, tmp_path: Path) -> None:
    plan = with_budget(tmp_path, usd)

    shown = run(plan, "--currency", rates, code=code)
    assert told in shown
    assert "Budgets are set, and compared, in USD." in shown
    assert run(plan, code=code)
    [check] = json.loads(run(plan, "--currency", rates, "--format", "json", code=code))["budgets"]
    assert (check["budget_usd"], Decimal(check["budget_eur"])) == (str(usd), in_euros(Decimal(usd), RATE))


def test_what_nobody_knows_stays_unknown_and_a_least_stays_the_least(rates: Path, tmp_path: Path) -> None:
    plan = flex_start(tmp_path, 4000)
    shown, found = run(plan, "--currency", rates), json.loads(run(plan, "--currency", rates, "--format", "json"))

    assert "expected at least " in shown
    assert f"and at most {Decimal(found['expected_at_most_eur']):,}, worst case {Decimal(found['worst_case_eur']):,}" in shown
    [line] = [each for each in found["lines"] if each["section"] == "pool"]
    assert (line["worst_case_eur"], line["expected_eur"]) == (str(in_euros(Decimal("1270.19"), RATE)), None)


ROW = '\nrates: [{per_usd: "0.8", as_of: 2026-11-27, source: the central bank}]\n'


@pytest.mark.parametrize(
    "content,told",
    [
        (None, "there is no file"),
        ("currency: EUR\nrates: []\n", "rates: "),
        (f"currency: JPY{ROW}", "JPY has no hundredths"),
        (f"currency: USD{ROW}", "reports are in USD without such a file"),
        ("currency: [EUR", "is not YAML"),
        (f"currency: EUR{ROW}surprise: 1\n", "surprise"),
    ],
)
@pytest.mark.parametrize("there", [True, False], ids=["a plan", "no plan"])
def test_a_file_without_a_usable_rate_is_bad_usage_and_told_first(content: str | None, told: str, there: bool, tmp_path: Path) -> None:  # noqa: FBT001
    path = tmp_path / "rates.yaml"
    if content is not None:
        path.write_text(content)

    shown = run(plan_file(tmp_path, "dev-eks") if there else "none.json", "--currency", path, code=2)
    assert told in shown
    assert "its form is in docs/guides/chargeback.md" in shown
