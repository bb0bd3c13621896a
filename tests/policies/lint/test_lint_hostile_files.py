"""Hostile files: each is told of, in bounded time and memory, and the files beside it are judged."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import psutil
import pytest
from lint_runs import TAINT_RULE, UNTAINTED_POOL, found, linted

from policies.lint import file_reading
from policies.lint.configuration import Configuration
from policies.lint.formats import as_json
from policies.lint.run import PAYS_FROM_BYTES, lint, read_file, read_on_all_cores
from policies.lint.yaml_reading import FILE_DOCUMENTS, FILE_VALUES, NODES

if TYPE_CHECKING:
    from pathlib import Path

    from policies.lint.file_reading import Reading

pytestmark = pytest.mark.slow

HEAD = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hostile}\n"

BOMB = b"a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + b"".join(
    b"a%d: &a%d [%s]\n" % (n, n, b", ".join([b"*a%d" % (n - 1)] * 9)) for n in range(1, 40)
)

HOSTILE = {
    "bomb": HEAD + BOMB,
    "nested": HEAD + b"data: " + b"{a: " * 200_000,
    "blocks": HEAD + b"data:\n" + b"- " * 200_000,
    "encoding": HEAD + b"data: {a: \xc3\x28}\n",
    "control": HEAD + b"data: {a: \x07}\n",
    "unclosed": HEAD + b'data: {a: "\n' * 10_000,
    "recursive": HEAD + b"data: &d {again: *d}\n",
    "values": HEAD + b"data: [" + b"1," * 3_000_000 + b"1]\n",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_document_is_a_finding_and_the_rest_of_its_file_and_other_files_are_judged(name: str, tmp_path: Path) -> None:
    (tmp_path / "hostile.yaml").write_bytes(HOSTILE[name] + b"\n---\n" + UNTAINTED_POOL.encode())
    report = linted(tmp_path, pool_yaml=UNTAINTED_POOL)

    [problem] = [each for each in report.open if each.finding.rule == "unreadable-manifest"]
    assert problem.finding.object.kind == "ConfigMap"
    assert {path for path, _, rule in found(report, tmp_path) if rule == TAINT_RULE} == {"hostile.yaml", "pool.yaml"}


def test_a_file_of_100_mb_is_told_of_and_not_read_whole(tmp_path: Path) -> None:
    with (tmp_path / "huge.yaml").open("wb") as file:
        file.write(HEAD)
        file.truncate(100 * 1024 * 1024)
    with (tmp_path / "data.json").open("wb") as file:
        file.truncate(100 * 1024 * 1024)
    (tmp_path / "pool.yaml").write_text(UNTAINTED_POOL)
    # The limit is what holds: with more than 1 GiB the command would end in a MemoryError.
    limited = "import resource; resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30)); from infra.cli.app import main; main()"
    command = [sys.executable, "-c", limited, "lint", str(tmp_path), "--format", "github"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    assert ended.returncode == 1, ended.stderr
    assert "unreadable-manifest" in ended.stdout
    assert TAINT_RULE in ended.stdout
    assert "1 large files that name no Kubernetes object" in ended.stdout


MORE = pytest.mark.nightly(held_by="test_a_file_of_very_many_things_is_read_in_bounded_time_and_memory")


@pytest.mark.parametrize(
    "text,told",
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
def test_a_file_of_very_many_things_is_read_in_bounded_time_and_memory(text: bytes, told: list[str]) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun = time.process_time()
    reading = file_reading.read_text("a.yaml", text)

    assert [problem.message[: len(start)] for problem, start in zip(reading.problems, told, strict=True)] == told
    assert time.process_time() - begun < 60
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1024 * 1024


def test_the_values_of_a_files_documents_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    assert FILE_VALUES >= NODES
    monkeypatch.setattr(file_reading, "FILE_VALUES", 20_000)
    reading = file_reading.read_text("a.yaml", (HEAD + b"data: [" + b"1," * 8_000 + b"1]\n---\n") * 6)

    [problem] = reading.problems
    assert problem.message.startswith(f"it has over {FILE_DOCUMENTS} documents or 20000 values")
    assert len(reading.manifests) == 3


def test_markdown_of_very_many_lines_is_read_too() -> None:
    reading = file_reading.read_text("a.md", b"```yaml\n```\n" * 200_000 + b"```yaml\n" + HEAD + b"```\n")

    assert [manifest.line for manifest in reading.manifests] == [400_002]


def test_a_defect_of_the_reader_is_told_of_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_text: bytes) -> None:
        raise TypeError("hunter2")

    monkeypatch.setattr(file_reading, "documents_in", broken)
    report = linted(tmp_path, pool_yaml=UNTAINTED_POOL)

    assert [each.finding.rule for each in report.open] == ["unreadable-manifest"]
    assert report.open[0].finding.message.startswith("its reader is broken: TypeError in test_lint_hostile_files.py, line ")


def test_a_file_that_ends_its_process_is_told_of_and_the_others_of_its_share_are_read(tmp_path: Path) -> None:
    for number in range(6):
        (tmp_path / f"pool-{number}.yaml").write_text(UNTAINTED_POOL)
    files = [(str(path), PAYS_FROM_BYTES) for path in sorted(tmp_path.iterdir())]
    fatal = files[1][0]
    here = os.getpid()

    def read(path: str) -> Reading:
        if path == fatal and os.getpid() != here:
            os.kill(os.getpid(), signal.SIGKILL)
        return read_file(path)

    whole = read_on_all_cores(files, read, cores=2)

    assert [(problem.path, problem.message.split(",")[0]) for problem in whole.problems] == [(fatal, "the process that read it crashed")]
    assert len(whole.manifests) == 5


def test_an_error_in_one_process_ends_the_others(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(UNTAINTED_POOL)
    here = os.getpid()
    before = psutil.Process().children()

    def read(path: str) -> Reading:
        if os.getpid() == here:
            raise KeyboardInterrupt
        signal.pause()
        return read_file(path)

    with pytest.raises(KeyboardInterrupt):
        read_on_all_cores([(str(tmp_path / "a.yaml"), PAYS_FROM_BYTES)] * 2, read, cores=2)
    assert psutil.Process().children() == before


def test_a_report_is_the_same_to_the_letter_on_one_core_and_on_several(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(40):
        padding = f"# {'x' * 40_000}\n"
        texts = (UNTAINTED_POOL, "kind: [\n", "a: {{ .Values.a }}\n", "apiVersion: v1\nkind: Pod\nmetadata: {name: a, name: b}\n")
        (tmp_path / f"file-{number}.yaml").write_text(padding + texts[number % 4].replace("name: gpu", f"name: gpu-{number}"))
    reports: list[str] = []
    for cores in (1, 2, 5):
        monkeypatch.setattr("policies.lint.run._cores", lambda cores=cores: cores)
        reports.append(as_json(lint([str(tmp_path)], Configuration()), details=True))

    assert reports[0].count(TAINT_RULE) >= 10
    assert reports[1:] == reports[:1] * 2
