"""The chargeback report from a real Prometheus' blocks of days that are made up: to the second, resumed, and within limits."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING

import pytest
from made_month import MadeMonth, made_month, write_blocks
from typer.testing import CliRunner

from capacity.chargeback.ledger import Ledger
from capacity.chargeback.queries import queries
from capacity.chargeback.samples import period_between
from capacity.values.errors import ExplainedError
from infra.cli.app import app
from infra.prometheus.access import access_to
from infra.prometheus.client import PrometheusClient
from infra.prometheus.reading import KeptSlices, Reading, ReportIdentity
from lab.home import LabHome
from lab.monitoring import serving
from lab.progress import Silence
from lab.tools.build import Tools, ensure_tools, family_named

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.lab

STEP = 60


@pytest.fixture(scope="module")
def prometheus_tools(tools: Tools) -> Tools:
    """With Prometheus; the first run on a machine builds it."""
    return ensure_tools(tools.links, Silence(), wanted=(family_named("prometheus"),))


@pytest.fixture(scope="module")
def made(prometheus_tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> tuple[MadeMonth, Path]:
    """Four days with two hundred pods, and the folder of their blocks."""
    month = made_month(period_between("2026-03-02", "2026-03-06", "UTC"), pods=200)
    folder = tmp_path_factory.mktemp("blocks")
    write_blocks(month, prometheus_tools, folder)
    return month, folder


@pytest.fixture(scope="module")
def url(made: tuple[MadeMonth, Path], prometheus_tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Prometheus that serves them."""
    with serving(LabHome(tmp_path_factory.mktemp("prometheus"), "days"), prometheus_tools, made[1]) as server:
        yield server.url


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def reading(url: str, folder: Path) -> Reading:
    kept = KeptSlices(folder, ReportIdentity(url, "", STEP))
    return Reading(PrometheusClient(access_to(url)), kept, STEP, now=int(time.time()))


def gpu_seconds(month: MadeMonth, found: Reading) -> dict[str, int]:
    """By team, from all slices."""
    ledger = Ledger(month.period, STEP)
    for answers in found.slices(month.period, queries()):
        ledger.take(answers)
    by_team: dict[str, int] = {}
    for node in ledger.close().nodes.values():
        for owner, use in node.uses.items():
            by_team[owner.team] = by_team.get(owner.team, 0) + int(use.allocated)
    return by_team


def report(url: str, *more: str | Path) -> tuple[str, str]:
    """What the command prints, and what it tells of its progress."""
    how = ["--prometheus", url, "--from", "2026-03-02", "--to", "2026-03-06", "--format", "json", *map(str, more)]
    result = CliRunner().invoke(app, ["chargeback", *how])
    if isinstance(result.exception, ExplainedError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout, result.stderr


def test_every_team_had_what_its_pods_had_to_the_second(made: tuple[MadeMonth, Path], url: str, tmp_path: Path) -> None:
    month, _ = made

    assert gpu_seconds(month, reading(url, tmp_path)) == month.gpu_seconds_by_team()


def test_an_interrupted_report_goes_on_and_says_the_same(made: tuple[MadeMonth, Path], url: str, tmp_path: Path) -> None:
    month, _ = made
    whole, _ = report(url)
    next(reading(url, tmp_path / "kept").slices(month.period, queries()))
    of_a_day = len(queries())

    resumed, told = report(url, "--resume-dir", tmp_path / "kept")

    assert resumed == whole
    assert f"{of_a_day} answers from an earlier run" in told


def test_a_server_that_gives_few_samples_at_once_is_asked_for_less_at_once(
    made: tuple[MadeMonth, Path], prometheus_tools: Tools, tmp_path: Path
) -> None:
    month, folder = made
    # A copy, because a server locks its folder. A day of one node is 1,440 samples.
    blocks = shutil.copytree(folder, tmp_path / "blocks", ignore=shutil.ignore_patterns("lock", "wal"))
    with serving(LabHome(tmp_path, "strict"), prometheus_tools, blocks, "--query.max-samples=5000") as server:
        assert gpu_seconds(month, reading(server.url, tmp_path / "kept")) == month.gpu_seconds_by_team()


def test_a_matcher_that_is_no_promql_is_told_in_the_servers_words(url: str) -> None:
    with pytest.raises(ExplainedError, match="Prometheus refused a query") as refused:
        report(url, "--match", "cluster=prod")

    assert any("parse error" in each for each in refused.value.evidence)
