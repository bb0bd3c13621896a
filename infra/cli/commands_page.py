"""The reference of the command line; `python -m infra.cli.commands_page` writes docs/commands-reference.md from the commands themselves."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from typer.main import get_command

from capacity.values.shown_text import anchor, table_cell
from infra.cli.app import app

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).resolve().parents[2] / "docs" / "commands-reference.md"

_ABOUT = (
    "Every command with its arguments and options; written by `python -m infra.cli.commands_page` from the commands themselves, which say "
    "the same with `--help`. Exit codes of all: 0 fine, 1 findings or an unmet expectation, 2 bad usage or input."
)
_WORDS = {"STR": "TEXT", "INT": "NUMBER", "FLOAT": "NUMBER", "PATH": "PATH"}
"""What typer calls kinds of values, as people do."""


def page() -> str:
    """The page's text."""
    found = [(f"flexspot {' '.join(path)}".rstrip(), command) for path, command in _commands(get_command(app))]
    rows = [f"| [`{name}`](#{anchor(name)}) | {table_cell(_first(command.help))} |" for name, command in found if not _is_group(command)]
    lines = ["# Commands", _ABOUT, "\n".join(["| command | does |", "|---|---|", *rows])]
    for name, command in found:
        lines += [f"## {name}", *_paragraphs(command.help), *_usage(name, command), *_tables(command)]
    return "\n\n".join(lines) + "\n"


def _commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command that help shows, each group before what is in it."""
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        if not inner.hidden:
            yield from _commands(inner, (*path, name))


def _is_group(command: Any) -> bool:
    return hasattr(command, "commands")


def _first(text: str) -> str:
    return text.partition("\n\n")[0]


def _paragraphs(text: str) -> list[str]:
    return [table_cell(each) for each in text.split("\n\n")]


def _usage(name: str, command: Any) -> list[str]:
    """How it is called, with what must be given; nothing for a group, of which each command says it."""
    if _is_group(command):
        return []
    given = [
        f"{each.opts[0]} {_takes(each)}"
        for each in command.params
        if each.param_type_name == "option" and each.required and not getattr(each, "hidden", False)
    ]
    arguments = [_argument(each) for each in command.params if each.param_type_name == "argument"]
    return ["    " + " ".join([name, *given, "[OPTIONS]", *arguments])]


def _argument(each: Any) -> str:
    name = each.metavar or each.name.upper()
    name = f"{name}..." if each.nargs < 0 and "..." not in name else name
    return name if each.required else f"[{name}]"


def _tables(command: Any) -> list[str]:
    shown = [each for each in command.params if not getattr(each, "hidden", False)]
    arguments = [f"| `{_argument(each)}` | {table_cell(each.help or '')} |" for each in shown if each.param_type_name == "argument"]
    options = [
        f"| {_names(each)} | {_code(_takes(each))}{' several times' if each.multiple else ''} | {_default(each)} "
        f"| {table_cell(each.help or '')} |"
        for each in shown
        if each.param_type_name == "option"
    ]
    tables = [["| argument | is |", "|---|---|", *arguments]] if arguments else []
    tables += [["| option | takes | default | does |", "|---|---|---|---|", *options]] if options else []
    return ["\n".join(each) for each in tables]


def _names(option: Any) -> str:
    """The option's names, the long one first, and what turns it off."""
    opts: list[str] = option.opts
    return ", ".join(map(_code, [*sorted(opts, key=len, reverse=True), *option.secondary_opts]))


def _takes(option: Any) -> str:
    """What stands behind the option: its choices, its own word, or its kind. Nothing for a flag."""
    if option.is_flag:
        return ""
    if choices := getattr(option.type, "choices", None):
        words = ", ".join(str(getattr(each, "value", each)) for each in choices)
    elif getattr(option.type, "min", None) is not None or getattr(option.type, "max", None) is not None:
        words = f"{_bound(option.type.min)}{_bound(option.type.max, before=' to ')}"
    else:
        words = option.metavar or _WORDS.get(option.type.name.upper(), option.type.name.upper())
    return words


def _bound(value: float | None, before: str = "") -> str:
    return "" if value is None else f"{before}{value:g}"


def _default(option: Any) -> str:
    if option.required:
        return "**required**"
    if option.default is None or option.default is False or option.default == [] or callable(option.default):
        return ""
    if option.is_flag:
        return "on"
    return _code(str(getattr(option.default, "value", option.default)))


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
