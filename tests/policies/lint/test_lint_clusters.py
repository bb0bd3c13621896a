"""Objects are compared inside one cluster alone: ten defects in two clusters of one repository, in the layouts of repositories.

The layouts are those of fluxcd/flux2-kustomize-helm-example (clusters/production, apps/base), aws-samples/karpenter-blueprints
(blueprints/NAME) and kubernetes-sigs/kueue (site/static/examples), looked up on 2026-11-25.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from lint_runs import linted

from policies.lint.configuration import Configuration
from policies.lint.formats import as_json, as_text

if TYPE_CHECKING:
    from pathlib import Path

    from policies.lint.report import Report

GOOD = """\
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: spot}
spec: {nodeLabels: {karpenter.sh/nodepool: gpu}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: CLUSTER-jobs}
spec:
  namespaceSelector: {}
  resourceGroups:
    - coveredResources: [nvidia.com/gpu]
      flavors: [{name: spot, resources: [{name: nvidia.com/gpu, nominalQuota: 8}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: jobs, namespace: research}
spec: {clusterQueue: CLUSTER-jobs}
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: gpu}
spec: {amiSelectorTerms: [{alias: al2023@v20260101}], role: nodes}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: gpu, labels: {flexspot.dev/owner: platform}}
spec:
  limits: {nvidia.com/gpu: 8}
  template:
    spec:
      expireAfter: Never
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: gpu}
      taints: [{key: nvidia.com/gpu, value: present, effect: NoSchedule}, {key: capacity, value: spot, effect: NoSchedule}]
      requirements:
        - {key: node.kubernetes.io/instance-type, operator: In, values: [g6.xlarge]}
        - {key: karpenter.sh/capacity-type, operator: In, values: [spot]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: train, namespace: research, labels: {kueue.x-k8s.io/queue-name: jobs, flexspot.dev/owner: research}}
spec:
  suspend: true
  backoffLimit: 6
  template:
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 60
      nodeSelector: {karpenter.sh/nodepool: gpu}
      tolerations: [{key: capacity, operator: Exists}]
      containers: [{name: train, image: registry.example/train:1.2, resources: {limits: {nvidia.com/gpu: 1}}}]
"""


def planted(defect: str, cluster: str) -> str:
    """A cluster with one defect, by name."""
    text = GOOD.replace("CLUSTER", cluster)
    changes = {
        "local-queue-without-cluster-queue": ("spec: {clusterQueue: CLUSTER-jobs}", "spec: {clusterQueue: OTHER-jobs}"),
        "nodepool-references-missing-class": ("kind: EC2NodeClass, name: gpu}", "kind: EC2NodeClass, name: OTHER-class}"),
        "flavor-matches-no-pool": ("nodeLabels: {karpenter.sh/nodepool: gpu}", "nodeLabels: {karpenter.sh/nodepool: OTHER-pool}"),
        "missing-toleration": ("tolerations: [{key: capacity, operator: Exists}]", "tolerations: [{key: OTHER, operator: Exists}]"),
        "job-without-queue": ("kueue.x-k8s.io/queue-name: jobs, ", ""),
        "none": ("", ""),
    }
    before, after = changes[defect]
    other = {"one": "two", "two": "one"}[cluster]
    if defect == "local-queue-without-cluster-queue":
        before = before.replace("CLUSTER", cluster)
    return text.replace(before, after.replace("OTHER", other)) if before else text


# What the other cluster has, so that a defect would be hidden by it.
HIDES = """\
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: CLUSTER-class}
spec: {amiSelectorTerms: [{alias: al2023@v20260101}], role: nodes}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: CLUSTER-pool, labels: {flexspot.dev/owner: platform}}
spec:
  limits: {nvidia.com/gpu: 8}
  template:
    spec:
      expireAfter: Never
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: CLUSTER-class}
      taints: [{key: nvidia.com/gpu, value: present, effect: NoSchedule}, {key: CLUSTER, value: x, effect: NoSchedule}]
      requirements:
        - {key: node.kubernetes.io/instance-type, operator: In, values: [g6.xlarge]}
        - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
"""

NAMES = (
    "local-queue-without-cluster-queue",
    "nodepool-references-missing-class",
    "flavor-matches-no-pool",
    "missing-toleration",
    "job-without-queue",
)


def whole(defect: str, cluster: str) -> str:
    return planted(defect, cluster) + HIDES.replace("CLUSTER", cluster)


def told(report: Report, rule: str) -> list[tuple[str, tuple[str, ...]]]:
    return [(each.finding.object.name, each.clusters) for each in report.open if each.finding.rule == rule]


@pytest.mark.parametrize("closed", [False, True], ids=["open", "closed"])
@pytest.mark.parametrize("layout", ["clusters/{}", "{}", "envs/{}/gpu", "{}.yaml"])
def test_ten_defects_of_two_clusters_are_found_and_the_other_cluster_hides_none(layout: str, *, closed: bool, tmp_path: Path) -> None:
    for defect in NAMES:
        for broken, good in (("one", "two"), ("two", "one")):
            folder = tmp_path / f"{defect}-{broken}"
            files = {
                (f"{layout.format(name)}/all_yaml" if "." not in layout else layout.format(name).replace(".", "_")).replace("/", "__"): text
                for name, text in {broken: whole(defect, broken), good: whole("none", good)}.items()
            }
            report = linted(folder, configuration=Configuration(closed=closed), **files)

            found = told(report, defect)
            assert len(found) == 1, (defect, broken, [each.message for each in report.open])
            [(_, clusters)] = found
            assert [broken in name for name in clusters] == [True], clusters
            # Nothing is said that the other cluster alone could say.
            [finding] = [each.finding for each in report.open if each.finding.rule == defect]
            rest = {"local-queue-without-cluster-queue", "nodepool-references-missing-class"}
            assert defect not in rest or f"there is ClusterQueue {good}" not in finding.message


def test_a_cluster_pool_is_not_accused_for_a_pool_of_the_same_name_in_another_cluster(tmp_path: Path) -> None:
    gpu = GOOD.replace("CLUSTER", "one").replace("metadata: {name: gpu, labels", "metadata: {name: default, labels")
    gpu = gpu.replace("limits: {nvidia.com/gpu: 8}", "limits: {nvidia.com/gpu: 8}").replace("nodepool: gpu", "nodepool: default")
    cpu = (
        "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: default}\nspec:\n  disruption: {consolidationPolicy: WhenEmpty}\n"
        "  limits: {cpu: 100}\n"
        "  template: {spec: {expireAfter: 720h, nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: cpu},"
        " requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [m7i.large]}]}}\n"
    )
    report = linted(tmp_path, gpus__all_yaml=gpu, cpus__all_yaml=cpu)

    assert [each.message for each in report.open if each.path.endswith("cpus/all.yaml")] == []


def test_an_overlay_is_a_cluster_with_its_base_and_with_nothing_of_the_other(tmp_path: Path) -> None:
    queue, job = GOOD.replace("CLUSTER", "one").split("---\n")[2], GOOD.rsplit("---\n", maxsplit=1)[-1]
    kustomization = "resources: [../../base, queue.yaml]\n"
    report = linted(
        tmp_path,
        configuration=Configuration(closed=True),
        app__base__kustomization_yaml="resources: [job.yaml]\n",
        app__base__job_yaml=job,
        app__overlays__prod__kustomization_yaml=kustomization,
        app__overlays__prod__queue_yaml=queue,
        app__overlays__dev__kustomization_yaml=kustomization,
        app__overlays__dev__queue_yaml=queue.replace("one-jobs", "two-jobs"),
    )

    assert {name.rpartition("/")[2] for name in report.clusters} == {"prod", "dev"}
    assert len([each for each in report.open if each.finding.rule == "local-queue-without-cluster-queue"]) == 2


def test_a_cluster_of_flux_has_what_its_kustomizations_take(tmp_path: Path) -> None:
    flux = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: apps}\nspec: {path: ./apps/NAME}\n"
    parts = GOOD.replace("CLUSTER", "one").split("---\n")
    report = linted(
        tmp_path,
        configuration=Configuration(closed=True),
        clusters__prod__apps_yaml=flux.replace("NAME", "prod"),
        clusters__dev__apps_yaml=flux.replace("NAME", "dev"),
        apps__base__job_yaml=parts[-1],
        apps__base__kustomization_yaml="resources: [job.yaml]\n",
        apps__prod__kustomization_yaml="resources: [../base, queue.yaml]\n",
        apps__prod__queue_yaml="---\n".join(parts[:3]),
        apps__dev__kustomization_yaml="resources: [../base, queue.yaml]\n",
        apps__dev__queue_yaml="---\n".join([parts[0], parts[2]]),
    )

    assert told(report, "local-queue-without-cluster-queue") == [("jobs", (f"{tmp_path}/clusters/dev",))]


def test_one_cluster_may_be_in_as_many_folders_as_its_owner_likes(tmp_path: Path) -> None:
    parts = GOOD.replace("CLUSTER", "one").split("---\n")
    report = linted(
        tmp_path,
        configuration=Configuration(closed=True),
        kueue__queues_yaml="---\n".join(parts[:3]),
        karpenter__pools_yaml="---\n".join(parts[3:5]),
        jobs__train_yaml=parts[5],
    )

    assert [each.message for each in report.open if each.finding.rule in NAMES] == []
    assert len(report.clusters) == 1


def test_an_example_has_nothing_to_do_with_the_next(tmp_path: Path) -> None:
    parts = GOOD.replace("CLUSTER", "one").split("---\n")
    unqueued = parts[5].replace("kueue.x-k8s.io/queue-name: jobs, ", "")
    report = linted(tmp_path, examples__kueue__queues_yaml="---\n".join(parts[:3]), examples__plain__job_yaml=unqueued)

    assert told(report, "job-without-queue") == []
    assert set(report.clusters) == {"kueue", "plain"}


def test_clusters_that_the_configuration_names_count_and_may_share_a_folder(tmp_path: Path) -> None:
    parts = GOOD.replace("CLUSTER", "one").split("---\n")
    named = {"a": ("shared", "a"), "b": ("shared", "b.yaml")}
    report = linted(
        tmp_path,
        configuration=Configuration(closed=True, clusters=named, folder=tmp_path),
        shared__queue_yaml=parts[2],
        a__queues_yaml="---\n".join(parts[:2]),
        b_yaml=parts[0],
    )

    assert told(report, "local-queue-without-cluster-queue") == [("jobs", ("b",))]
    assert report.clusters == {"a": 3, "b": 2}
    assert "cluster b: spec.clusterQueue is one-jobs" in as_text(report)
    [finding] = [each for each in json.loads(as_json(report))["findings"] if each["rule"] == "local-queue-without-cluster-queue"]
    assert finding["clusters"] == ["b"]


def test_a_finding_that_is_so_in_every_cluster_is_told_once(tmp_path: Path) -> None:
    parts = GOOD.replace("CLUSTER", "one").split("---\n")
    named = {"a": ("shared", "a"), "b": ("shared", "b")}
    report = linted(
        tmp_path,
        configuration=Configuration(closed=True, clusters=named, folder=tmp_path),
        shared__queue_yaml=parts[2],
        a__flavor_yaml=parts[0],
        b__flavor_yaml=parts[0],
    )

    assert told(report, "local-queue-without-cluster-queue") == [("jobs", ("a", "b"))]


def test_two_whole_clusters_are_told_apart_although_they_have_no_name_in_common(tmp_path: Path) -> None:
    def renamed(text: str, suffix: str) -> str:
        for name in ("name: spot", "name: jobs", "name: gpu", "name: train", "nodepool: gpu", "queue-name: jobs"):
            text = text.replace(name, f"{name}-{suffix}")
        return text

    east = renamed(GOOD.replace("CLUSTER", "east"), "east").replace("clusterQueue: east-jobs", "clusterQueue: west-jobs")
    report = linted(tmp_path, region__east__all_yaml=east, region__west__all_yaml=renamed(GOOD.replace("CLUSTER", "west"), "west"))

    assert told(report, "local-queue-without-cluster-queue") == [("jobs-east", ("east",))]


def test_a_page_of_markdown_is_judged_by_itself(tmp_path: Path) -> None:
    parts = GOOD.replace("CLUSTER", "one").split("---\n")
    unqueued = parts[5].replace("kueue.x-k8s.io/queue-name: jobs, ", "")
    report = linted(tmp_path, guide_md=f"```yaml\n{unqueued}```\n", queues_yaml="---\n".join(parts[:3]))

    assert told(report, "job-without-queue") == []
