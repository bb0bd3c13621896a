"""Which folder may import which; DESIGN's arrow points one way."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]

FOLDERS = ("capacity", "components", "policies", "infra", "lab")

ALLOWED: dict[str, set[str]] = {
    "capacity": set(),
    "components": {"capacity"},
    "policies": {"capacity"},
    "lab": {"capacity", "components", "policies", "infra"},
    "infra": {"capacity", "components", "policies"},
    "infra.cli": {"capacity", "components", "policies", "infra", "lab"},
}


def owner_of(module: str) -> str:
    return "infra.cli" if module.startswith("infra.cli") else module.partition(".")[0]


def modules() -> list[Path]:
    return sorted(path for folder in FOLDERS for path in (CHECKOUT / folder).rglob("*.py"))


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


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(CHECKOUT)))
def test_a_module_imports_only_what_its_folder_may(path: Path) -> None:
    module = ".".join(path.relative_to(CHECKOUT).with_suffix("").parts)

    assert violations(module, path.read_text()) == []


@pytest.mark.parametrize(
    "module,source",
    [
        ("capacity.plan", "import components.gke"),
        ("policies.core", "from components import gke"),
        ("components.eks.cluster", "import infra.settings"),
        ("infra.program", "def f():\n    import lab.cluster"),
        ("lab.engine", "from infra import cli"),
        ("infra.cli.app", "from lab.cluster import Cluster"),
    ],
)
def test_a_forbidden_import_is_found(module: str, source: str) -> None:
    assert len(violations(module, source)) >= 1


@pytest.mark.parametrize(
    "module,source",
    [
        ("infra.cli.app", "def f():\n    from lab.cluster import Cluster"),
        ("infra.cli.app", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from lab.cluster import Cluster"),
        ("lab.engine", "import infra.program"),
        ("components.gke", "import capacity.plan, json"),
    ],
)
def test_an_allowed_import_is_not(module: str, source: str) -> None:
    assert violations(module, source) == []


def test_the_runtime_imports_none_of_the_other_folders() -> None:
    for path in (CHECKOUT / "runtime").rglob("*.py"):
        assert not [name for name, _ in imports_of(path.read_text()) if name.partition(".")[0] in FOLDERS]
