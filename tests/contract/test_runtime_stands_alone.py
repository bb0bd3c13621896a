"""flexspot_runtime needs nothing but the standard library, apart from the modules that an extra is for."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

RUNTIME = Path(__file__).resolve().parents[2] / "runtime"

PACKAGE = "flexspot_runtime"

# Module: the extra that brings what it imports, and the packages that it may import besides.
OF_AN_EXTRA = {
    "fsspec_storage": ("fsspec", {"fsspec"}),
    "sqs_queue": ("sqs", {"boto3", "botocore", "mypy_boto3_sqs"}),
    "pubsub_queue": ("pubsub", {"google"}),
    "torch": ("torch", {"torch"}),
    "torch_data": ("torch", {"torch"}),
    "torch_storage": ("torch", {"torch"}),
    "transformers": ("transformers", {"torch", "transformers"}),
    "lightning": ("lightning", {"torch", "lightning"}),
}


def modules() -> list[Path]:
    return sorted((RUNTIME / PACKAGE).glob("*.py"))


def packages_of(source: str) -> set[str]:
    """Return the packages that a module imports anywhere."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return {name.partition(".")[0] for name in names}


@pytest.mark.parametrize("path", modules(), ids=lambda path: path.stem)
def test_a_module_imports_the_standard_library_and_what_its_extra_brings(path: Path) -> None:
    _, brought = OF_AN_EXTRA.get(path.stem, ("", set[str]()))

    assert packages_of(path.read_text()) - sys.stdlib_module_names - {PACKAGE} <= brought


def test_nothing_is_required_and_every_extra_is_declared() -> None:
    project = tomllib.loads((RUNTIME / "pyproject.toml").read_text())["project"]

    assert project["dependencies"] == []
    assert set(project["optional-dependencies"]) == {extra for extra, _ in OF_AN_EXTRA.values()}


def test_the_core_is_loaded_by_a_python_that_has_nothing_else() -> None:
    """-I and -S: neither the environment's packages nor this checkout can be imported."""
    core = [f"{PACKAGE}.{path.stem}" for path in modules() if path.stem not in OF_AN_EXTRA and path.stem != "__init__"]
    code = f"import sys, importlib; sys.path.insert(0, {str(RUNTIME)!r}); [importlib.import_module(name) for name in {core!r}]"

    subprocess.run([sys.executable, "-I", "-S", "-c", code], check=True)
