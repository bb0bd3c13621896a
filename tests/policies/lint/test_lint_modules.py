"""The linter on the YAML of the projects that the lab uses: it does not fail, and all findings are right."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from bench_lint import MODULES, module_folder

from flexspot.policies.lint.configuration import Configuration
from flexspot.policies.lint.run import lint

if TYPE_CHECKING:
    from pathlib import Path

    from flexspot.policies.lint.report import LintReport

pytestmark = pytest.mark.engine

# Each was checked in its file: these use kueue.x-k8s.io/v1beta1, which v0.19 serves but marks as deprecated.
REVIEWED = {
    ("kwok", "test/kwokctl/kueue-case.yaml", "deprecated-kueue-api"),
}

# Examples in Markdown that today's servers would reject or warn about. Each was checked in its file.
REVIEWED_IN_MARKDOWN = {
    # `image` occurs twice in one container of each of its four examples.
    ("jobset", "keps/262-ConfigurableFailurePolicy/README.md", "duplicate-key"),
    # Images without a tag in examples.
    ("jobset", "keps/463-ElasticJobsets/README.md", "image-not-pinned"),
    ("jobset", "keps/572-stateful-jobset/README.md", "image-not-pinned"),
    ("jobset", "keps/672-serial-job-execution/README.md", "image-not-pinned"),
    # `spec.requirements` belongs below spec.template.spec.
    ("karpenter", "designs/capacity-reservations.md", "unknown-field"),
    # A proposal's queue without namespaceSelector: Kueue would admit no work.
    ("kueue", "keps/2941-DRA/README.md", "queue-admits-no-namespace"),
    # A field that was never released.
    ("kueue", "keps/10765-workload-priority-class-defaulting/README.md", "unknown-field"),
    # v1beta1 and v1alpha2.
    ("kueue", "keps/3258-delayed-admission-check-retries/README.md", "deprecated-kueue-api"),
    ("kueue", "keps/83-workload-preemption/README.md", "deprecated-kueue-api"),
    # A Job has no spec.priorityClassName; its pods have it.
    ("kueue", "keps/973-workload-priority/README.md", "unknown-field"),
}


def found(report: LintReport, folder: Path) -> set[tuple[str, str, str]]:
    assert not [each.finding.message for each in report.undecided if each.defect]
    return {(folder.name.partition("@")[0], each.path.removeprefix(f"{folder}/"), each.finding.rule) for each in report.open}


def of(folder: Path, reviewed: set[tuple[str, str, str]]) -> set[tuple[str, str, str]]:
    return {each for each in reviewed if each[0] == folder.name.partition("@")[0]}


OTHERS = [
    pytest.param(module, marks=pytest.mark.nightly(tested_by="test_every_finding_on_the_yaml_of_a_module_is_one_that_was_reviewed"))
    for module in MODULES
    if module != "sigs.k8s.io/kueue"
]


@pytest.mark.parametrize("module", ["sigs.k8s.io/kueue", *OTHERS])
def test_every_finding_on_the_yaml_of_a_module_is_one_that_was_reviewed(module: str) -> None:
    folder = module_folder(module, MODULES[module])
    report = lint([str(folder)], Configuration(exclude=("*.md",), folder=folder))

    assert found(report, folder) == of(folder, REVIEWED)
    assert report.objects >= 5


@pytest.mark.nightly(tested_by="test_every_finding_on_the_yaml_of_a_module_is_one_that_was_reviewed")
@pytest.mark.parametrize("module", MODULES)
def test_every_finding_on_the_markdown_of_a_module_is_one_that_was_reviewed(module: str) -> None:
    folder = module_folder(module, MODULES[module])
    reports = [lint([str(path)], Configuration()) for path in sorted(folder.rglob("*.md"))]

    assert set[tuple[str, str, str]]().union(*(found(report, folder) for report in reports)) == of(folder, REVIEWED_IN_MARKDOWN)
