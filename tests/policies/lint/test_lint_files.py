"""Files as the linter reads them: which it reads, which objects it finds, and what it reports as skipped."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from lint_runs import CONFIG_MAP, TAINT_RULE, UNTAINTED_POOL, WHOLE_POOL, found, linted, rules

from flexspot.capacity.values.errors import ExitCode, ExplainedError
from flexspot.policies.lint.configuration import Configuration
from flexspot.policies.lint.file_reading import Skipped
from flexspot.policies.lint.run import lint

if TYPE_CHECKING:
    from pathlib import Path


POOL_AS_JSON = json.dumps(yaml.safe_load(UNTAINTED_POOL), indent="\t")


def taint_findings(report_folder: Path, **files: str | bytes) -> list[tuple[str, int]]:
    return [(path, line) for path, line, rule in found(linted(report_folder, **files), report_folder) if rule == TAINT_RULE]


def test_every_document_of_every_file_below_a_folder_is_judged_at_its_own_lines(tmp_path: Path) -> None:
    found_at = taint_findings(
        tmp_path,
        a_yaml=f"{CONFIG_MAP}---\n# a pool\n{UNTAINTED_POOL}",
        deep__er__b_yml=UNTAINTED_POOL,
        c_json=POOL_AS_JSON,
        d_txt=UNTAINTED_POOL,
    )

    # The line is that of spec.template.spec, the nearest existing parent of spec.template.spec.taints.
    assert found_at == [("a.yaml", 14), ("c.json", 12), ("deep/er/b.yml", 9)]


def test_a_named_file_is_read_whatever_its_ending(tmp_path: Path) -> None:
    (tmp_path / "rendered.out").write_text(UNTAINTED_POOL)

    report = lint([str(tmp_path / "rendered.out")], Configuration())

    assert TAINT_RULE in rules(report)


def test_items_of_a_list_are_separate_objects(tmp_path: Path) -> None:
    indented = UNTAINTED_POOL.replace("\n", "\n    ").rstrip()
    typed = "".join(indented.splitlines(keepends=True)[2:]).replace("    metadata", "metadata", 1)
    whole = f"apiVersion: v1\nkind: List\nitems:\n  - {indented}\n"
    of_type = f"apiVersion: karpenter.sh/v1\nkind: NodePoolList\nitems:\n  - {typed}\n"

    assert taint_findings(tmp_path, list_yaml=whole, typed_yaml=of_type) == [("list.yaml", 12), ("typed.yaml", 10)]


def test_only_fences_of_markdown_are_judged(tmp_path: Path) -> None:
    text = f"# Pools\n\n```yaml\n{WHOLE_POOL}```\n\n{UNTAINTED_POOL}\n```yaml\napiVersion: v1\nkind: Pod\nspec: [...\n```\n"
    report = linted(tmp_path, guide_md=text)

    assert [(path, line) for path, line, rule in found(report, tmp_path) if rule == TAINT_RULE] == [("guide.md", 12)]
    assert report.skipped[Skipped.EXAMPLE] == 1


def test_documents_without_kubernetes_objects_are_counted(tmp_path: Path) -> None:
    report = linted(
        tmp_path,
        values_yaml="replicas: 1\nreplicas: 2\n",
        list_yaml="- apiVersion: v1\n",
        chart_yaml="apiVersion: v2\nname: chart\n",
        template_yaml="apiVersion: v1\nkind: Pod\nspec:\n{{- range .Values.pods }}\n  a: b\n{{- end }}\n",
        unquoted_yaml="apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {nodeName: {{ .Values.node }} }\n",
        broken_yaml="# about apiVersion\na: [\n",
        picture_yaml=b"\x89PNG\0\0\0",
    )

    assert found(report, tmp_path) == []
    assert report.skipped == {Skipped.NOT_KUBERNETES: 3, Skipped.TEMPLATE: 2, Skipped.NOT_YAML: 1, Skipped.BINARY: 1}


def test_rendered_helm_and_other_encodings_are_read(tmp_path: Path) -> None:
    helm = f"---\n# Source: chart/templates/empty.yaml\n---\n# Source: chart/templates/pool.yaml\n{UNTAINTED_POOL}"
    crlf = UNTAINTED_POOL.replace("\n", "\r\n")

    found_at = taint_findings(
        tmp_path,
        helm_yaml=helm,
        crlf_yaml=crlf,
        bom_yaml=b"\xef\xbb\xbf" + UNTAINTED_POOL.encode(),
        wide_yaml=UNTAINTED_POOL.encode("utf-16"),
    )

    assert found_at == [("bom.yaml", 9), ("crlf.yaml", 9), ("helm.yaml", 13), ("wide.yaml", 9)]


def test_json_that_is_not_yaml_is_read_as_json(tmp_path: Path) -> None:
    text = POOL_AS_JSON.replace('"name": "gpu"', '"name": "gpu", "annotations": {"icon": "\\ud83d\\ude00"}')

    assert taint_findings(tmp_path, pool_json=text) == [("pool.json", 1)]


def test_an_undecided_finding_is_placed_at_its_object_and_with_details_at_its_field(tmp_path: Path) -> None:
    linted(tmp_path, pool_yaml=UNTAINTED_POOL.replace("nvidia.com/gpu: 8", "nvidia.com/gpu: ${GPUS}"))

    def lines(*, details: bool) -> set[int]:
        report = lint([str(tmp_path)], Configuration(), details=details)
        assert "gpu-pool-without-limit" not in {each.finding.rule for each in report.findings}
        return {each.line for each in report.undecided if each.finding.rule == "gpu-pool-without-limit"}

    assert lines(details=False) == {1}
    assert lines(details=True) == {UNTAINTED_POOL[: UNTAINTED_POOL.index("nvidia.com/gpu: 8")].count("\n") + 1}


def test_each_file_is_read_once_and_links_to_folders_are_not_followed(tmp_path: Path) -> None:
    linted(tmp_path, a__pool_yaml=UNTAINTED_POOL)
    (tmp_path / "a" / "loop").symlink_to(tmp_path / "a")
    (tmp_path / "a" / "again.yaml").symlink_to(tmp_path / "a" / "pool.yaml")
    (tmp_path / "a" / "self.yaml").symlink_to(tmp_path / "a" / "self.yaml")
    (tmp_path / "a" / "folder.yaml").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "a" / "pipe.yaml")
    linted(tmp_path, _git__pool_yaml=UNTAINTED_POOL, node_modules__pool_yaml=UNTAINTED_POOL)
    (tmp_path / "_git").rename(tmp_path / ".git")

    report = lint([str(tmp_path), str(tmp_path / "a" / "pool.yaml")], Configuration())

    assert len([each for each in report.open if each.finding.rule == TAINT_RULE]) == 1
    assert report.skipped == {Skipped.LINK: 2, Skipped.NOT_A_FILE: 1}


def test_excluded_files_are_counted_unless_they_are_named(tmp_path: Path) -> None:
    configuration = Configuration(exclude=("tests/*",), folder=tmp_path)
    report = linted(tmp_path, configuration, tests__fixtures__a_yaml=UNTAINTED_POOL)
    named = lint([str(tmp_path / "tests" / "fixtures" / "a.yaml")], configuration)

    assert (found(report, tmp_path), report.skipped) == ([], {Skipped.EXCLUDED: 1})
    assert TAINT_RULE in rules(named)


def test_a_missing_path_is_bad_usage(tmp_path: Path) -> None:
    with pytest.raises(ExplainedError, match="there is no file or folder") as error:
        lint([str(tmp_path / "gone.yaml")], Configuration())

    assert error.value.exit_code is ExitCode.BAD_USAGE


@pytest.mark.slow
def test_folders_nested_deeper_than_the_recursion_limit_are_walked(tmp_path: Path) -> None:
    # The system's mkdir and rm, because Python's recurse once per level.
    deep = tmp_path.joinpath(*["d"] * 1_200)
    subprocess.run(["/bin/mkdir", "-p", deep], check=True)
    try:
        assert ("pool.yaml", 9, TAINT_RULE) in found(linted(tmp_path, pool_yaml=UNTAINTED_POOL), tmp_path)
    finally:
        subprocess.run(["/bin/rm", "-rf", tmp_path / "d"], check=True)


def test_a_folder_that_cannot_be_listed_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "locked").mkdir()
    scandir = os.scandir

    def refusing(folder: str) -> Any:
        if folder.endswith("locked"):
            raise PermissionError(13, "Permission denied")
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", refusing)
    report = linted(tmp_path, pool_yaml=UNTAINTED_POOL)

    assert ("locked", 1, "unreadable-manifest") in found(report, tmp_path)
    assert ("pool.yaml", 9, TAINT_RULE) in found(report, tmp_path)
