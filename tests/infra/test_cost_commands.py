"""`flexspot cost` for a person, a program and a pull request."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from flexspot.capacity.cost.costed_plan import VERSION, shipped_use
from flexspot.capacity.plan.build import plan_of_stack_file
from flexspot.capacity.plan.model import plan_data
from flexspot.capacity.values.errors import ExplainedError
from flexspot.infra.cli import console
from flexspot.infra.cli.app import app

pytestmark = pytest.mark.slow

STACKS = Path(__file__).resolve().parents[2] / "stacks"


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console.out, "width", 160)


def run(*arguments: str | Path, code: int = 0) -> str:
    """Return the output, or an ExplainedError's text as `main` prints it."""
    result = CliRunner().invoke(app, ["cost", *map(str, arguments)])
    if isinstance(result.exception, ExplainedError):
        assert result.exception.exit_code == code
        return str(result.exception)
    assert result.exit_code == code, result.output
    return result.output


def plan_file(folder: Path, stack: str, name: str = "plan.json", **changes: Any) -> Path:
    """Return the file of a shipped stack's plan as a preview writes it, with `changes` to the plan."""
    plan = plan_data(plan_of_stack_file(STACKS / f"Pulumi.{stack}.yaml").plan) | changes
    path = folder / name
    path.write_text(json.dumps({"version": VERSION, "stack": stack, "cloud": plan["cloud"], "plan": plan, "cost": None}))
    return path


@pytest.fixture
def eks(tmp_path: Path) -> Path:
    return plan_file(tmp_path, "dev-eks")


def test_text_shows_the_sums_the_budget_each_line_and_each_team(eks: Path) -> None:
    shown = run(eks)

    assert "dev-eks on eks in us-east-1, USD a month:" in shown
    assert "within: expected 1,839.39 of 4,000 budgeted for dev (46 %)" in shown
    for words in ("l4-spot", "NAT gateways", "(platform, shared by all)", "infracost", "(?) not checked"):
        assert words in shown


def test_json_has_money_as_text_and_null_for_unknown_prices(tmp_path: Path) -> None:
    found = json.loads(run(plan_file(tmp_path, "dev-gke"), "--format", "json"), parse_float=lambda text: pytest.fail(f"{text} is a float"))

    assert found["at_least"] is True
    assert found["unknown_prices"] == ["spot price of n1-standard-8 in us-central1"]
    lines = {(each["section"], each["name"]): each for each in found["lines"]}
    assert lines["pool", "t4-spot"]["worst_case_usd"] is None
    parts = [Decimal(each["expected_usd"]) for each in (*found["teams"], found["unallocated"], found["platform"])]
    assert sum(parts) == Decimal(found["expected_usd"])
    assert found["budgets"] == [
        {"owner": "dev", "budget_usd": "4000", "spent_usd": found["expected_usd"], "at_most_usd": None, "standing": "unknown"}
    ]


@pytest.mark.parametrize(
    "usd,team,more,message",
    [
        (1839, None, (), "exceeded: expected 1,839.39 of 1,839 budgeted for dev (100 %)"),
        (4000, 100, (), "exceeded: expected 292.25 of 100 budgeted for product (292 %)"),
        (4000, None, ("--budget-against", "worst-case"), "exceeded: worst-case 9,027.02 of 4,000 budgeted for dev (226 %)"),
        (4000, None, ("--near-percent", "40"), "near: expected 1,839.39 of 4,000"),
    ],
)
def test_an_exceeded_budget_is_exit_code_1(usd: int, team: int | None, more: tuple[str, ...], message: str, tmp_path: Path) -> None:
    plan = plan_data(plan_of_stack_file(STACKS / "Pulumi.dev-eks.yaml").plan)
    plan["spending"]["budget_usd"] = usd
    plan["teams"][0]["monthly_budget_usd"] = team
    budgeted = plan_file(tmp_path, "dev-eks", spending=plan["spending"], teams=plan["teams"])

    assert message in run(budgeted, *more, code=1 if message.startswith("exceeded") else 0)


def flex_start(folder: Path, budget: int, **spending: Any) -> Path:
    """Return the plan of two flex-start nodes without a known price. The region has an on-demand price of the same machine."""
    plan = plan_data(plan_of_stack_file(STACKS / "Pulumi.dev-gke.yaml").plan)
    pool = {**plan["pools"][0], "capacity_type": "flex-start", "max_nodes": 2}
    plan["spending"] |= {"budget_usd": budget, "made_by_itself": None, **spending}
    return plan_file(folder, "dev-gke", "flex.json", pools=[pool], spending=plan["spending"])


def test_an_unknown_price_counts_as_on_demand_in_the_worst_case_and_is_reported(tmp_path: Path) -> None:
    path = flex_start(tmp_path, 4000)
    shown, found = run(path), json.loads(run(path, "--format", "json"))

    assert "unknown, at on-demand in the worst case, and in no other sum: flex-start price of g2-standard-8 in us-central1" in shown
    [line] = [each for each in found["lines"] if each["section"] == "pool"]
    # Two nodes at 0.853624 on demand for 744 hours.
    assert (line["worst_case_usd"], line["expected_usd"], line["unbounded_prices"]) == ("1270.19", None, [])
    assert (found["at_least"], found["worst_case_at_least"], found["complete"]) == (True, False, False)
    assert f"and at most {Decimal(found['expected_at_most_usd']):,}, worst case {Decimal(found['worst_case_usd']):,}" in shown
    assert "not known" in run(path, "--format", "markdown")


@pytest.mark.parametrize("words,code", [("warn", 0), ("refuse", 1)])
def test_a_budget_that_only_an_unknown_price_may_exceed_is_reported_or_refused_by_setting(words: str, code: int, tmp_path: Path) -> None:
    between = Decimal(json.loads(run(flex_start(tmp_path, 4000), "--format", "json"))["expected_usd"]) + 100
    path = flex_start(tmp_path, int(between), on_unknown_prices=words)

    assert f"unknown: expected at least {between - 100:,} and at most" in run(path, code=code)


def test_an_unknown_class_in_the_expected_use_is_reported_with_the_nearest_name(eks: Path, tmp_path: Path) -> None:
    (tmp_path / "use.yaml").write_text("classes: {trainin: {used_percent: 80}, spot-low: {used_percent: 1}}\n")
    shown = run(eks, "--use", tmp_path / "use.yaml")
    found = json.loads(run(eks, "--use", tmp_path / "use.yaml", "--format", "json"))

    assert "passed over: the expected use names class trainin, which the plan does not have, and counts for nothing" in shown
    assert "did you mean training?" in shown
    assert found["complete"] is False
    assert len(found["notes"]) == 1, "spot-low is a class of the shipped ones"
    assert "1 things passed over" in run(eks, "--use", tmp_path / "use.yaml", "--format", "markdown")
    assert json.loads(run(eks, "--format", "json"))["complete"] is True


CONTRACT = """
cloud: aws
sources: {contract: {citation: the contract of May, as_of: 2019-05-01, verified: true}}
prices:
  - {machine: p5.48xlarge, region: us-east-1, capacity_type: reserved, usd_per_hour: "30", source: contract}
  - {machine: g6.2xlarge, region: us-east-1, capacity_type: on-demand, pool: l4-on-demand, usd_per_hour: "0.5", source: contract}
  - {machine: g6.2xlarge, region: us-east-1, capacity_type: on-demand, pool: l4-ondemand, usd_per_hour: "0.5", source: contract}
commitments:
  - {machine: p5.48xlarge, region: us-east-1, nodes: 6, source: contract}
"""


def test_a_contract_prices_pools_and_reservations_and_bills_unused_commitments(tmp_path: Path) -> None:
    (tmp_path / "contract.yaml").write_text(CONTRACT)
    plan = plan_file(tmp_path, "prod-eks")
    found = json.loads(run(plan, "--prices", tmp_path / "contract.yaml", "--format", "json"))
    shown = run(plan, "--prices", tmp_path / "contract.yaml")

    lines = {each["name"]: each for each in found["lines"] if each["section"] in {"pool", "commitment"}}
    assert lines["h100-reserved"]["expected_usd"] == str(4 * 30 * 730) + ".00"
    assert lines["l4-on-demand"]["worst_case_usd"] == str(Decimal("0.5") * 6 * 744) + "0"
    assert lines["committed: 6 reserved p5.48xlarge in us-east-1"]["idle_floor_usd"] == str(2 * 30 * 730) + ".00"
    assert "a price or commitment is of pool l4-ondemand, which the plan does not have" in shown
    assert [each["as_of"] for each in found["old_prices"] if "contract" in each["source"]] == ["2019-05-01"]
    assert "days old: p5.48xlarge reserved and 1 more, of 2019-05-01; expected 131,619.00 and worst case 136,152.00 rest on them; " in shown
    [line_shown] = [line for line in shown.splitlines() if "days old: p5.48xlarge reserved" in line]
    assert line_shown.endswith("no price list covers them: give newer prices with --prices")


def test_against_a_base_each_changed_line_is_shown_with_its_difference(eks: Path, tmp_path: Path) -> None:
    plan = plan_data(plan_of_stack_file(STACKS / "Pulumi.dev-eks.yaml").plan)
    plan["pools"][1] |= {"max_nodes": 6, "ceiling": plan["pools"][1]["ceiling"] | {"gpus": 6}}
    more = plan_file(tmp_path, "dev-eks", "more.json", pools=plan["pools"])

    shown = run(more, "--base", eks)
    found = json.loads(run(more, "--base", eks, "--format", "json"))["comparison"]

    # Two g4dn.xlarge more: 0.202 an hour on Spot for 730 hours, with disks of 2.40 dollars, as images are on their own NVMe disks.
    assert "worst case +305.38" in shown
    assert [(each["section"], each["name"]) for each in found["lines"]] == [("pool", "t4-spot"), ("pool-disk", "t4-spot")]
    assert found["difference"]["worst_case_usd"] == "305.38"


def test_the_comment_shows_the_sums_and_collapses_the_rest(eks: Path, tmp_path: Path) -> None:
    shown = run(eks, "--base", plan_file(tmp_path, "dev-gke", "base.json"), "--format", "markdown")

    heading, _, rest = shown.partition("\n")
    assert heading == "### Cost of <code>dev-eks</code>: 1,839.39 USD a month expected (-101.90)"
    visible = rest.partition("<details>")[0]
    assert "| expected | 1,941.29 | 1,839.39 | -101.90 |" in visible
    assert "| USD a month | base, at least | now | change in known prices |" in visible
    assert "| worst case: every ceiling reached all month | 9,093.37 | 9,027.02 | -66.35 |" in visible
    # Prices become old over time, which adds a collapsed part.
    folds = 5 if "sources of prices are old" in shown else 4
    assert shown.count("<details>") == shown.count("</details>") == folds
    # GitHub renders Markdown in a collapsed part only after an empty line.
    assert shown.count("</summary>\n\n|") == folds


HOSTILE = '@team | <img src=x onerror="a"> **b** `c` [d](http://e) \n# f'


def test_markup_in_a_name_is_escaped_in_the_comment(tmp_path: Path) -> None:
    plan = plan_data(plan_of_stack_file(STACKS / "Pulumi.dev-eks.yaml").plan)
    plan["teams"][0]["name"] = HOSTILE
    plan["spending"]["shares"] = []
    named = plan_file(tmp_path, "dev-eks", "hostile.json", teams=plan["teams"], spending=plan["spending"])

    shown = run(named, "--format", "markdown")
    [row] = [line for line in shown.splitlines() if "img" in line]

    assert row.count("|") == 7, "the cells of the table and no other"
    assert not any(mark in row for mark in ("<", "@", "*", "`", "[", "#e"))
    # Rich's markup in a name is printed literally.
    assert "[red]x[/red]" in run(plan_file(tmp_path, "dev-eks", environment="[red]x[/red]"))


def test_own_prices_and_expectations_change_the_figures(eks: Path, tmp_path: Path) -> None:
    use, prices = tmp_path / "use.yaml", tmp_path / "prices.yaml"
    use.write_text("classes: {training: {used_percent: 100}}\n")
    prices.write_text(
        "cloud: aws\nsources: {own: {citation: our contract, as_of: 2026-11-01, verified: true}}\n"
        'services: [{item: cluster, usd: "0.05", source: own}]\n'
    )

    assert "expected 2,126.87" in run(eks, "--use", use)
    found = json.loads(run(eks, "--prices", prices, "--format", "json"))
    [plane] = [each for each in found["lines"] if each["name"] == "control plane"]
    assert (plane["expected_usd"], plane["prices"][0]["source"]) == ("36.50", "our contract")


@pytest.mark.parametrize(
    "arguments,message",
    [
        (("none.json",), "cannot be read"),
        (("{eks}", "--use", "none.yaml"), "cannot be used"),
        (("{eks}", "--prices", "none.yaml"), "none.yaml does not exist"),
    ],
)
def test_unusable_files_of_cost_are_bad_usage(arguments: tuple[str, ...], message: str, eks: Path) -> None:
    assert message in run(*(each.format(eks=eks) for each in arguments), code=2)


@pytest.mark.parametrize("stack", ["dev-gke", "prod-gke", "dev-eks", "prod-eks"])
def test_the_guides_show_what_the_command_prints(stack: str, tmp_path: Path) -> None:
    shown = run(plan_file(tmp_path, stack)).partition("what is billed")[0]
    guide = (STACKS.parent / "docs" / "guides" / f"{stack.partition('-')[2]}.md").read_text()

    assert "".join(f"    {line}\n" for line in shown.splitlines()) in guide


def test_the_guide_shows_the_default_expected_use() -> None:
    guide = (STACKS.parent / "docs" / "guides" / "costs.md").read_text()
    rows = {"of one's own": shipped_use().other_classes, **shipped_use().classes}

    lines = {name: f"| {name} | {use.used_percent} % | {use.later_percent} % | {use.hours_per_month} |" for name, use in rows.items()}
    assert [name for name, row in lines.items() if row not in guide] == []


TWO_KINDS = """
cloud: aws
sources: {list: {citation: a list of both kinds of prices, as_of: DAY, verified: true}}
prices:
  - {machine: g6.2xlarge, region: us-east-1, capacity_type: on-demand, usd_per_hour: "1", source: list}
  - {machine: g4dn.xlarge, region: us-east-1, capacity_type: spot, usd_per_hour: "0.2", source: list}
"""


def test_an_old_spot_price_is_reported_before_list_prices_of_its_source_are_old(eks: Path, tmp_path: Path) -> None:
    day = datetime.now(UTC).date() - timedelta(days=60)
    (tmp_path / "list.yaml").write_text(TWO_KINDS.replace("DAY", day.isoformat()))
    found = json.loads(run(eks, "--prices", tmp_path / "list.yaml", "--format", "json"))

    [old] = [each for each in found["old_prices"] if "both kinds" in each["source"]]
    assert (old["age_days"], old["of"]) == (60, ["g4dn.xlarge spot"])
    line = next(each for each in found["lines"] if each["name"] == "t4-spot" and each["section"] == "pool")
    assert (old["expected_usd"], old["worst_usd"]) == (line["expected_usd"], line["worst_case_usd"])
    [line_shown] = [each for each in run(eks, "--prices", tmp_path / "list.yaml").splitlines() if "days old: g4dn.xlarge spot" in each]
    assert "`flexspot prices refresh --cloud aws --region us-east-1 --file FILE` gets what is in the cloud's price lists" in line_shown


def test_a_region_without_any_price_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    preview = tmp_path / "preview.json"
    preview.write_text('{"steps": []}')

    output = run(preview, "--region", "us-east-11", code=2)
    assert "--region: no price is known for us-east-11." in output
    assert "did you mean us-east-1?" in output


def test_a_plan_is_read_from_a_pipe_like_any_program(eks: Path) -> None:
    result = CliRunner().invoke(app, ["cost", "-"], input=eks.read_bytes())

    assert result.exit_code == 0, result.output
    assert "dev-eks on eks in us-east-1, USD a month:" in result.output
