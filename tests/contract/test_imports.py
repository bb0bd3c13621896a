"""Which folder may import which; DESIGN's arrow points one way."""

from __future__ import annotations

import ast
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]

FOLDERS = ("capacity", "components", "policies", "infra", "lab", "flexspot")

ALLOWED: dict[str, set[str]] = {
    "capacity": set(),
    "components": {"capacity"},
    "policies": {"capacity"},
    "lab": {"capacity", "components", "policies", "infra"},
    "infra": {"capacity", "components", "policies"},
    "infra.cli": {"capacity", "components", "policies", "infra", "lab"},
    "flexspot": {"infra", "infra.cli"},
}


def owner_of(module: str) -> str:
    return "infra.cli" if module.startswith("infra.cli") else module.partition(".")[0]


def modules() -> list[Path]:
    return sorted(path for folder in FOLDERS for path in (CHECKOUT / folder).rglob("*.py"))


@cache
def imports_of(source: str) -> list[tuple[str, bool]]:
    """The imported modules, each with whether the import is at module level and not for type checking alone."""
    tree = ast.parse(source)
    typing_only = {
        node
        for test in ast.walk(tree)
        if isinstance(test, ast.If) and ast.unparse(test.test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}
        for node in ast.walk(test)
    }
    lazy = {
        node for function in ast.walk(tree) if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) for node in ast.walk(function)
    }
    found: list[tuple[str, bool]] = []
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            # `from infra import cli` imports infra.cli too.
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        found += [(name, node not in typing_only and node not in lazy) for name in names]
    return found


def violations(module: str, source: str) -> list[str]:
    owner = owner_of(module)
    problems: list[str] = []
    for name, eager in imports_of(source):
        target = owner_of(name)
        if target.partition(".")[0] not in FOLDERS or target == owner:
            continue
        if target not in ALLOWED[owner]:
            problems.append(f"{module} imports {name}")
        elif owner == "infra.cli" and target == "lab" and eager:
            problems.append(f"{module} imports {name} when it is loaded; infra.cli imports lab inside functions")
    return problems


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(CHECKOUT).with_suffix("").parts).removesuffix(".__init__")


def test_each_module_imports_only_what_its_folder_may() -> None:
    found = [problem for path in modules() for problem in violations(name_of(path), path.read_text())]

    assert found == []


def test_no_module_binds_a_folders_own_name_so_that_wheels_can_give_it_another() -> None:
    """hatch_build.py renames what stands after `from`; of `import infra.x` every use would have to change, too."""
    bound = [
        f"{name_of(path)}: import {alias.name}"
        for path in modules()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name.partition(".")[0] in FOLDERS
    ]

    assert bound == []


def test_no_modules_import_one_another_in_a_circle() -> None:
    """For type checking alone neither."""
    sources = {name_of(path): path.read_text() for path in modules()}

    def imported(name: str) -> set[str]:
        named = [each for each, _ in imports_of(sources[name]) if each in sources]
        # `from package import module` means the package itself only where the name is no module.
        return {each for each in named if not any(other.startswith(f"{each}.") for other in named)} - {name}

    TopologicalSorter({name: imported(name) for name in sources}).prepare()
