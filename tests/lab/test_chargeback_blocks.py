"""The chargeback report from a real Prometheus' blocks of days that are made up: to the second, and within limits."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING

import pytest
from made_month import MadeMonth, made_month, write_blocks

from capacity.chargeback.ledger import Ledger
from capacity.chargeback.queries import queries
from capacity.chargeback.samples import period_between
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

pytestmark = [
    pytest.mark.lab,
    pytest.mark.nightly(
        held_by="test_a_period_is_read_in_slices_of_a_day_each_query_once, test_a_slice_that_is_too_much_is_halved_until_it_is_not"
    ),
]

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


def test_every_team_had_what_its_pods_had_to_the_second(made: tuple[MadeMonth, Path], url: str, tmp_path: Path) -> None:
    month, _ = made

    assert gpu_seconds(month, reading(url, tmp_path)) == month.gpu_seconds_by_team()


def test_a_server_that_gives_few_samples_at_once_is_asked_for_less_at_once(
    made: tuple[MadeMonth, Path], prometheus_tools: Tools, tmp_path: Path
) -> None:
    month, folder = made
    # A copy, because a server locks its folder. A day of one node is 1,440 samples.
    blocks = shutil.copytree(folder, tmp_path / "blocks", ignore=shutil.ignore_patterns("lock", "wal"))
    with serving(LabHome(tmp_path, "strict"), prometheus_tools, blocks, "--query.max-samples=5000") as server:
        assert gpu_seconds(month, reading(server.url, tmp_path / "kept")) == month.gpu_seconds_by_team()
