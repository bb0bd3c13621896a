"""The recording rules, evaluated by Prometheus' own engine, have the same results as the report on the same series."""

from __future__ import annotations

import json
import subprocess
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from chargeback_months import HOUR, STEP, Month

from flexspot.capacity.chargeback.queries import CENTRAL, NONE, Question, label_of
from flexspot.capacity.telemetry import ALLOCATED, DIMENSIONS, IDLE, MEASURED, USED, rules_yaml
from flexspot.lab.progress import Silence
from flexspot.lab.tools.build import Tools, ensure_tools, family_named

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.lab,
    pytest.mark.nightly(
        tested_by="test_every_expression_is_promql_and_short_enough_to_be_judged, "
        "test_a_partition_counts_as_much_as_in_the_report, "
        "test_the_capacity_type_is_written_last_by_the_mark_that_counts_first"
    ),
]

Labels = tuple[str, ...]

NAMES = {
    Question.NODES: "kube_node_info",
    Question.NODE_LABELS: "kube_node_labels",
    Question.NODE_GPUS: "kube_node_status_capacity",
    Question.NAMESPACES: "kube_namespace_labels",
    Question.POD_LABELS: "kube_pod_labels",
    Question.ALLOCATIONS: "kube_pod_container_resource_requests",
    Question.UTILISATION: "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
}
"""The series that the report queries."""


@pytest.fixture(scope="module")
def promtool(tools: Tools) -> Path:
    return ensure_tools(tools.links, Silence(), wanted=(family_named("prometheus"),)).binary("promtool")


def cluster_of_everything() -> Month:
    """Return an unchanging hour of machines of both clouds, partitions, shared GPUs, and owners given in every way."""
    month = Month(hours=1)

    def labelled(**labels: str) -> dict[str, str]:
        return {
            "karpenter.sh/capacity-type": "",
            "karpenter.sh/nodepool": "",
            **{key.replace("__", "/"): each for key, each in labels.items()},
        }

    def gke(machine: str, **marks: str) -> dict[str, str]:
        pool = {"node.kubernetes.io/instance-type": machine, "cloud.google.com/gke-nodepool": "p"}
        return labelled() | pool | {f"cloud.google.com/{key.replace('_', '-')}": value for key, value in marks.items()}

    def node(name: str, gpus: int, labels: dict[str, str], resource: str = "nvidia_com_gpu") -> None:
        month.node(name, 0, HOUR, gpus, labels=labels, resource=resource)

    ours = {"flexspot.dev/environment": "prod", "flexspot.dev/owner": "ml-platform"}
    node("aws-spot", 8, ours)
    node("aws-mig", 56, {"flexspot.dev/team": "vision"} | ours, "nvidia_com_mig_1g_5gb")
    node("aws-shared", 32, {"karpenter.sh/capacity-type": "on-demand"})
    node("eks-block", 8, {"karpenter.sh/capacity-type": "", "eks.amazonaws.com/capacityType": "CAPACITY_BLOCK"})
    node("gke-mig", 4, gke("a2-highgpu-1g", gke_spot="true"), "nvidia_com_mig_1g_10gb")
    node("gke-queued", 8, gke("a3-highgpu-8g", gke_queued="true", gke_flex_start="true"))
    node("gke-flex", 8, gke("a3-highgpu-8g", gke_provisioning="flex-start"))
    node("gke-reserved", 1, gke("g2-standard-8", reservation_name="acme"))
    node("gke-plain", 1, gke("g2-standard-8"))
    node("gke-attached", 2, gke("n1-standard-8", gke_provisioning="preemptible"))
    node("unknown-mig", 2, {"node.kubernetes.io/instance-type": "own.machine"}, "nvidia_com_mig_3g_20gb")
    node("inferentia", 12, {"node.kubernetes.io/instance-type": "inf2.48xlarge"} | ours, "aws_amazon_com_neuron")
    node("trainium-booting", 0, {"node.kubernetes.io/instance-type": "trn1.32xlarge"} | ours)
    node("booting", 0, ours)
    node("without-gpus", 0, {"node.kubernetes.io/instance-type": "m6i.large"})

    month.seen(Question.NAMESPACES, {"namespace": "ns-nlp", label_of("flexspot.dev/project"): "shared"}, 0, HOUR)
    month.seen(Question.NAMESPACES, {"namespace": "ns-vision", label_of("flexspot.dev/project"): "of-vision"}, 0, HOUR)
    month.seen(Question.NAMESPACES, {"namespace": "ns-", label_of("flexspot.dev/team"): "of-namespace"}, 0, HOUR)

    def pod(name: str, node: str, gpus: int, *, busy: float | None = None, **more: Any) -> None:
        month.pod(name, node, 0, HOUR, gpus=gpus, **more)
        if busy is not None:
            where = {"namespace": f"ns-{more.get('team', 'vision')}", "pod": name}
            month.seen(Question.UTILISATION, {f"exported_{key}": each for key, each in where.items()}, 0, HOUR, busy)

    pod("whole", "aws-spot", 3, busy=1.5, project="own", workload_type="training")
    pod("of-namespace", "aws-spot", 2, team="")
    pod("project-of-namespace", "aws-spot", 1, team="nlp", busy=7.0)
    pod("sevenths", "aws-mig", 5, busy=3.5, resource="nvidia_com_mig_1g_5gb")
    pod("quarters", "gke-mig", 3, busy=0.5, resource="nvidia_com_mig_1g_10gb")
    pod("shared", "aws-shared", 5, busy=1.0, environment="staging")
    pod("of-three-sevenths", "unknown-mig", 1, resource="nvidia_com_mig_3g_20gb")
    pod("of-neuron", "inferentia", 5, resource="aws_amazon_com_neuron", team="nlp")
    for node_of in ("eks-block", "gke-queued", "gke-flex", "gke-reserved", "gke-plain", "gke-attached"):
        pod(f"on-{node_of}", node_of, 1)
    return month


def expected_series(month: Month) -> dict[str, dict[Labels, float]]:
    """Return GPUs by recorded series and labels, as the report calculates them."""
    seconds = month.period.end - month.period.start
    found: dict[str, defaultdict[Labels, float]] = {each: defaultdict(float) for each in (ALLOCATED, USED, MEASURED, IDLE)}
    for (_, facts, _), book in month.books().nodes.items():
        for owner, use in book.uses.items():
            key = (owner.team, owner.project, owner.workload_type, owner.environment, facts.bought_as)
            found[ALLOCATED][key] += float(use.allocated) / seconds
            if use.measured:
                found[MEASURED][key] += float(use.measured) / seconds
                found[USED][key] += use.used / seconds
        if book.gpu_seconds:
            nobodys = (facts.owner or CENTRAL, NONE, NONE, facts.environment or NONE, facts.bought_as)
            found[IDLE][nobodys] += float(book.gpu_seconds - book.allocated) / seconds
    return {series: dict(each) for series, each in found.items()}


def written(name: str, labels: dict[str, str]) -> str:
    return f"{name}{{{', '.join(f'{key}={json.dumps(value)}' for key, value in labels.items())}}}"


def exported(month: Month) -> dict[str, float]:
    """Return the series of exporters, by selector. Series of each pod that are reported only for top consumers are omitted."""
    series: dict[str, float] = {}
    for question, name in NAMES.items():
        for labels, _, _, value in month.series[question]:
            series[written(name, labels)] = value
            if question is Question.ALLOCATIONS:
                series[written("kube_pod_status_phase", {"uid": labels["uid"], "phase": "Running"})] = 1
                series[written("kube_pod_status_phase", {"uid": labels["uid"], "phase": "Pending"})] = 0
    return series


def test_the_rules_and_the_report_have_equal_results(promtool: Path, tmp_path: Path) -> None:
    month = cluster_of_everything()
    expected = expected_series(month)
    assert {labels[-1] for labels in expected[ALLOCATED]} == {"spot", "on-demand", "reserved", "flex-start", "queued"}
    (tmp_path / "rules.yaml").write_text(rules_yaml())
    samples = [{"series": series, "values": f"{value}x10"} for series, value in exported(month).items()]
    # A second exporter reports the same, and one pod has ended without being deleted.
    samples += [{"series": each["series"].replace("}", ', instance="b"}'), "values": each["values"]} for each in samples]
    ended = {"uid": "uid-ended", "namespace": "ns-vision", "pod": "ended", "node": "aws-spot", "resource": "nvidia_com_gpu"}
    samples.append({"series": written("kube_pod_container_resource_requests", ended), "values": "4x10"})
    samples.append({"series": written("kube_pod_status_phase", {"uid": "uid-ended", "phase": "Succeeded"}), "values": "1x10"})
    questions = [
        {
            "expr": series,
            "eval_time": f"{5 * STEP}s",
            "exp_samples": [
                {"labels": written(series, dict(zip(DIMENSIONS, labels, strict=True))), "value": value} for labels, value in figures.items()
            ],
        }
        for series, figures in expected.items()
    ]
    test = {"interval": f"{STEP}s", "input_series": samples, "promql_expr_test": questions}
    file = tmp_path / "test.yaml"
    file.write_text(
        yaml.safe_dump({"rule_files": ["rules.yaml"], "evaluation_interval": f"{STEP}s", "fuzzy_compare": True, "tests": [test]})
    )

    run = subprocess.run([promtool, "test", "rules", str(file)], capture_output=True, text=True, check=False, timeout=120)

    assert run.returncode == 0, run.stdout + run.stderr


def test_promtool_has_no_findings_about_the_file(promtool: Path, tmp_path: Path) -> None:
    for name, scope in (("all", None), ("prod", {"cluster": "prod"})):
        file = tmp_path / f"{name}.yaml"
        file.write_text(rules_yaml(scope))

        run = subprocess.run(
            [promtool, "check", "rules", "--lint=all", "--lint-fatal", str(file)], capture_output=True, text=True, check=False, timeout=60
        )

        assert run.returncode == 0, run.stdout + run.stderr
