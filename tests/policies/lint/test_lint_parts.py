"""A part of an object is not judged as a whole object, wherever kustomize, a test or a page marks it as a part.

Forms seen on 2026-11-25: kubernetes-sigs/kustomize (examples/components, api/konfig/general.go: no kind is needed), kyverno/chainsaw
(testdata/e2e/examples/*/chainsaw-test.yaml), kudobuilder/kuttl (docs/testing/steps.md), karpenter.sh/docs/concepts/nodepools (fragments).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from lint_runs import TAINT_RULE, UNTAINTED_POOL, WHOLE_POOL, found, linted, rules

from flexspot.policies.lint.file_reading import Skipped
from flexspot.policies.lint.parts import is_assertion_file

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    "kustomization",
    [
        "patches: [{path: pool.yaml}]\n",
        "resources: [../base]\npatches:\n  - path: pool.yaml\n    target: {kind: NodePool}\n",
        "patchesStrategicMerge: [pool.yaml]\n",
        "patchesJson6902: [{path: pool.yaml, target: {version: v1, kind: NodePool, name: gpu}}]\n",
        "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches: [{path: pool.yaml}]\n",
        "kind: Kustomization\npatches: [{path: ./pool.yaml}]\n",
    ],
)
@pytest.mark.parametrize("name", ["kustomization_yaml", "kustomization_yml"])
def test_a_patch_is_recognized_in_every_form_of_kustomization(kustomization: str, name: str, tmp_path: Path) -> None:
    report = linted(tmp_path, pool_yaml=UNTAINTED_POOL, **{name: kustomization})

    assert [each for each in found(report, tmp_path) if each[0] == "pool.yaml"] == []
    assert report.skipped[Skipped.PATCH] == 1


def test_a_resource_of_a_kustomization_is_judged(tmp_path: Path) -> None:
    assert TAINT_RULE in rules(linted(tmp_path, kustomization_yaml="resources: [pool.yaml]\n", pool_yaml=UNTAINTED_POOL))


@pytest.mark.parametrize(
    "mark",
    ["$patch: replace", "$retainKeys: [limits]", "$setElementOrder/taints: [{key: a}]", "$deleteFromPrimitiveList/finalizers: [a]"],
)
def test_an_object_with_a_directive_of_a_strategic_merge_is_a_patch(mark: str, tmp_path: Path) -> None:
    report = linted(tmp_path, pool_yaml=UNTAINTED_POOL.replace("spec:\n", f"spec:\n  {mark}\n", 1))

    assert found(report, tmp_path) == []
    assert report.skipped[Skipped.PATCH] == 1


@pytest.mark.parametrize(
    "name,is_one",
    [
        *(("00-assert.yaml", True), ("01-errors.yaml", True), ("chainsaw-assert.yaml", True), ("pool-assert-1.yaml", True)),
        *(("assert.yaml", True), ("assertions.yaml", True), ("02-assert-pods.yml", True), ("chainsaw-error.yaml", True)),
        *(("00-install.yaml", False), ("errors.yaml", False), ("asserter.yaml", False), ("01-pool.yaml", False), ("assert.json", False)),
    ],
)
def test_assertion_files_are_recognized_by_the_names_of_kuttl_and_chainsaw(name: str, is_one: bool) -> None:  # noqa: FBT001
    assert is_assertion_file(f"tests/e2e/{name}") is is_one


@pytest.mark.parametrize("operation", ["assert", "error", "patch", "delete"])
@pytest.mark.parametrize("file", ["expected.yaml", "exp*.yaml", "../case/expected.yaml"])
def test_files_that_a_chainsaw_test_compares_are_parts(operation: str, file: str, tmp_path: Path) -> None:
    test = (
        "apiVersion: chainsaw.kyverno.io/v1alpha1\nkind: Test\nmetadata: {name: pools}\nspec:\n  steps:\n    - try:\n"
        f"        - apply: {{file: pool.yaml}}\n        - {operation}: {{file: '{file}'}}\n"
    )
    files = {"case__chainsaw-test_yaml": test, "case__expected_yaml": UNTAINTED_POOL, "case__pool_yaml": UNTAINTED_POOL}
    report = linted(tmp_path, **files)

    assert {path for path, _, rule in found(report, tmp_path) if rule == TAINT_RULE} == {"case/pool.yaml"}
    assert report.skipped[Skipped.ASSERTION] == 1


def test_an_excerpt_in_a_page_has_no_findings_about_missing_fields(tmp_path: Path) -> None:
    for number, shown in enumerate(
        [
            "apiVersion: karpenter.sh/v1\nkind: NodePool\nspec:\n  limits: {nvidia.com/gpu: 8}\n",
            "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: gpu}\nspec:\n  disruption: {consolidationPolicy: WhenEmpty}\n",
            UNTAINTED_POOL,
            "apiVersion: apps/v1\nkind: Deployment\nspec: {template: {spec: {nodeSelector: {cloud.google.com/gke-spot: 'true'}}}}\n",
            "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nmetadata: {name: a}\nspec: {cohortName: b}\n",
        ]
    ):
        assert rules(linted(tmp_path / str(number), guide_md=f"```yaml\n{shown}```\n")) == set()


def test_a_page_that_shows_a_whole_pool_is_judged(tmp_path: Path) -> None:
    assert TAINT_RULE in rules(linted(tmp_path, guide_md=f"```yaml\n{WHOLE_POOL}```\n"))


def test_an_error_in_a_fragment_is_reported(tmp_path: Path) -> None:
    quota = "apiVersion: v1\nkind: ResourceQuota\nspec: {hard: {limits.nvidia.com/gpu: 8}}\n"

    assert rules(linted(tmp_path, guide_md=f"```yaml\n{quota}```\n")) == {"quota-key-never-enforced"}


def test_a_class_in_a_template_is_not_reported_as_missing(tmp_path: Path) -> None:
    """As in charts with their own NodePools: aws-samples/karpenter-blueprints and others put the class next to them (2026-11-25)."""
    template = "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata:\n  name: {{ .Values.name }}\nspec: {}\n"
    other = "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: cpu}\nspec: {role: nodes}\n"
    without = linted(tmp_path / "without", pool_yaml=WHOLE_POOL, other_yaml=other)
    report = linted(tmp_path / "with", pool_yaml=WHOLE_POOL, other_yaml=other, chart__templates__class_yaml=template)

    assert "nodepool-references-missing-class" in rules(without)
    assert "nodepool-references-missing-class" not in rules(report)
    assert report.objects == 2
    assert report.skipped[Skipped.TEMPLATE] == 1
