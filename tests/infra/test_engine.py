"""Number of engine starts for a run of a stack."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from user_projects import project

from flexspot.infra.deployment.engine import StackRun
from flexspot.infra.project import project_here

if TYPE_CHECKING:
    from pathlib import Path

STATE = '{"version": 3, "checkpoint": {"latest": {"resources": []}}}'


@pytest.fixture
def run(tmp_path: Path) -> StackRun:
    """Return a stack with a file backend, and a command line that records its arguments and writes a new stack's state."""
    command = tmp_path / "root" / "bin" / "pulumi"
    command.parent.mkdir(parents=True)
    state = tmp_path / "state" / ".pulumi" / "stacks" / "acme" / "dev.json"
    state.parent.mkdir(parents=True)
    command.write_text(f"#!/bin/sh\necho \"$@\" >> {tmp_path}/started\necho '{STATE}' > {state}\n")
    command.chmod(0o700)
    folder = project(tmp_path / "acme", "runtime: python\nstackConfigDir: stacks\n")
    (folder / "stacks").mkdir(exist_ok=True)
    (folder / "stacks" / "Pulumi.dev.yaml").write_text("config: {}\n")
    return StackRun("dev", tmp_path / "copy", f"file://{tmp_path}/state", tmp_path / "root", project=project_here(folder))


def started(run: StackRun) -> list[str]:
    written = run.folder.parent / "started"
    return written.read_text().splitlines() if written.exists() else []


def test_a_stack_in_a_file_backend_is_created_once_and_then_needs_no_engine_start(run: StackRun) -> None:
    run.settle(print, {})
    run.settle(print, {})

    [only] = started(run)
    assert only == "--non-interactive stack init dev"
