"""What 29 public repositories were wrongly accused of, each in a shape of our own: sources that are no YAML yet, JSON one object after the

other, pages that show a part of an object or of a cluster, and what is told once for each of several objects.

Seen on 2026-11-26 in kubernetes/kubernetes, kubeflow/spark-operator, awslabs/ai-on-eks, aws/karpenter-provider-aws and others.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from lint_runs import TAINT_RULE, UNTAINTED_POOL, found, linted

from policies.lint.file_reading import Skipped

if TYPE_CHECKING:
    from pathlib import Path

    from policies.lint.report import Report

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


def rules(report: Report) -> set[str]:
    return {each.finding.rule for each in report.open}


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
def test_what_somebody_has_still_to_fill_in_is_the_source_of_a_manifest(text: str, tmp_path: Path) -> None:
    report = linted(tmp_path, job_yaml=text)

    assert rules(report) == set()
    assert report.skipped[Skipped.TEMPLATE] == 1


@pytest.mark.parametrize(
    "text",
    [
        JOB.replace("metadata: {name: train}", "metadata: {name: train"),
        JOB.replace("image: registry", "image: : registry"),
        JOB.replace("        - name: train", "\t- name: train"),
        # A placeholder elsewhere excuses nothing.
        "# {IMAGE} is the team's\n" + JOB.replace("image: registry", "image: : registry") + "# __END__\n",
    ],
)
def test_what_is_broken_is_no_source_of_a_manifest(text: str, tmp_path: Path) -> None:
    assert rules(linted(tmp_path, job_yaml=text)) == {"unreadable-manifest"}


@pytest.mark.parametrize("between", ["\n", "", "\n\n\n", "  "])
def test_json_objects_one_after_the_other_are_judged_each_at_its_line(between: str, tmp_path: Path) -> None:
    """As `kubectl create -f` takes them: its decoder reads one value after the other."""
    pool = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "gpu"},
        "spec": {
            "limits": {"nvidia.com/gpu": 8},
            "template": {"spec": {"requirements": [{"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": ["g6"]}]}},
        },
    }
    texts = [json.dumps({**pool, "metadata": {"name": name}}, indent=2) for name in ("one", "two")]
    report = linted(tmp_path, pools_json="\n" + texts[0] + between + texts[1] + "\n")

    second = 2 + (texts[0] + between).count("\n")
    assert report.objects == 2
    assert [line for _, line, rule in found(report, tmp_path) if rule == TAINT_RULE] == [2, second]


def test_json_that_breaks_off_is_unreadable(tmp_path: Path) -> None:
    whole = json.dumps({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}})

    assert rules(linted(tmp_path, web_json=f"{whole}\n{whole[:-5]}")) == {"unreadable-manifest"}


WHOLE_POOL = UNTAINTED_POOL + "      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: gpu}\n"
OTHER_CLASS = """\
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: cpu}
spec:
  role: nodes
  amiSelectorTerms: [{alias: al2023@v20260903}]
  subnetSelectorTerms: [{tags: {team: a}}]
  securityGroupSelectorTerms: [{tags: {team: a}}]
"""
QUEUED_JOB = JOB.replace("{name: train}", "{name: train, namespace: research, labels: {kueue.x-k8s.io/queue-name: gpus}}")
OTHER_QUEUE = (
    "apiVersion: kueue.x-k8s.io/v1beta2\nkind: LocalQueue\nmetadata: {name: cpus, namespace: research}\nspec: {clusterQueue: all}\n"
)
OTHER_CLUSTER_QUEUE = """\
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: one}
spec: {namespaceSelector: {}, resourceGroups: [{coveredResources: [cpu], flavors: [{name: a, resources: [{name: cpu, nominalQuota: 9}]}]}]}
"""
OF_G5 = "{key: karpenter.k8s.aws/instance-family, operator: In, values: [g5]}"
ABSENT = {
    "nodepool-references-missing-class": WHOLE_POOL + "---\n" + OTHER_CLASS,
    "work-in-missing-queue": QUEUED_JOB + "---\n" + OTHER_QUEUE,
    "local-queue-without-cluster-queue": OTHER_QUEUE + "---\n" + OTHER_CLUSTER_QUEUE,
}


@pytest.mark.parametrize("rule", ABSENT)
def test_a_page_proves_of_no_object_that_it_is_nowhere(rule: str, tmp_path: Path) -> None:
    assert rule in rules(linted(tmp_path / "files", objects_yaml=ABSENT[rule]))
    assert rule not in rules(linted(tmp_path / "page", guide_md=f"```yaml\n{ABSENT[rule]}```\n"))


@pytest.mark.parametrize(
    "shown",
    [
        "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: gpu}\nspec:\n  instanceStorePolicy: RAID0\n",
        "{apiVersion: karpenter.sh/v1alpha5, kind: Provisioner, metadata: {name: gpu}, spec: {requirements: [" + OF_G5 + "]}}\n",
    ],
)
def test_a_page_shows_a_part_of_what_its_kind_cannot_be_without(shown: str, tmp_path: Path) -> None:
    assert rules(linted(tmp_path / "files", shown_yaml=shown)) != set()
    assert rules(linted(tmp_path / "page", guide_md=f"```yaml\n{shown}```\n")) == set()


def test_a_class_that_a_page_shows_with_dots_is_not_held_to_be_nowhere(tmp_path: Path) -> None:
    dotted = "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: gpu}\nspec:\n  role: nodes\n  ...\n"
    page = f"```yaml\n{dotted}---\n{WHOLE_POOL}---\n{OTHER_CLASS}```\n"
    report = linted(tmp_path, guide_md=page)

    assert "nodepool-references-missing-class" not in rules(report)
    assert report.skipped[Skipped.EXAMPLE] == 1


def test_a_provisioner_that_names_no_capacity_type_is_on_demand(tmp_path: Path) -> None:
    """Its webhook added that; a NodePool which says nothing may have Spot as well."""
    provisioner = """\
apiVersion: karpenter.sh/v1alpha5
kind: Provisioner
metadata: {name: gpu, labels: {team: research}}
spec:
  providerRef: {name: gpu}
  requirements: [{key: karpenter.k8s.aws/instance-family, operator: In, values: [g5]}]
  limits: {resources: {nvidia.com/gpu: 8}}
  taints: [{key: nvidia.com/gpu, effect: NoSchedule}]
"""
    of_spot = provisioner.replace(
        "operator: In, values: [g5]}", "operator: In, values: [g5]}, {key: karpenter.sh/capacity-type, operator: Exists}"
    )

    assert "spot-pool-without-taint" not in rules(linted(tmp_path / "silent", pool_yaml=provisioner))
    assert "spot-pool-without-taint" in rules(linted(tmp_path / "spot", pool_yaml=of_spot))


def test_a_namespace_without_a_quota_is_told_of_once(tmp_path: Path) -> None:
    quota = "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: other, namespace: other}\nspec: {hard: {requests.nvidia.com/gpu: 1}}\n"
    queues = [OTHER_QUEUE.replace("name: cpus", f"name: queue-{number}") for number in range(3)]
    job = JOB + "          resources: {limits: {nvidia.com/gpu: 1}}\n"
    job = job.replace("{name: train}", "{name: train, namespace: research, labels: {kueue.x-k8s.io/queue-name: queue-0}}")
    report = linted(tmp_path, all_yaml="---\n".join([quota, *queues, job]))

    assert [each.finding.object.name for each in report.open if each.finding.rule == "namespace-without-gpu-quota"] == ["queue-0"]
