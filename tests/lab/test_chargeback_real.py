"""The chargeback report equals the API server's own record: real Jobs on real queues, real kube-state-metrics, real Prometheus."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from lab_monitoring import KUBE_STATE_METRICS, PROMETHEUS, watched
from monitoring_fixtures import SHARES, add_unmanaged_node, create_pod, monitored_platform, submit, wait_until_placed
from pod_record import recorded_pods
from typer.testing import CliRunner

from flexspot.infra.cli.app import app
from flexspot.lab.cluster import POD, condition
from flexspot.lab.exercise.play import release
from flexspot.lab.progress import Silence
from flexspot.lab.tools.build import Tools, ensure_tools, family_named

if TYPE_CHECKING:
    from pathlib import Path

    from queue_objects import Register

    from flexspot.lab.cluster import Cluster
    from flexspot.lab.control_plane import LabControlPlane

pytestmark = [
    pytest.mark.lab,
    pytest.mark.nightly(
        tested_by="test_sums_do_not_depend_on_how_the_month_is_sliced, "
        "test_gpus_are_summed_over_containers_and_never_over_exporters, "
        "test_it_exports_the_labels_and_the_series_that_the_report_reads"
    ),
]

SCRAPE_SECONDS = 2


@pytest.fixture(scope="module")
def lab(stack_lab: LabControlPlane) -> LabControlPlane:
    """Return a lab that no other module uses: a report covers a whole cluster, and lists missing data when a pod's node is gone."""
    return stack_lab


@pytest.fixture(scope="session")
def monitoring(tools: Tools) -> Tools:
    """Return the tools that monitor a lab. The first run on a machine builds them."""
    return ensure_tools(tools.links, Silence(), wanted=(family_named(KUBE_STATE_METRICS), family_named(PROMETHEUS)))


def report(url: str, start: int, end: int) -> dict[str, Any]:
    """Return the report of `flexspot chargeback` for a period, as data."""
    period = [
        argument for name, at in (("--from", start), ("--to", end)) for argument in (name, datetime.fromtimestamp(at, UTC).isoformat())
    ]
    result = CliRunner().invoke(
        app, ["chargeback", "report", "--prometheus", url, *period, "--step", str(SCRAPE_SECONDS), "--format", "json"]
    )
    assert result.exit_code == 0, f"something is missing from the sums:\n{result.output}"
    return dict(json.loads(result.stdout))


def test_each_team_had_the_gpu_seconds_that_the_api_server_recorded(  # noqa: PLR0913, PLR0917 -- fixtures
    lab: LabControlPlane, monitoring: Tools, cluster: Cluster, register: Register, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with (
        monitored_platform(cluster, register) as platform,
        watched(lab.home, monitoring, scrape_seconds=SCRAPE_SECONDS) as prometheus,
        recorded_pods(cluster) as record,
    ):
        start = int(time.time())
        create_pod(platform, "delta", "without-gpus", None, 0)
        submit(platform, "alpha", "steady", gpus=4)
        submit(platform, "alpha", "borrower", gpus=4, workload_class="best-effort")
        platform.wait_for_running("alpha", "steady", "borrower")
        # No kubelet starts it, but it still occupies its GPUs.
        create_pod(platform, "gamma", "starting", add_unmanaged_node(platform), 3)
        wait_until_placed(platform, "gamma", "starting", "Pending")
        prometheus.wait_until_scraped(time.time() + 4 * SCRAPE_SECONDS)
        # The borrower's GPUs belong to the others: it is preempted, and starts again when they are done.
        submit(platform, "beta", "owner", gpus=2, run_time="14s")
        platform.wait_for_workload("alpha", "borrower", lambda each: condition(each, "Preempted"), "preempted")
        submit(platform, "gamma", "two", gpus=1, pods=2, run_time="12s")
        platform.wait_for_completion("beta", "owner")
        release(cluster, platform.own("alpha"), "steady")
        cluster.delete(POD, "starting", platform.own("gamma"))
        platform.wait_for_completion("gamma", "two")
        platform.wait_for_running("alpha", "borrower")
        platform.finish("alpha", "borrower")
        platform.wait_for_completion("alpha", "steady")
        wait_until_placed(platform, "delta", "without-gpus", "Running")
        end = int(time.time()) + 2 * SCRAPE_SECONDS
        prometheus.wait_until_scraped(end)

        found = report(prometheus.url, start, end)

    reported = {each["team"]: each["allocated_gpu_hours"] * 3600 for each in found["by"]["team"]}
    for team in SHARES:
        pods = [each for each in record.pods.values() if each.team == platform.own(team)]
        recorded = sum(each.gpu_seconds(end) for each in pods)
        most_apart = sum(each.gpus for each in pods) * 2 * SCRAPE_SECONDS
        assert recorded > most_apart, f"{team} ran for too short a time to say anything: {pods}"
        assert abs(reported[platform.own(team)] - recorded) <= most_apart, (team, reported[platform.own(team)], pods)
    assert sum(each.name.startswith("borrower") for each in record.pods.values()) == 2, "one before and one after its preemption"
    assert platform.own("delta") not in reported
    of_team = {each["team"]: each for each in found["top_consumers"]}
    workloads = {team: {(each["kind"], each["name"]) for each in of_team[platform.own(team)]["workloads"]} for team in SHARES}
    assert workloads == {
        "alpha": {("Job", "steady"), ("Job", "borrower")},
        "beta": {("Job", "owner")},
        "gamma": {("Pod", "starting"), ("Job", "two")},
    }, "what kube-state-metrics itself says made the pods"
    for team, each in of_team.items():
        rows = [*each["workloads"], each["other_workloads"]]
        assert sum(row["gpu_hours"] for row in rows) * 3600 == pytest.approx(reported[team], abs=3)
    assert {each["workload_type"] for each in found["lines"] if each["team"] == platform.own("alpha")} == {"training", "batch"}
