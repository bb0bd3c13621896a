"""Objects are compared only within one cluster: ten defects in two clusters of one repository, in the layouts of real repositories.

The layouts are those of fluxcd/flux2-kustomize-helm-example (clusters/production, apps/base), aws-samples/karpenter-blueprints
(blueprints/NAME) and kubernetes-sigs/kueue (site/static/examples), as of 2026-11-25.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from lint_runs import GOOD, linted

from flexspot.policies.lint.configuration import Configuration
from flexspot.policies.lint.formats import as_json, as_text

if TYPE_CHECKING:
    from pathlib import Path

    from flexspot.policies.lint.report import LintReport

KINDS = ("ResourceFlavor/spot", "ClusterQueue/research", "LocalQueue/research", "EC2NodeClass/gpu", "NodePool/train-spot", "Job/train")
FLAVOR, CLUSTER_QUEUE, LOCAL_QUEUE, NODE_CLASS, POOL, JOB = (GOOD[kind] for kind in KINDS)
QUEUES = f"{FLAVOR}---\n{CLUSTER_QUEUE}---\n{LOCAL_QUEUE}"
UNQUEUED = JOB.replace("kueue.x-k8s.io/queue-name: research, ", "")

# The text of a cluster. CLUSTER and OTHER are placeholders for its own name and that of the other cluster.
CLUSTER = f"{QUEUES}---\n{NODE_CLASS}---\n{POOL}---\n{JOB}"
CLUSTER = CLUSTER.replace("clusterQueue: research", "clusterQueue: CLUSTER-jobs")
CLUSTER = CLUSTER.replace("kind: ClusterQueue\nmetadata: {name: research}", "kind: ClusterQueue\nmetadata: {name: CLUSTER-jobs}")
# Further objects of a cluster, which would hide a defect of the other if objects were compared across clusters.
HIDES = f"---\n{NODE_CLASS}---\n{POOL}".replace("name: gpu}", "name: CLUSTER-class}").replace("train-spot", "CLUSTER-pool")
HIDES = (
    HIDES.replace("key: tier, value: spot", "key: CLUSTER, value: x")
    .replace("tier: spot", "tier: CLUSTER")
    .replace("[spot]", "[on-demand]")
)

DEFECTS = {
    "local-queue-without-cluster-queue": ("{clusterQueue: CLUSTER-jobs}", "{clusterQueue: OTHER-jobs}"),
    "nodepool-references-missing-class": ("kind: EC2NodeClass, name: gpu}", "kind: EC2NodeClass, name: OTHER-class}"),
    "flavor-matches-no-pool": ("nodeLabels: {tier: spot}", "nodeLabels: {tier: OTHER}"),
    "missing-toleration": ("- {key: tier, operator: Equal, value: spot,", "- {key: OTHER, operator: Exists,"),
    "job-without-queue": ("kueue.x-k8s.io/queue-name: research, ", ""),
}


def cluster(name: str, defect: str = "") -> str:
    """Return the text of a whole cluster, with at most one defect."""
    text = CLUSTER.replace(*DEFECTS[defect]) if defect else CLUSTER
    return (text + HIDES).replace("CLUSTER", name).replace("OTHER", {"one": "two", "two": "one"}[name])


def reported(report: LintReport, rule: str) -> list[tuple[str, tuple[str, ...]]]:
    return [(each.finding.object.name, each.clusters) for each in report.open if each.finding.rule == rule]


@pytest.mark.parametrize("closed", [False, True], ids=["open", "closed"])
@pytest.mark.parametrize("layout", ["clusters__{}__all_yaml", "{}__all_yaml", "envs__{}__gpu__all_yaml", "{}_yaml"])
def test_ten_defects_of_two_clusters_are_found_and_the_other_cluster_hides_none(layout: str, *, closed: bool, tmp_path: Path) -> None:
    for defect in DEFECTS:
        for broken, good in (("one", "two"), ("two", "one")):
            folder = tmp_path / f"{defect}-{broken}"
            files = {layout.format(broken): cluster(broken, defect), layout.format(good): cluster(good)}
            report = linted(folder, Configuration(closed=closed), **files)

            [finding] = [each for each in report.open if each.finding.rule == defect]
            assert [broken in name for name in finding.clusters] == [True], finding.clusters
            assert f"there is ClusterQueue {good}" not in finding.message, "that only the other cluster could say"


def test_a_pool_has_no_findings_because_of_a_pool_with_the_same_name_in_another_cluster(tmp_path: Path) -> None:
    gpu, cpu = cluster("one").replace("train-spot", "default"), GOOD["NodePool/general"].replace("general", "default")
    report = linted(tmp_path, gpus__all_yaml=gpu, cpus__all_yaml=cpu)

    assert [each.message for each in report.open if each.path.endswith("cpus/all.yaml")] == []


def test_an_overlay_and_its_base_are_one_cluster(tmp_path: Path) -> None:
    kustomization = "resources: [../../base, queue.yaml]\n"
    report = linted(
        tmp_path,
        Configuration(closed=True),
        app__base__kustomization_yaml="resources: [job.yaml]\n",
        app__base__job_yaml=JOB,
        app__overlays__prod__kustomization_yaml=kustomization,
        app__overlays__prod__queue_yaml=LOCAL_QUEUE,
        app__overlays__dev__kustomization_yaml=kustomization,
        app__overlays__dev__queue_yaml=LOCAL_QUEUE.replace("clusterQueue: research", "clusterQueue: serving"),
    )

    assert {name.rpartition("/")[2] for name in report.clusters} == {"prod", "dev"}
    assert len([each for each in report.open if each.finding.rule == "local-queue-without-cluster-queue"]) == 2


def test_a_flux_cluster_contains_what_its_kustomizations_include(tmp_path: Path) -> None:
    flux = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: apps}\nspec: {path: ./apps/NAME}\n"
    report = linted(
        tmp_path,
        Configuration(closed=True),
        clusters__prod__apps_yaml=flux.replace("NAME", "prod"),
        clusters__dev__apps_yaml=flux.replace("NAME", "dev"),
        apps__base__job_yaml=JOB,
        apps__base__kustomization_yaml="resources: [job.yaml]\n",
        apps__prod__kustomization_yaml="resources: [../base, queue.yaml]\n",
        apps__prod__queue_yaml=QUEUES,
        apps__dev__kustomization_yaml="resources: [../base, queue.yaml]\n",
        apps__dev__queue_yaml=f"{FLAVOR}---\n{LOCAL_QUEUE}",
    )

    assert reported(report, "local-queue-without-cluster-queue") == [("research", (f"{tmp_path}/clusters/dev",))]


def test_one_cluster_may_be_in_several_folders(tmp_path: Path) -> None:
    report = linted(
        tmp_path,
        Configuration(closed=True),
        kueue__queues_yaml=QUEUES,
        karpenter__pools_yaml=f"{NODE_CLASS}---\n{POOL}",
        jobs__train_yaml=JOB,
    )

    assert [each.message for each in report.open if each.finding.rule in DEFECTS] == []
    assert len(report.clusters) == 1


def test_examples_are_separate_clusters(tmp_path: Path) -> None:
    report = linted(tmp_path, examples__kueue__queues_yaml=QUEUES, examples__plain__job_yaml=UNQUEUED)

    assert reported(report, "job-without-queue") == []
    assert set(report.clusters) == {"kueue", "plain"}


def test_configured_clusters_take_precedence_and_may_share_a_folder(tmp_path: Path) -> None:
    named = {"a": ("shared", "a"), "b": ("shared", "b.yaml")}
    configuration = Configuration(closed=True, clusters=named, folder=tmp_path)
    report = linted(tmp_path, configuration, shared__queue_yaml=LOCAL_QUEUE, a__queues_yaml=f"{FLAVOR}---\n{CLUSTER_QUEUE}", b_yaml=FLAVOR)
    in_both = linted(tmp_path, configuration, a__queues_yaml=FLAVOR)

    assert reported(report, "local-queue-without-cluster-queue") == [("research", ("b",))]
    assert report.clusters == {"a": 3, "b": 2}
    assert "cluster b: spec.clusterQueue is research" in as_text(report)
    [finding] = [each for each in json.loads(as_json(report))["findings"] if each["rule"] == "local-queue-without-cluster-queue"]
    assert finding["clusters"] == ["b"]
    assert reported(in_both, "local-queue-without-cluster-queue") == [("research", ("a", "b"))], "once for both"


def test_two_whole_clusters_without_common_names_are_separated(tmp_path: Path) -> None:
    def renamed(suffix: str) -> str:
        text = CLUSTER.replace("CLUSTER", suffix)
        for name in ("name: spot", "name: research", "name: gpu", "name: train", "tier: spot"):
            text = text.replace(name, f"{name}-{suffix}")
        return text

    east = renamed("east").replace("clusterQueue: east-jobs", "clusterQueue: west-jobs")
    report = linted(tmp_path, region__east__all_yaml=east, region__west__all_yaml=renamed("west"))

    assert reported(report, "local-queue-without-cluster-queue") == [("research-east", ("east",))]


def test_a_page_of_markdown_is_judged_by_itself(tmp_path: Path) -> None:
    report = linted(tmp_path, guide_md=f"```yaml\n{UNQUEUED}```\n", queues_yaml=QUEUES)

    assert reported(report, "job-without-queue") == []
