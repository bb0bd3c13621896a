"""The commands of the guide to services do what it says."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from infra.cli.app import app

pytestmark = pytest.mark.slow

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "services.md"

MAKER = {"queue-workers": "Job", "model-server": "Deployment", "notebook": "CronJob", "model-cache": "PersistentVolumeClaim"}


def commands_of_the_guide() -> list[list[str]]:
    """What stands behind `$ flexspot`, without what it is piped into."""
    text = GUIDE.read_text(encoding="utf-8").replace("\\\n", " ")
    lines = (line.strip().removeprefix("$ flexspot ") for line in text.splitlines() if line.strip().startswith("$ flexspot "))
    return [shlex.split(line.partition(" | ")[0]) for line in lines]


@pytest.mark.parametrize("command", commands_of_the_guide(), ids=lambda command: f"{command[1]} {command[3]}")
def test_each_command_renders_the_kind_that_the_guide_is_about(command: list[str]) -> None:
    answer = CliRunner().invoke(app, command)

    assert answer.exit_code == 0
    assert MAKER[command[1]] in {each["kind"] for each in yaml.safe_load_all(answer.output)}


def test_the_guide_shows_every_kind_of_service() -> None:
    assert {command[1] for command in commands_of_the_guide()} == MAKER.keys()
