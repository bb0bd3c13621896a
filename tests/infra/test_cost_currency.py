"""`flexspot cost --currency` as a person, a program and a pull request meet it: no dollar is left, and USD stays as it was."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from converted_costs import RATE, RATE_FILE, RATE_WORDS, assert_both_currencies, dollars_left, sources_of, tables
from currency_reports import in_euros
from test_cost_commands import plan_file, run, with_budget

from infra.cli import console

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

STACKS = ("local", "prod-eks", "prod-gke")


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


ONE_FOR_ONE = """
currency: EUR
rates: [{per_usd: "1", as_of: 2026-11-27, source: "ECB, reference rate"}]
"""


def in_dollars_again(text: str) -> str:
    """A converted report at a rate of one, as it would be of US dollars."""
    kept = [line for line in text.replace(".00 (converted)", "").splitlines() if "1 USD is 1 EUR" not in line]
    return "\n".join(kept).replace("EUR", "USD")


def test_at_a_rate_of_one_nothing_but_the_currency_differs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is rounded then: what is decided and told is decided and told as it is in US dollars."""
    monkeypatch.setattr(console.out, "width", 160)
    (tmp_path / "one.yaml").write_text(ONE_FOR_ONE)
    arguments = (plan_file(tmp_path, "prod-gke"), "--base", plan_file(tmp_path, "dev-eks", "base.json"))

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


ROW = '\nrates: [{per_usd: "0.8", as_of: 2026-11-27, source: the central bank}]\n'


@pytest.mark.parametrize(
    "content,told",
    [
        (None, "there is no file"),
        ("currency: EUR\nrates: []\n", "rates: "),
        ("currency: [EUR", "is not YAML"),
        (f"currency: EUR{ROW}surprise: 1\n", "surprise"),
    ],
)
def test_a_file_without_a_usable_rate_is_bad_usage_and_told_first(content: str | None, told: str, tmp_path: Path) -> None:
    path = tmp_path / "rates.yaml"
    if content is not None:
        path.write_text(content)

    shown = run("none.json", "--currency", path, code=2)
    assert told in shown
    assert "its form is in docs/guides/chargeback.md" in shown
