"""State files after the engine was killed, and other runs of the engine with the same backend."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from flexspot.infra.deployment.state_file import may_have_pending_operations, other_runs, repair_state_file

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

WHOLE = json.dumps({"version": 3, "checkpoint": {"latest": {"resources": []}}})
OLDER = json.dumps({"version": 3, "checkpoint": {"latest": {"resources": [1]}}})


@pytest.fixture
def state(tmp_path: Path) -> Path:
    folder = tmp_path / ".pulumi" / "stacks" / "flexspot"
    folder.mkdir(parents=True)
    return folder / "local.json"


def fixed(state: Path) -> str | None:
    return repair_state_file(f"file://{state.parents[3]}", "flexspot", "local")


@pytest.mark.parametrize("left", ["", WHOLE[:20], "null"], ids=["nothing", "a part", "no state"])
def test_the_copy_replaces_a_state_that_was_cut_off_and_nothing_is_deleted(left: str, state: Path) -> None:
    state.write_text(left)
    state.with_name("local.json.bak").write_text(OLDER)

    message = fixed(state)

    assert message is not None
    assert "local.json.cut-off" in message
    assert state.read_text() == OLDER
    assert state.with_name("local.json.cut-off").read_text() == left
    assert fixed(state) is None


def test_a_whole_state_is_kept_whatever_its_copy_is(state: Path) -> None:
    state.write_text(WHOLE)
    state.with_name("local.json.bak").write_text(OLDER)

    assert fixed(state) is None
    assert state.read_text() == WHOLE


@pytest.mark.parametrize("copy", [None, "", "[1]"])
def test_without_a_whole_copy_nothing_is_touched(copy: str | None, state: Path) -> None:
    state.write_text(WHOLE[:20])
    if copy is not None:
        state.with_name("local.json.bak").write_text(copy)

    assert fixed(state) is None
    assert state.read_text() == WHOLE[:20]


@pytest.mark.parametrize("left", ["", '{"user.content_type": "text'], ids=["nothing", "a part"])
def test_attributes_that_were_cut_off_are_removed_and_the_state_is_kept(left: str, state: Path) -> None:
    state.write_text(WHOLE)
    cut_off = [state.with_name("local.json.attrs"), state.with_name("local.json.bak.attrs"), state.parents[2] / "meta.yaml.attrs"]
    for path in cut_off:
        path.write_text(left)
    whole = state.with_name("other.json.attrs")
    whole.write_text('{"md5": "0KpY"}')

    assert fixed(state) is None

    assert [path for path in cut_off if path.exists()] == []
    assert (state.read_text(), whole.read_text()) == (WHOLE, '{"md5": "0KpY"}')


@pytest.mark.parametrize("backend", [None, "s3://bucket", "https://api.pulumi.com"])
def test_a_state_in_another_backend_is_not_repaired(backend: str | None) -> None:
    assert repair_state_file(backend, "flexspot", "local") is None


def test_a_stack_that_was_never_deployed_has_no_state_to_repair(state: Path) -> None:
    assert fixed(state) is None


OPEN_STEP = {"resources": [], "pending_operations": [{"type": "creating", "resource": {"urn": "urn:pulumi:local::flexspot::a:b:C::d"}}]}


@pytest.mark.parametrize(
    "latest", [{"resources": []}, {"resources": [], "pending_operations": []}, {"resources": [], "pending_operations": None}]
)
def test_a_state_file_without_pending_operations_is_not_open(latest: dict[str, object], state: Path) -> None:
    state.write_text(json.dumps({"version": 3, "checkpoint": {"latest": latest}}))

    assert not may_have_pending_operations(f"file://{state.parents[3]}", "flexspot", "local")


@pytest.mark.parametrize(
    "content",
    [
        {"version": 3, "checkpoint": {"latest": OPEN_STEP}},
        {"version": 4, "checkpoint": {"latest": {"resources": []}}},
        {"version": 3, "checkpoint": {"latest": None}},
        {"version": 3, "checkpoint": {"latest": {"operations": []}}},
        [],
        None,
    ],
    ids=["begun", "another form", "never deployed", "without resources", "no state", "no file"],
)
def test_a_state_with_open_steps_or_of_another_form_may_have_pending_operations(content: object, state: Path) -> None:
    if content is not None:
        state.write_text(json.dumps(content))

    assert may_have_pending_operations(f"file://{state.parents[3]}", "flexspot", "local")
    assert may_have_pending_operations("s3://states", "flexspot", "local")
    assert may_have_pending_operations(None, "flexspot", "local")


@contextmanager
def engine(folder: Path, operation: str, backend_url: str) -> Generator[int]:
    """Start a process that looks like a running engine, and yield its id. It ends with the context."""
    program = folder / "pulumi"
    program.write_text("#!/bin/sh\necho at work\nread _\n")
    program.chmod(0o755)
    environment = {**os.environ, "PULUMI_BACKEND_URL": backend_url}
    with subprocess.Popen([program, operation], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
        process.communicate()


def lock(backend: Path, holder: int) -> Path:
    path = backend / ".pulumi" / "locks" / "organization" / "flexspot" / "local" / "lock.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"pid": holder, "hostname": socket.gethostname()}))
    return path


def gone() -> int:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    return ended.pid


def test_an_engine_that_released_its_lock_and_still_writes_is_another_run(tmp_path: Path) -> None:
    backend = f"file://{tmp_path}"
    with engine(tmp_path, "up", backend) as running:
        assert other_runs(backend) == {running}
    assert other_runs(backend) == set()


@pytest.mark.parametrize("operation, elsewhere", [("preview", ""), ("up", "/another")])
def test_an_engine_that_only_reads_or_uses_another_backend_is_not_another_run(tmp_path: Path, operation: str, elsewhere: str) -> None:
    with engine(tmp_path, operation, f"file://{tmp_path}{elsewhere}"):
        assert other_runs(f"file://{tmp_path}") == set()


def test_the_holder_of_a_lock_is_another_run_and_a_stale_lock_is_removed(tmp_path: Path) -> None:
    path = lock(tmp_path, os.getpid())
    assert other_runs(f"file://{tmp_path}") == {os.getpid()}

    path.write_text(json.dumps({"pid": gone(), "hostname": socket.gethostname()}))
    assert other_runs(f"file://{tmp_path}") == set()
    assert not path.exists()


@pytest.mark.parametrize("backend_url", [None, "https://api.pulumi.com", "s3://state"])
def test_a_backend_that_is_not_in_files_has_no_known_runs(backend_url: str | None) -> None:
    assert other_runs(backend_url) == set()
