"""Tables of the error messages of settings, components and the command line, one table per room, for a reader to review.

The texts are read from the source, so a message that no test provokes is in the table too. A value that only a run knows is written as
`{name}`. `python tests/messages.py` writes the tables of tests/contract/messages.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final, TypeAlias

from git_repositories import CHECKOUT, tracked

from flexspot.capacity.values.errors import SettingsProblem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FOLDER: Final = CHECKOUT / "tests" / "contract" / "messages"

ROOMS: Final = {
    "settings": ("capacity/flexspot/capacity/settings", "capacity/flexspot/capacity/plan", "capacity/flexspot/capacity/workloads"),
    "components": ("components/flexspot/components",),
    "command line": ("infra/flexspot/infra",),
}
"""The source folders of each table."""

_RECORD: Final = SettingsProblem.__name__
_ERRORS: Final = ("Error", "BadParameter", _RECORD)
"""Endings of the classes whose calls make a message."""
_SEVERAL: Final = " / "
_OTHER: Final = "{...}"

_Texts: TypeAlias = "Mapping[str, list[ast.expr]]"
"""The values that a function assigns to its local names."""


def tables() -> Mapping[str, str]:
    """Return the text of each table's page, by file name."""
    return {f"{room.replace(' ', '-')}.md": _table(room, places) for room, places in ROOMS.items()}


def messages(*places: str) -> Iterator[tuple[str, str]]:
    """Yield the place and the text of each message in these folders, in the order of the source. A place is `module.function`."""
    files = [path for path in tracked(*places) if path.suffix == ".py"]
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in files}
    functions = [each for tree in trees.values() for each in ast.walk(tree) if isinstance(each, ast.FunctionDef)]
    makers = {each.name for each in functions if _makes_a_message(each)}
    for path, tree in trees.items():
        seen: set[ast.AST] = set()
        # The innermost function comes last in a breadth-first walk.
        for function in reversed([each for each in ast.walk(tree) if isinstance(each, (ast.FunctionDef, ast.Lambda))]):
            assigned = _assigned(function)
            for call in ast.walk(function):
                if isinstance(call, ast.Call) and call not in seen and _name(call.func).endswith((*_ERRORS, *makers)):
                    seen.update(ast.walk(call))
                    yield from ((f"{path.stem}.{getattr(function, 'name', '')}", text) for text in _texts(call, makers, assigned))


def _table(room: str, places: tuple[str, ...]) -> str:
    rows = sorted(set(messages(*places)))
    bar = r"\|"
    lines = [f"| `{place}` | {text.replace('|', bar)} |" for place, text in rows]
    title = f"# Error messages: {room}\n\nWritten by `python tests/messages.py` from the source. `{{name}}` stands for a value.\n\n"
    return title + "\n".join(["| place | message |", "|---|---|", *lines]) + "\n"


def _makes_a_message(function: ast.FunctionDef) -> bool:
    return function.returns is not None and ast.unparse(function.returns).endswith((*_ERRORS, "NoReturn"))


def _texts(call: ast.Call, makers: set[str], assigned: _Texts) -> Iterator[str]:
    calls = [each for each in ast.walk(call) if each is not call and isinstance(each, ast.Call)]
    if inner := [each for each in calls if _name(each.func).endswith((_RECORD, *makers))]:
        for each in inner:
            yield from _texts(each, makers, assigned)
        return
    given = [*call.args, *(each.value for each in call.keywords if each.arg not in {"rule", "exit_code"})]
    parts = [_text(each, assigned) for each in given]
    if _name(call.func) == _RECORD:
        path, value, problem, allowed = (*parts, "", "", "", "")[:4]
        yield str(SettingsProblem(path, value, problem, allowed))
    elif words := [each for each in parts if " " in each]:
        yield " → ".join(words)


def _text(node: ast.expr, assigned: _Texts) -> str:  # noqa: PLR0911 -- one per form of an expression
    match node:
        case ast.Constant(value=str(text)):
            return " ".join(text.split())
        case ast.JoinedStr():
            return "".join(str(each.value) if isinstance(each, ast.Constant) else _short(each) for each in node.values)
        case ast.IfExp():
            return _SEVERAL.join(filter(None, (_text(each, assigned) for each in (node.body, node.orelse))))
        case ast.BinOp(op=ast.Add()):
            return _text(node.left, assigned) + _text(node.right, assigned)
        case ast.Name(id=name) if values := assigned.get(name):
            return _SEVERAL.join(dict.fromkeys(_text(each, {}) for each in values))
        case ast.Call(func=ast.Name(id="repr" | "str"), args=[value]):
            return _short(value)
        case _:
            return _short(node)


def _short(node: ast.expr) -> str:
    match node:
        case ast.FormattedValue():
            return _short(node.value)
        case ast.Name() | ast.Attribute():
            return f"{{{_name(node)}}}"
        case ast.Call(func=ast.Attribute(attr="join"), args=[value]) | ast.Call(func=ast.Name(), args=[value]):
            return _short(value)
        case _:
            return _OTHER


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _assigned(function: ast.AST) -> _Texts:
    texts: dict[str, list[ast.expr]] = {}
    for each in ast.walk(function):
        match each:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant() | ast.JoinedStr() | ast.IfExp() | ast.BinOp() as value):
                texts.setdefault(name, []).append(value)
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
                for name, value in zip(names, values, strict=False):
                    if isinstance(name, ast.Name) and isinstance(value, (ast.Constant, ast.JoinedStr)):
                        texts.setdefault(name.id, []).append(value)
            case _:
                pass
    return texts


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in tables().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
