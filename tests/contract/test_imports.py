"""Allowed imports between folders; DESIGN's arrow points one way."""

from __future__ import annotations

import ast
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]

FOLDERS = ("capacity", "components", "policies", "infra", "lab")

ALLOWED: dict[str, set[str]] = {
    "capacity": set(),
    "components": {"capacity"},
    "policies": {"capacity"},
    "lab": {"capacity", "components", "policies", "infra"},
    "infra": {"capacity", "components", "policies"},
    "infra.cli": {"capacity", "components", "policies", "infra", "lab"},
    "__main__": {"infra.cli"},
    "program": {"infra"},
}


def owner_of(module: str) -> str | None:
    """Return the folder of a module. None for one that is not Flexspot's."""
    if not module.startswith("flexspot."):
        return None
    inside = module.removeprefix("flexspot.")
    return "infra.cli" if inside.startswith("infra.cli") else inside.partition(".")[0]


def modules() -> list[Path]:
    return sorted(path for folder in FOLDERS for path in (CHECKOUT / folder / "flexspot").rglob("*.py"))


@cache
def imports_of(source: str) -> list[tuple[str, bool]]:
    """Yield the imported modules, each with whether the import is at module level and not for type checking alone."""
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
            # `from flexspot.infra import cli` imports flexspot.infra.cli too.
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        found += [(name, node not in typing_only and node not in lazy) for name in names]
    return found


def violations(module: str, source: str) -> list[str]:
    owner = owner_of(module)
    assert owner is not None
    problems: list[str] = []
    for name, eager in imports_of(source):
        target = owner_of(name)
        if target in {None, owner}:
            continue
        if target not in ALLOWED[owner]:
            problems.append(f"{module} imports {name}")
        elif owner == "infra.cli" and target == "lab" and eager:
            problems.append(f"{module} imports {name} when it is loaded; infra.cli imports lab inside functions")
    return problems


def name_of(path: Path) -> str:
    """Return the module's name: its path below its source root."""
    return ".".join(path.relative_to(CHECKOUT).with_suffix("").parts[1:]).removesuffix(".__init__")


def test_each_module_imports_only_what_its_folder_may() -> None:
    found = [problem for path in modules() for problem in violations(name_of(path), path.read_text())]

    assert found == []


def test_an_import_against_the_arrow_would_be_found() -> None:
    assert violations("flexspot.capacity.cost.items", "from flexspot.infra.declaring.program import main") != []
    assert violations("flexspot.infra.cli.lab", "from flexspot.lab.home import LabHome") != []
    assert violations("flexspot.infra.cli.lab", "def f():\n    from flexspot.lab.home import LabHome") == []


def test_no_modules_import_one_another_in_a_circle() -> None:
    """Imports for type checking count too."""
    sources = {name_of(path): path.read_text() for path in modules()}

    def imported(name: str) -> set[str]:
        named = [each for each, _ in imports_of(sources[name]) if each in sources]
        # `from package import module` means the package itself only where the name is no module.
        return {each for each in named if not any(other.startswith(f"{each}.") for other in named)} - {name}

    TopologicalSorter({name: imported(name) for name in sources}).prepare()
