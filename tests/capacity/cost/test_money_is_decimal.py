"""Money never uses floats: in no field, parameter or result of capacity.cost that is called US dollars."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import capacity.cost

FOLDER = Path(capacity.cost.__file__).parent
MODULES = [*sorted(FOLDER.glob("*.py")), FOLDER.parent / "values" / "quantities.py"]


def is_money(name: str) -> bool:
    return "usd" in name.split("_")


def mistyped(source: str) -> list[str]:
    """Names of money whose annotation says float, or lacks Decimal where it has a number."""
    wrong: list[str] = []
    for node in ast.walk(ast.parse(source)):
        named: list[tuple[str, ast.expr | None]] = []
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            named.append((node.target.id, node.annotation))
        if isinstance(node, ast.FunctionDef):
            named += [(each.arg, each.annotation) for each in (*node.args.args, *node.args.kwonlyargs)]
            named.append((node.name, node.returns))
        for name, annotation in named:
            text = "" if annotation is None else ast.unparse(annotation)
            if is_money(name) and ("float" in text or not any(kind in text for kind in ("Decimal", "Usd", "Assumption", "str"))):
                wrong.append(f"{name}: {text}")
    return wrong


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_no_amount_is_a_float(path: Path) -> None:
    assert mistyped(path.read_text()) == []


@pytest.mark.parametrize("source", ["usd: float = 1", "def f(saved_usd: float) -> None: ...", "def spot_usd() -> float: ...", "usd: int"])
def test_a_float_of_money_would_be_found(source: str) -> None:
    assert len(mistyped(source)) == 1


def test_the_modules_are_found() -> None:
    assert {"quantities", "advice", "replay"} <= {path.stem for path in MODULES}
