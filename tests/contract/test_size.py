"""Size limits of the product: code lines of each folder, files, names with two meanings, and what `flexspot --help` loads."""

from __future__ import annotations

import ast
import io
import subprocess
import sys
import tokenize
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

import yaml
from git_repositories import CHECKOUT, tracked

CEILINGS = yaml.safe_load(Path(__file__).with_name("ceilings.yaml").read_text(encoding="utf-8"))["product"]
NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


@cache
def product_files() -> tuple[str, ...]:
    names = (path.relative_to(CHECKOUT).as_posix() for path in tracked("*.py"))
    return tuple(name for name in names if not name.startswith("tests/"))


def code_lines(source: str) -> int:
    """Return how many lines hold code: no blank lines, comments or strings that only describe."""
    described: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            described.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    lines = {line for each in tokens if each.type not in NO_CODE for line in range(each.start[0], each.end[0] + 1)}
    return len(lines - described)


def test_no_folder_has_more_code_lines_than_its_ceiling() -> None:
    lines: Counter[str] = Counter()
    for name in product_files():
        lines[name.partition("/")[0] if "/" in name else "."] += code_lines((CHECKOUT / name).read_text(encoding="utf-8"))

    assert {
        folder: (count, CEILINGS["code_lines"][folder]) for folder, count in lines.items() if count > CEILINGS["code_lines"][folder]
    } == {}


def test_there_are_no_more_files_than_the_ceiling() -> None:
    assert 0 < len(product_files()) <= CEILINGS["files"]


def test_a_class_name_stands_for_one_thing() -> None:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for name in product_files():
        for node in ast.walk(ast.parse((CHECKOUT / name).read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                found[node.name].add(name)

    several = {name: sorted(modules) for name, modules in found.items() if len(modules) > 1}
    assert sorted(several) == CEILINGS["class_names_in_several_modules"], several


def test_help_loads_few_modules() -> None:
    program = (
        "import sys; sys.argv = ['flexspot', '--help']\ntry:\n from flexspot.__main__ import main; main()\nfinally: print(len(sys.modules))"
    )
    shown = subprocess.run([sys.executable, "-c", program], cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout

    assert "Usage: flexspot" in shown
    assert int(shown.split()[-1]) <= CEILINGS["help_modules"]
