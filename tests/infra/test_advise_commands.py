"""`flexspot advise` for a person and a program."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from command_line import CHECKOUT
from spot_traces import made_trace, write_trace
from typer.testing import CliRunner

from flexspot.capacity.values.errors import ExitCode, ExplainedError
from flexspot.infra.cli.app import app

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

P4D = ("-m", "p4d.24xlarge", "-r", "us-east-1")
COURSE = ("--on-demand-usd", "32.77", "--spot-usd", "12.50")
OWN_PRICE = """\
cloud: aws
sources: {{ours: {{citation: the contract of May, as_of: 2026-11-21, verified: true}}}}
prices: [{{machine: p4d.24xlarge, region: us-east-1, capacity_type: {}, usd_per_hour: "10", source: ours}}]
"""


def run(*arguments: str, code: int = 0) -> str:
    """Return the output of both streams, or an ExplainedError's text as `main` prints it."""
    result = CliRunner().invoke(app, ["advise", *arguments])
    if isinstance(result.exception, ExplainedError):
        assert result.exception.exit_code == code
        return str(result.exception)
    assert result.exit_code == code, result.output
    return re.sub(r"[\s│]+", " ", result.output) if code else result.output


def data(*arguments: str) -> dict[str, Any]:
    return json.loads(run(*arguments, "--format", "json"))


def test_advice_has_method_reasons_costs_and_arithmetic() -> None:
    shown = run("job", *P4D, *COURSE, "--hours", "72", "--checkpoint-minutes", "2")

    assert shown.startswith("spot\n")
    assert "costs least of what is left: 55 % less than on-demand" in shown
    assert "checkpoint every 30 minutes of work" in shown
    assert "nothing-is-reserved-for-once" in shown


def test_json_advice_has_money_as_text_and_null_for_infinity() -> None:
    found = data("job", *P4D, *COURSE, "--hours", "720")

    assert found["method"] == "on-demand"
    by_method = {each["method"]: each for each in found["options"]}
    assert by_method["on-demand"]["usd_most"] == "23594.40"
    assert by_method["spot"]["finish_hours"] is None, "it never ends"
    assert by_method["spot"]["excluded_by"] == ["nothing-to-resume-from"]


UNPRICED = ("-m", "p4d.24xlarge", "-r", "eu-central-1")
"""A machine and region without a recorded Spot price (Frankfurt)."""


def test_advice_without_a_spot_price_has_the_deciding_price() -> None:
    asked = ("job", *UNPRICED, "--hours", "72", "--checkpoint-minutes", "2")
    shown, found = run(*asked), data(*asked)

    [question] = found["undecided"]
    assert shown.startswith(f"on-demand, or spot where a Spot node costs less than {question['below_usd_per_hour']} USD an hour\n")
    assert "interruptions cost more than Spot saves" not in shown
    assert "spot is not decided: no Spot price of p4d.24xlarge in eu-central-1 is known" in shown
    assert (found["method"], question["method"]) == ("on-demand", "spot")
    # 18.9 % more billed hours: 27.43 / 1.189.
    assert float(question["below_usd_per_hour"]) == pytest.approx(27.43296 / 1.189, rel=1e-3)


def test_details_without_a_spot_price_have_the_other_figures() -> None:
    asked = ("job", *UNPRICED, "--hours", "72", "--checkpoint-minutes", "2", "--details", "--active-hours-per-day", "5")
    found, output = data(*asked), run(*asked)
    spot = found["on_spot"]

    assert (spot["spot_usd_per_hour"], spot["usd_per_useful_hour"]) == (None, None)
    assert float(spot["break_even_spot_usd_per_hour"]) == pytest.approx(23.07, abs=0.01)
    assert (found["units"]["spot"], found["idle"]["spot"]) == (None, None)
    assert "not known: give --spot-usd" in output
    assert "no Spot price of p4d.24xlarge in eu-central-1 is known" in output


@pytest.mark.parametrize(
    "arguments,message",
    [
        (("-m", "p4d.24xlargex", "-r", "us-east-1", "--hours", "1"), "did you mean p4d.24xlarge?"),
        (("-m", "p4d.24xlarge", "-r", "mars", "--hours", "1"), "no on-demand price of p4d.24xlarge in mars"),
        ((*P4D, "--hours", "72", "--deadline-hours", "10"), "deadline_hours 10.0 is before the 72.0 hours"),
        ((*P4D, "--hours", "nan"), "Invalid value for '--hours': nan is not a finite number"),
        ((*P4D, "--hours", "1", "--spot-usd", "cheap"), "'--spot-usd': 'cheap' is not a price above 0, such as 32.77."),
        ((*P4D, "--hours", "1", "--spot-usd", "-3"), "'--spot-usd': '-3' is not a price above 0, such as 32.77."),
    ],
)
def test_an_invalid_job_is_bad_usage(arguments: tuple[str, ...], message: str) -> None:
    assert message in run("job", *arguments, code=ExitCode.BAD_USAGE)


def test_an_own_price_file_overrides_the_shipped_prices(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(OWN_PRICE.format("on-demand"))

    asked = ("job", *P4D, "--hours", "1", "--details")
    found = data(*asked, "--prices", str(tmp_path / "own.yaml"))

    assert found["units"]["on-demand"]["usd_per_gpu_hour"] == "1.2500"
    assert "none.yaml does not exist" in run(*asked, "--prices", str(tmp_path / "none.yaml"), code=ExitCode.BAD_USAGE)


def test_several_jobs_are_read_from_a_file(tmp_path: Path) -> None:
    place = "cloud: gcp, region: us-central1, machine: a2-highgpu-8g"
    (tmp_path / "mix.yaml").write_text(
        f"jobs:\n  - {{name: sweep, {place}, work_hours: 24, piece_hours: 1, runs: 10}}\n"
        f"  - {{name: serving, {place}, work_hours: 730, user_facing: true}}\n"
    )

    assert data("job", "--jobs", str(tmp_path / "mix.yaml"))["method"] == "hybrid"
    assert "USD at most for all runs" in run("job", "--jobs", str(tmp_path / "mix.yaml"))
    assert "none.yaml does not exist" in run("job", "--jobs", str(tmp_path / "none.yaml"), code=ExitCode.BAD_USAGE)
    (tmp_path / "mix.yaml").write_text("jobs: [{name: x}]")
    assert "jobs.0.cloud: Field required" in run("job", "--jobs", str(tmp_path / "mix.yaml"), code=ExitCode.BAD_USAGE)


def test_a_reservation_is_advised_from_use_or_a_baseline(tmp_path: Path) -> None:
    (tmp_path / "use.txt").write_text("4\n" * 75 + "10\n" * 25)

    measured = data("reserve", *P4D, *COURSE[:2], "--use", str(tmp_path / "use.txt"), "--discount-percent", "40")
    given = run("reserve", *P4D, *COURSE[:2], "--baseline-nodes", "2", "--hours-per-month", "400", "--reserved-usd", "20")

    assert (measured["best"]["nodes"], measured["break_even_share"]) == (4, "0.6000")
    assert "reserve 0 node(s): a node pays for itself when it is used 61.0 % of the time." in given


@pytest.mark.parametrize(
    "arguments,message",
    [
        (("--discount-percent", "40"), "--use FILE and --baseline-nodes N"),
        (("--baseline-nodes", "1"), "the price book has no prices of commitments"),
        (("--baseline-nodes", "1", "--discount-percent", "100"), "'--discount-percent': '100' is not from 0 to below 100"),
    ],
)
def test_a_reservation_needs_a_use_and_a_price(arguments: tuple[str, ...], message: str) -> None:
    assert message in run("reserve", *P4D, *arguments, code=ExitCode.BAD_USAGE)


def test_details_show_the_cost_of_interruptions_and_when_spot_stops_paying() -> None:
    asked = ("job", *P4D, "--checkpoint-minutes", "2", "--details")
    found = data(*asked, *COURSE, "--hours", "72", "--deadline-hours", "110")["on_spot"]

    assert found["best_interval_minutes"] == pytest.approx(29.665, abs=1e-3)
    assert found["gang_share_taken"] == 0.5
    assert found["usd_per_useful_hour"] == "14.86"
    assert 0 <= found["late_share"] <= found["late_share_at_most"] <= 1
    shown = run(*asked, "--hours", "1", "--deadline-hours", "2")
    # The last column of the guide's table has one figure per record, then their mean.
    guide = (CHECKOUT / "docs" / "guides" / "costs.md").read_text(encoding="utf-8")
    *records, mean = (float(each) for each in re.findall(r"^\| (?:availability|preemption|mean).* ([\d.]+) \|$", guide, re.MULTILINE))
    measured = f"it cost {min(records):.2f} to {max(records):.2f} times the least possible, {mean:.2f} on average"
    assert measured in " ".join(shown.split())
    assert "never ends" in run(*asked, "--hours", "500", "--interruptions-per-hour", "1", "--interval-minutes", "30000")


def test_a_reservation_uses_the_contracts_price_by_default(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(OWN_PRICE.format("reserved"))
    found = data("reserve", *P4D, "--on-demand-usd", "20", "--baseline-nodes", "2", "--prices", str(tmp_path / "own.yaml"))

    assert found["break_even_share"] == "0.5000"
    assert "capacity_type reserved" in run("reserve", *P4D, "--baseline-nodes", "2", code=ExitCode.BAD_USAGE)


def test_only_requested_units_are_shown() -> None:
    shown = run("job", *P4D, *COURSE, "--hours", "1", "--gpus", "8", "--epoch-hours", "4", "--requests-per-gpu-second", "40")

    assert "USD per epoch" in shown
    assert "131.08" in shown
    assert "experiment" not in shown
    assert "has no GPUs" in run("job", "-m", "c7i.xlarge", "-r", "us-east-1", "--hours", "1", "--details", code=ExitCode.BAD_USAGE)


def test_savings_of_an_idle_pool_are_shown_for_on_demand_and_spot() -> None:
    asked = ("job", *P4D, "--hours", "1", "--active-hours-per-day", "10")
    found = data(*asked, *COURSE, "--nodes", "8", "--restart-minutes", "0", "--idle-minutes", "0")["idle"]

    assert found["always_on_usd"] == "191376.80"
    assert (found["on-demand"]["saved_percent"], found["spot"]["saved_percent"]) == ("58.3", "84.1")
    assert "always on, on demand" in run(*asked)


def test_strategies_are_replayed_over_zones(tmp_path: Path) -> None:
    (tmp_path / "zones").mkdir()
    for seed in (1, 2):
        write_trace(made_trace(seed, ticks=300), tmp_path / "zones" / f"{seed}.json")
    played = ("simulate", str(tmp_path), *P4D, "--hours", "6", "--deadline-hours", "9", "--starts", "2")

    (comparison,) = data(*played)["comparisons"]

    assert (comparison["zones"], comparison["starts"]) == (2, 2)
    assert [each["strategy"] for each in comparison["strategies"]] == ["on-demand", "Spot, then on-demand", "uniform progress"]
    assert {each["missed"] for each in comparison["strategies"]} == {0}
    assert "uniform progress" in run(*played)


def test_an_impossible_deadline_is_unmet_and_a_folder_without_traces_bad_usage(tmp_path: Path) -> None:
    asked = ("simulate", str(tmp_path), *P4D, "--hours", "6", "--deadline-hours", "6", "--starts", "1")
    assert "there are no traces under" in run(*asked, code=ExitCode.BAD_USAGE)

    write_trace(made_trace(1, ticks=300), tmp_path / "one.json")
    assert "the deadline cannot be met even on demand" in run(*asked, code=ExitCode.UNMET)


@pytest.mark.parametrize(
    "place,options,seconds",
    [
        (("-m", "p4d.24xlarge", "-r", "us-east-1"), (), 90),
        (("-m", "p4d.24xlarge", "-r", "us-east-1"), ("--notice-seconds", "0"), 0),
        (("-m", "a2-highgpu-8g", "-r", "us-central1"), (), 105),
    ],
)
def test_a_job_saves_on_notice_if_its_checkpoint_fits(
    place: tuple[str, ...], options: tuple[str, ...], seconds: int, tmp_path: Path
) -> None:
    write_trace(made_trace(1, ticks=600), tmp_path / "one.json")
    asked = ("simulate", str(tmp_path), *place, *COURSE, "--hours", "10", "--deadline-hours", "14", "--starts", "1", *options)

    assert data(*asked)["notice_seconds"] == seconds
    said = f"it saves when it is warned, {seconds} s before" if seconds else "it does not save when it is warned"
    said += " (with the pools' shutdown_grace_seconds)" if seconds == 105 else ""
    assert f"each interruption: {said}." in run(*asked)


def test_a_notice_shorter_than_a_checkpoint_is_bad_usage(tmp_path: Path) -> None:
    write_trace(made_trace(1, ticks=600), tmp_path / "one.json")
    asked = ("simulate", str(tmp_path), *P4D, *COURSE, "--hours", "10", "--deadline-hours", "14")

    assert "30 s is too short for a checkpoint of 60 s" in run(*asked, "--notice-seconds", "30", code=ExitCode.BAD_USAGE)


@pytest.mark.parametrize(
    "asked",
    [
        ("job", "--hours", "72", "--checkpoint-minutes", "2"),
        ("reserve", "--baseline-nodes", "2", "--discount-percent", "40"),
    ],
)
def test_each_price_of_the_book_is_shown_with_source_day_and_whether_it_is_checked(asked: tuple[str, ...]) -> None:
    """A given price has no source in the book, so it is not listed."""
    given = [*P4D, "--on-demand-usd", "32.77", *(() if asked[0] == "reserve" else ("--spot-usd", "12.50"))]
    found, own = data(*asked, *P4D), data(*asked, *given)
    shown = " ".join(run(*asked, *P4D).split())

    prices = {each["what"]: each for each in found["prices"]}
    assert prices["p4d.24xlarge on-demand"]["as_of"] == "2026-07-20"
    assert prices["p4d.24xlarge on-demand"]["verified"] is True
    assert prices["p4d.24xlarge spot"]["verified"] is False
    assert "p4d.24xlarge on-demand 21.957642 USD an hour, 2026-07-20" in shown
    assert "p4d.24xlarge spot" in shown
    assert "(?) not checked" in shown
    assert "p4d.24xlarge on-demand" not in {each["what"] for each in own["prices"]}
