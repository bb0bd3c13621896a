"""`flexspot init` in this process, with the answers that each cloud needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml
from typer.testing import CliRunner

from flexspot.infra.cli.app import app

if TYPE_CHECKING:
    from pathlib import Path

GKE = ("--cloud", "gke", "--owner", "ml-platform", "--team", "research", "--account", "acme-ai-dev", "--prod-account", "acme-ai-prod")
EKS = ("--cloud", "eks", "--owner", "ml-platform", "--team", "research", "--account", "111122223333")
LOCAL = ("--cloud", "local", "--owner", "ml-platform", "--team", "research")
COMMANDS = {"gke": GKE, "eks": EKS, "local": LOCAL}


def init(folder: Path, *arguments: str, **changed: str | None) -> str:
    """Return the command's output. `changed` replaces the value of an option, or omits it for None."""
    options: list[str] = []
    for name, value in zip(arguments[::2], arguments[1::2], strict=True):
        kept = changed.pop(name.removeprefix("--").replace("-", "_"), value)
        options += [] if kept is None else [name, kept]
    for name, value in changed.items():
        options += [] if value is None else [f"--{name.replace('_', '-')}", value]
    result = CliRunner().invoke(app, ["init", str(folder), *options], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def stacks_of(folder: Path) -> dict[str, dict[str, Any]]:
    return {path.stem.removeprefix("Pulumi."): yaml.safe_load(path.read_text()) for path in sorted((folder / "stacks").glob("*.yaml"))}
