"""Other runs of the engine over the same backend, with and without a lock."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from infra.state_file import other_runs

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path


@contextmanager
def engine(folder: Path, operation: str, backend_url: str) -> Generator[int]:
    """A process that looks like the engine at work, for as long as the context lasts."""
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


def test_an_engine_that_gave_its_lock_back_and_still_writes_is_another_run(tmp_path: Path) -> None:
    backend = f"file://{tmp_path}"
    with engine(tmp_path, "up", backend) as running:
        assert other_runs(backend) == {running}
    assert other_runs(backend) == set()


@pytest.mark.parametrize("operation, elsewhere", [("preview", ""), ("up", "/another")])
def test_an_engine_that_only_looks_or_works_elsewhere_is_none(tmp_path: Path, operation: str, elsewhere: str) -> None:
    with engine(tmp_path, operation, f"file://{tmp_path}{elsewhere}"):
        assert other_runs(f"file://{tmp_path}") == set()


def test_the_holder_of_a_lock_is_another_run_and_a_lock_whose_holder_is_gone_is_removed(tmp_path: Path) -> None:
    path = lock(tmp_path, os.getpid())
    assert other_runs(f"file://{tmp_path}") == {os.getpid()}

    path.write_text(json.dumps({"pid": gone(), "hostname": socket.gethostname()}))
    assert other_runs(f"file://{tmp_path}") == set()
    assert not path.exists()


@pytest.mark.parametrize("backend_url", [None, "https://api.pulumi.com", "s3://state"])
def test_a_backend_that_is_not_in_files_has_its_own_ways(backend_url: str | None) -> None:
    assert other_runs(backend_url) == set()
