"""Hostile files: each is reported, within limits of time and memory, and the other files are judged."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from lint_runs import TAINT_RULE, UNTAINTED_POOL, found, linted

from flexspot.policies.lint import file_reading
from flexspot.policies.lint.yaml_reading import FILE_DOCUMENTS, FILE_VALUES, NODES

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.slow

HEAD = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hostile}\n"


@pytest.mark.parametrize("data", [b"{a: " * 200_000, b"{a: \xc3\x28}"], ids=["nested", "encoding"])
def test_a_hostile_document_is_a_finding_and_the_rest_of_its_file_and_other_files_are_judged(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "hostile.yaml").write_bytes(HEAD + b"data: " + data + b"\n---\n" + UNTAINTED_POOL.encode())
    report = linted(tmp_path, pool_yaml=UNTAINTED_POOL)

    [problem] = [each for each in report.open if each.finding.rule == "unreadable-manifest"]
    assert problem.finding.object.kind == "ConfigMap"
    assert {path for path, _, rule in found(report, tmp_path) if rule == TAINT_RULE} == {"hostile.yaml", "pool.yaml"}


def test_a_file_of_100_mb_is_reported_and_not_read_completely(tmp_path: Path) -> None:
    with (tmp_path / "huge.yaml").open("wb") as file:
        file.write(HEAD)
        file.truncate(100 * 1024 * 1024)
    with (tmp_path / "data.json").open("wb") as file:
        file.truncate(100 * 1024 * 1024)
    (tmp_path / "pool.yaml").write_text(UNTAINTED_POOL)
    # With more than 1 GiB the command would end in a MemoryError.
    limited = "import resource; resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30)); from flexspot.infra.cli.app import main; main()"
    command = [sys.executable, "-c", limited, "lint", str(tmp_path), "--format", "github"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    assert ended.returncode == 1, ended.stderr
    assert "unreadable-manifest" in ended.stdout
    assert TAINT_RULE in ended.stdout
    assert "1 large files that name no Kubernetes object" in ended.stdout


MORE = pytest.mark.nightly(tested_by="test_a_large_file_is_read_in_bounded_time_and_memory")


@pytest.mark.parametrize(
    "text,problems",
    [
        ((HEAD + b"---\n") * (FILE_DOCUMENTS + 10), [f"it has over {FILE_DOCUMENTS} documents"]),
        (HEAD + b"---\n" * (5 * FILE_DOCUMENTS), [f"the file has over {4 * FILE_DOCUMENTS} lines that begin with ---"]),
        (b"---\n" * (5 * FILE_DOCUMENTS), []),
        (b"\n" * (17 << 20) + HEAD, ["it has 17 MiB"]),
        (b"# a\n" * (6 << 20), []),
        pytest.param(b" " * (24 << 20) + b"\n", [], marks=MORE),
        pytest.param(b"%a\n" * (6 << 20), [], marks=MORE),
        pytest.param(b"-" * (24 << 20), [], marks=MORE),
    ],
    ids=["documents", "separators", "separators alone", "empty lines", "comments", "blanks", "directives", "dashes"],
)
def test_a_large_file_is_read_in_bounded_time_and_memory(text: bytes, problems: list[str]) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.process_time()
    reading = file_reading.read_text("a.yaml", text)

    assert [problem.message[: len(start)] for problem, start in zip(reading.problems, problems, strict=True)] == problems
    assert time.process_time() - started < 60
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1024 * 1024


def test_the_values_of_a_files_documents_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    assert FILE_VALUES >= NODES
    monkeypatch.setattr(file_reading, "FILE_VALUES", 20_000)
    reading = file_reading.read_text("a.yaml", (HEAD + b"data: [" + b"1," * 8_000 + b"1]\n---\n") * 6)

    [problem] = reading.problems
    assert problem.message.startswith(f"it has over {FILE_DOCUMENTS} documents or 20000 values")
    assert len(reading.manifests) == 3


def test_markdown_with_many_lines_is_read() -> None:
    reading = file_reading.read_text("a.md", b"```yaml\n```\n" * 200_000 + b"```yaml\n" + HEAD + b"```\n")

    assert [manifest.line for manifest in reading.manifests] == [400_002]


def test_a_defect_of_the_reader_is_reported_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_text: bytes) -> None:
        raise TypeError("hunter2")

    monkeypatch.setattr(file_reading, "documents_in", broken)
    report = linted(tmp_path, pool_yaml=UNTAINTED_POOL)

    assert [each.finding.rule for each in report.open] == ["unreadable-manifest"]
    assert report.open[0].finding.message.startswith("its reader is broken: TypeError in test_lint_hostile_files.py, line ")
