"""How wheels are made of the repository's folders: as parts of one package, so that nothing of it is called `components` or `policies`.

Each module's imports of these folders are given the package's name, as Maven's shade plugin relocates classes; all else is as it is here.
An editable install is the checkout itself. There are two: `flexspot`, which has all, and `flexspot-lint` (policies/lint/pyproject.toml),
which has what the linter's command leads to.
"""

from __future__ import annotations

import ast
import shutil
import tomllib
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

CHECKOUT = Path(__file__).resolve().parent

PACKAGE = "flexspot"
FOLDERS = ("capacity", "components", "policies", "infra", "lab")
PROGRAMS = ("policies/pack",)
"""Python without the ending of a module."""

PLUGINS = ("policies/PulumiPolicy.yaml", "infra/PulumiPlugin.yaml")
"""What Pulumi reads to start a folder as a program of its own."""

_IN_CHECKOUT = "toolchain: uv\n    virtualenv: ../.venv"
# From site-packages/flexspot/FOLDER up to the environment. Pulumi's toolchain for pip asks no more of it than bin/python.
_INSTALLED = "toolchain: pip\n    virtualenv: ../../../../.."

_LEFT_OUT = ("__pycache__", "*.pyc", ".environment")

LINTER = "flexspot_lint"
LINTER_NEEDS = ("promql-parser", "pyyaml", "rich", "typer")
"""What of the platform's dependencies the linter needs, too."""

LINTER_EXTRAS = ("own-rules",)
_LINTER_COMMAND = "infra.cli.lint"
_LINTER_PARTS = ("policies.rules", "policies.inventory.reading")
"""Folders whose modules are found by looking into them."""

_LINTER_DATA = (
    "capacity/catalog/aws.yaml",
    "capacity/catalog/gcp.yaml",
    "capacity/catalog/capacity_types/eks.yaml",
    "policies/inventory/fields.json",
    "policies/metric_families.yaml",
)
_LINTER_ENTRY = """\
\"\"\"The `flexspot-lint` command, also as `python -m flexspot_lint`.\"\"\"

import gc
import os

# A short run, of which nearly all that is made is kept: collecting costs a tenth of its start. Typer's pydantic would look for plugins
# in all that is installed, which costs as much.
gc.disable()
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

from flexspot_lint.infra.cli.lint import main  # noqa: E402

if __name__ == "__main__":
    main()
"""


class RelocationHook(BuildHookInterface[Any]):
    """Puts relocated copies of the folders into a wheel."""

    PLUGIN_NAME = "custom"
    _copies: ExitStack | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Writes the copies to a folder of its own, from which the wheel takes them."""
        if version == "editable":
            return
        with ExitStack() as copies:
            made = copies.enter_context(TemporaryDirectory(prefix="flexspot-wheel-"))
            root = Path(self.root)
            if root == CHECKOUT / "policies" / "lint":
                relocate_linter(CHECKOUT, Path(made))
                build_data["force_include"][made] = LINTER
            else:
                relocate(root, Path(made))
                build_data["force_include"][made] = PACKAGE
            self._copies = copies.pop_all()

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002 -- hatchling's own
        """Takes that folder away."""
        if self._copies is not None:
            self._copies.close()


def relocate(root: Path, target: Path) -> None:
    """Copies the folders and the package's own modules from `root` to `target`, which becomes the package."""
    shutil.copytree(root / PACKAGE, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns(*_LEFT_OUT))
    for name in FOLDERS:
        shutil.copytree(root / name, target / name, ignore=shutil.ignore_patterns(*_LEFT_OUT))
    for path in [*target.rglob("*.py"), *(target / each for each in PROGRAMS)]:
        path.write_text(relocated(path.read_text(encoding="utf-8"), str(path.relative_to(target))), encoding="utf-8")
    for path in (target / each for each in PLUGINS):
        text = path.read_text(encoding="utf-8")
        if _IN_CHECKOUT not in text:
            raise ValueError(f"{path.relative_to(target)} does not name the checkout's environment as {_IN_CHECKOUT!r}")
        path.write_text(text.replace(_IN_CHECKOUT, _INSTALLED), encoding="utf-8")


class LinterNeedsHook(MetadataHookInterface):
    """Gives the linter's distribution of the platform's dependencies those that it has, too: each version is written in one place."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Fills in `dependencies` and `optional-dependencies`."""
        project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        needed = [each for each in project["dependencies"] if each.partition("~")[0].partition("=")[0] in LINTER_NEEDS]
        if len(needed) != len(LINTER_NEEDS):
            raise ValueError(f"pyproject.toml has not all of {', '.join(LINTER_NEEDS)} with a version")
        metadata["dependencies"] = needed
        metadata["optional-dependencies"] = {name: project["optional-dependencies"][name] for name in LINTER_EXTRAS}


def relocate_linter(root: Path, target: Path) -> None:
    """Copies the modules that the linter's command leads to from `root` to `target`, with the data that they read."""
    for module in linter_modules(root):
        path = _file_of(root, module)
        assert path is not None, f"{module} is one that was found"  # noqa: S101 -- a defect of this file
        copy = target / path.relative_to(root)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(relocated(path.read_text(encoding="utf-8"), str(path.relative_to(root)), LINTER), encoding="utf-8")
    for data in _LINTER_DATA:
        (target / data).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / data, target / data)
    (target / "__init__.py").write_text('"""The linter of Flexspot."""\n', encoding="utf-8")
    (target / "__main__.py").write_text(_LINTER_ENTRY, encoding="utf-8")
    (target / "py.typed").write_text("", encoding="utf-8")


def linter_modules(root: Path) -> list[str]:
    """The repository's modules that the linter's command leads to, those that are imported in functions too, but not for types alone."""
    waiting = [_LINTER_COMMAND]
    for package in _LINTER_PARTS:
        waiting += [f"{package}.{path.stem}" for path in (root / package.replace(".", "/")).glob("*.py") if path.stem != "__init__"]
    found: set[str] = set()
    while waiting:
        module = waiting.pop()
        path = _file_of(root, module)
        if module in found or path is None:
            continue
        found.add(module)
        # A package is loaded before its modules.
        waiting.append(module.rpartition(".")[0])
        waiting += _imported(ast.parse(path.read_text(encoding="utf-8")))
    return sorted(found)


def _imported(tree: ast.Module) -> list[str]:
    """The modules of the repository's folders that a module imports when it runs, and the names in them, which may be modules."""
    for_types = {
        below
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for each in node.body
        for below in ast.walk(each)
    }
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node not in for_types and node.level == 0 and node.module and _is_own(node.module):
            found += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return found


def _file_of(root: Path, module: str) -> Path | None:
    """The file of a module of the repository's; None for what is none."""
    if not module or not _is_own(module):
        return None
    place = root.joinpath(*module.split("."))
    return next((path for path in (place.with_suffix(".py"), place / "__init__.py") if path.is_file()), None)


def relocated(source: str, name: str, package: str = PACKAGE) -> str:
    """A module with its imports of the folders named as parts of the package.

    Raises ValueError for `import infra.x`: it binds the folder's own name, so that every use of that would have to change, too.
    """
    lines = source.splitlines(keepends=True)
    for node in ast.walk(ast.parse(source, name)):
        if isinstance(node, ast.Import) and (found := [each.name for each in node.names if _is_own(each.name)]):
            raise ValueError(f"{name}, line {node.lineno}: import {found[0]} cannot be relocated; write `from ... import ...`")
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module and _is_own(node.module):
            line, begun = lines[node.lineno - 1], node.col_offset
            # The first `from` of the statement stands where it begins, and its module behind it on the same line.
            lines[node.lineno - 1] = line[:begun] + line[begun:].replace(node.module, f"{package}.{node.module}", 1)
    return "".join(lines)


def _is_own(module: str) -> bool:
    return module.partition(".")[0] in FOLDERS
