"""The query for allocations, evaluated by Prometheus' own engine: two containers are summed, and duplicate exporters count once."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
import yaml

from flexspot.capacity.chargeback.queries import Question, queries
from flexspot.lab.progress import Silence
from flexspot.lab.tools.build import Tools, ensure_tools, family_named

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.lab, pytest.mark.nightly(tested_by="test_gpus_are_summed_over_containers_and_never_over_exporters")]

POD = 'uid="u",namespace="ml",pod="train",node="n1"'
ASIDE = (
    'uid="u",namespace="monitoring",exported_namespace="ml",pod="kube-state-metrics-0",exported_pod="train",node="n0",exported_node="n1"'
)


@pytest.fixture(scope="module")
def promtool(tools: Tools) -> Path:
    return ensure_tools(tools.links, Silence(), wanted=(family_named("prometheus"),)).binary("promtool")


def requests(labels: str, scraped: str, container: str) -> list[str]:
    """Return the series of a pod with two containers, with 2 and 1 GPUs, in one scrape of one exporter."""
    gpus = 'resource="nvidia_com_gpu"'
    return [
        *(
            f'kube_pod_container_resource_requests{{{labels},{gpus},{scraped},{container}="{name}"}} {amount}'
            for name, amount in (("main", 2), ("side", 1))
        ),
        f'kube_pod_status_phase{{{labels},{scraped},phase="Running"}} 1',
    ]


SCRAPES = {
    "once": requests(POD, 'job="a",instance="10.0.0.1:8080"', "container"),
    "by two jobs": [
        *requests(POD, 'job="a",instance="10.0.0.1:8080"', "container"),
        *requests(POD, 'job="b",instance="10.0.0.1:8080"', "container"),
    ],
    "of two replicas by one job": [
        *requests(POD, 'job="a",instance="10.0.0.1:8080"', "container"),
        *requests(POD, 'job="a",instance="10.0.0.2:8080"', "container"),
    ],
    "by one job at two endpoints": [
        *requests(POD, 'job="a",instance="x",endpoint="http"', "container"),
        *requests(POD, 'job="a",instance="x",endpoint="metrics"', "container"),
    ],
    "by two jobs that put labels aside": [
        *requests(ASIDE, 'job="a",instance="x",container="kube-state-metrics"', "exported_container"),
        *requests(ASIDE, 'job="b",instance="x",container="kube-state-metrics"', "exported_container"),
    ],
}


@pytest.mark.parametrize("scrape", SCRAPES)
def test_gpus_of_a_pod_count_once_however_often_they_are_scraped(scrape: str, promtool: Path, tmp_path: Path) -> None:
    [expression] = [each.expression for each in queries() if each.question is Question.ALLOCATIONS]
    series = [line.rpartition(" ") for line in SCRAPES[scrape]]
    labels = ASIDE if "aside" in scrape else POD
    document = {
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": name, "values": f"{value}x3"} for name, _, value in series],
                "promql_expr_test": [
                    {
                        "expr": expression,
                        "eval_time": "2m",
                        "exp_samples": [{"labels": f'{{{labels},resource="nvidia_com_gpu"}}', "value": 3}],
                    }
                ],
            }
        ],
    }
    path = tmp_path / "allocations.yaml"
    path.write_text(yaml.safe_dump(document))

    checked = subprocess.run([promtool, "test", "rules", str(path)], capture_output=True, text=True, check=False)

    assert checked.returncode == 0, checked.stdout + checked.stderr
