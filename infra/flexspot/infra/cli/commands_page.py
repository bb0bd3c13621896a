"""Generator of docs/commands-reference.md from the commands themselves (`python -m flexspot.infra.cli.commands_page`)."""

from __future__ import annotations

from pathlib import Path

import typer
from typer.cli import get_docs_for_click
from typer.main import get_command

from flexspot.infra.cli.app import app

PAGE = Path(__file__).resolve().parents[4] / "docs" / "commands-reference.md"

_ABOUT = (
    "Every command with its arguments and options, as `--help` describes them. `python -m flexspot.infra.cli.commands_page` writes "
    "this page. Exit codes of all: 0 fine, 1 findings or an unmet expectation, 2 bad usage or input."
)


def page() -> str:
    """Return the page's text."""
    command = get_command(app)
    context = typer.Context(command, info_name="flexspot", **command.context_settings)
    described = get_docs_for_click(obj=command, ctx=context, name="flexspot", title="Commands")
    return described.rstrip().replace("\n\n", f"\n\n{_ABOUT}\n\n", 1) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
