"""False findings in 29 public repositories, each reproduced in a form of our own.

Templates that are not YAML yet, consecutive JSON objects, excerpts of objects or clusters in pages, and findings that are reported once
instead of for each of several objects.

Seen on 2026-11-26 in kubernetes/kubernetes, kubeflow/spark-operator, awslabs/ai-on-eks, aws/karpenter-provider-aws and others.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import yaml
from lint_runs import GOOD, TAINT_RULE, UNTAINTED_POOL, WHOLE_POOL, found, linted, rules

from flexspot.policies.lint.file_reading import Skipped

if TYPE_CHECKING:
    from pathlib import Path


JOB = """\
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  template:
    spec:
      containers:
        - name: train
          image: registry.example/train:1
"""


@pytest.mark.parametrize(
    "text",
    [
        JOB.replace("      containers:", "__EXTRA_VOLUMES__\n      containers:"),
        JOB.replace("registry.example/train:1", "{REGISTRY}/train:1"),
        JOB.replace("registry.example/train:1", "%s"),
        JOB.replace("registry.example/train:1", "@IMAGE@"),
        "%{ for name in pools ~}\n" + JOB,
        "{% if gpus %}\n" + JOB + "{% endif %}\n",
        JOB + "%{ endfor ~}\n",
        "<% if gpus %>\n" + JOB + "<% end %>\n",
    ],
)
def test_text_with_placeholders_is_a_template(text: str, tmp_path: Path) -> None:
    report = linted(tmp_path, job_yaml=text)

    assert rules(report) == set()
    assert report.skipped[Skipped.TEMPLATE] == 1


@pytest.mark.parametrize(
    "text",
    [
        JOB.replace("metadata: {name: train}", "metadata: {name: train"),
        JOB.replace("image: registry", "image: : registry"),
        JOB.replace("        - name: train", "\t- name: train"),
        # A placeholder elsewhere does not make it a template.
        "# {IMAGE} is the team's\n" + JOB.replace("image: registry", "image: : registry") + "# __END__\n",
    ],
)
def test_broken_text_is_not_a_template(text: str, tmp_path: Path) -> None:
    assert rules(linted(tmp_path, job_yaml=text)) == {"unreadable-manifest"}


@pytest.mark.parametrize("start,between,end", [("", "\n", ""), ("", "", ""), ("", "\n\n\n", ""), ("", "  ", ""), ("[", ",\n", "]")])
def test_json_objects_in_an_array_or_in_sequence_are_judged_at_their_lines(start: str, between: str, end: str, tmp_path: Path) -> None:
    """`kubectl create -f` accepts both: its decoder reads one value after another."""
    pool = yaml.safe_load(UNTAINTED_POOL)
    texts = [json.dumps({**pool, "metadata": {"name": name}}) for name in ("one", "two")]
    report = linted(tmp_path, pools_json=f"{start}\n{between.join(texts)}\n{end}")

    assert report.objects == 2
    assert [line for _, line, rule in found(report, tmp_path) if rule == TAINT_RULE] == [2, 2 + between.count("\n")]


def test_truncated_json_is_unreadable(tmp_path: Path) -> None:
    whole = json.dumps({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}})

    assert rules(linted(tmp_path, web_json=f"{whole}\n{whole[:-5]}")) == {"unreadable-manifest"}


OTHER_CLASS = GOOD["EC2NodeClass/gpu"].replace("{name: gpu}", "{name: cpu}")
OTHER_QUEUE = GOOD["LocalQueue/research"].replace("{name: research,", "{name: cpus,")
OF_G5 = "{key: karpenter.k8s.aws/instance-family, operator: In, values: [g5]}"
ABSENT = {
    "nodepool-references-missing-class": WHOLE_POOL + "---\n" + OTHER_CLASS,
    "work-in-missing-queue": GOOD["Job/train"] + "---\n" + OTHER_QUEUE,
    "local-queue-without-cluster-queue": OTHER_QUEUE + "---\n" + GOOD["ClusterQueue/serving"],
}


@pytest.mark.parametrize("rule", ABSENT)
def test_a_page_does_not_prove_that_an_object_is_missing(rule: str, tmp_path: Path) -> None:
    assert rule in rules(linted(tmp_path / "files", objects_yaml=ABSENT[rule]))
    assert rule not in rules(linted(tmp_path / "page", guide_md=f"```yaml\n{ABSENT[rule]}```\n"))


@pytest.mark.parametrize(
    "shown",
    [
        "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: gpu}\nspec:\n  instanceStorePolicy: RAID0\n",
        "{apiVersion: karpenter.sh/v1alpha5, kind: Provisioner, metadata: {name: gpu}, spec: {requirements: [" + OF_G5 + "]}}\n",
    ],
)
def test_a_page_may_show_an_object_without_required_fields(shown: str, tmp_path: Path) -> None:
    assert rules(linted(tmp_path / "files", shown_yaml=shown)) != set()
    assert rules(linted(tmp_path / "page", guide_md=f"```yaml\n{shown}```\n")) == set()


def test_a_class_that_a_page_shows_with_dots_is_not_reported_as_missing(tmp_path: Path) -> None:
    dotted = "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: gpu}\nspec:\n  role: nodes\n  ...\n"
    page = f"```yaml\n{dotted}---\n{WHOLE_POOL}---\n{OTHER_CLASS}```\n"
    report = linted(tmp_path, guide_md=page)

    assert "nodepool-references-missing-class" not in rules(report)
    assert report.skipped[Skipped.EXAMPLE] == 1


def test_a_namespace_without_a_quota_is_reported_once(tmp_path: Path) -> None:
    quota = "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: other, namespace: other}\nspec: {hard: {requests.nvidia.com/gpu: 1}}\n"
    queues = [OTHER_QUEUE.replace("name: cpus", f"name: queue-{number}") for number in range(3)]
    job = JOB + "          resources: {limits: {nvidia.com/gpu: 1}}\n"
    job = job.replace("{name: train}", "{name: train, namespace: research, labels: {kueue.x-k8s.io/queue-name: queue-0}}")
    report = linted(tmp_path, all_yaml="---\n".join([quota, *queues, job]))

    assert [each.finding.object.name for each in report.open if each.finding.rule == "namespace-without-gpu-quota"] == ["queue-0"]
