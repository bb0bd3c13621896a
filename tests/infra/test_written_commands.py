"""Command lines in README and docs, which must be valid, and help texts, which must show options unabbreviated."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from flexspot.infra.cli.app import app

if TYPE_CHECKING:
    from collections.abc import Iterator

CHECKOUT = Path(__file__).resolve().parents[2]
PAGES = [CHECKOUT / "README.md", *sorted(path for path in (CHECKOUT / "docs").rglob("*.md") if "decisions" not in path.parts)]

SHOWN = re.compile(r"^(?: {4}|\t)(?:\$ )?(?:\.venv/bin/)?flexspot (?P<said>[a-z].*)$")
"""A line of a code block, which readers copy as a whole."""

ROW = re.compile(r"^\| `(?:\.venv/bin/)?flexspot (?P<said>[^`]+)` \|")
NAMED = re.compile(r"`(?:\.venv/bin/)?flexspot (?P<said>[a-z][^`]*)`")
"""A command of the README's table (ROW), likewise complete, and one in a sentence (NAMED), which may omit options."""


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield every command and group with its path of names."""
    yield path, command
    for name in getattr(command, "commands", {}):
        yield from commands(command.get_command(None, name), (*path, name))


EVERY = dict(commands(get_command(app)))


def written() -> Iterator[tuple[str, str, bool]]:
    """Yield the place of each command line, its text, and True if it is complete."""
    for page in PAGES:
        text = re.sub(r" *\\\n *", " ", page.read_text(encoding="utf-8"))
        for number, line in enumerate(text.splitlines(), 1):
            where = f"{page.relative_to(CHECKOUT)}:{number}"
            whole = SHOWN.match(line) or ROW.match(line)
            found = [whole] if whole else NAMED.finditer(line)
            yield from ((where, each["said"], whole is not None) for each in found)


def problem(said: str, *, whole: bool) -> str:
    """Return the reason why a command line is invalid. Empty if it is valid."""
    said = re.split(r" [|>#] ?|  +", said)[0]
    whole = whole and not re.search(r"(^| )[.…]", said)
    words = shlex.split(re.sub(r"[\[\]]|\.\.\.|…", " ", said))
    path: tuple[str, ...] = ()
    while words and (*path, words[0]) in EVERY:
        path = (*path, words.pop(0))
    command = EVERY[path]
    if not path:
        return f"there is no command {words[0]}"
    if hasattr(command, "commands"):
        return "it is a group of commands" if whole or words else ""
    context = command.make_context(path[-1], [], resilient_parsing=True)
    if context.ignore_unknown_options:
        return ""
    context.resilient_parsing = False
    try:
        given, _, _ = command.make_parser(context).parse_args(list(words))
    except Exception as error:  # noqa: BLE001 -- typer's own click has its errors in a private module
        return str(error)
    missing = [each.opts[0] for each in command.params if whole and each.required and given.get(each.name) is None]
    return f"{', '.join(missing)} missing" if missing else ""


@pytest.mark.slow
def test_every_documented_command_line_is_accepted() -> None:
    found = list(written())

    assert len(found) > 100
    assert {f"{where}: flexspot {said}": reason for where, said, whole in found if (reason := problem(said, whole=whole))} == {}


@pytest.mark.slow
@pytest.mark.parametrize("path", EVERY, ids=lambda path: " ".join(path) or "flexspot")
def test_help_names_every_option_whole_in_80_columns(path: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")

    long = CliRunner().invoke(app, [*path, "-h"], terminal_width=80)

    assert long.exit_code == 0
    assert EVERY[path].help
    assert max(map(len, long.output.splitlines())) <= 80
    options = [name for each in EVERY[path].params if not getattr(each, "hidden", False) for name in each.opts if name.startswith("--")]
    assert [name for name in options if name not in long.output] == []
    assert "…" not in long.output


def test_help_has_a_short_and_a_long_option() -> None:
    long, short = (CliRunner().invoke(app, ["lab", "start", option]).output for option in ("--help", "-h"))

    assert long == short


def test_the_version_is_that_of_the_package() -> None:
    shown = CliRunner().invoke(app, ["--version"])

    assert re.fullmatch(r"flexspot \d+\.\d+\.\d+\n", shown.output)
