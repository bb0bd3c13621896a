"""How a wheel is made of the repository's folders: as parts of one package, so that nothing of it is called `components` or `policies`.

Each module's imports of these folders are given the package's name, as Maven's shade plugin relocates classes; all else is as it is here.
An editable install is the checkout itself.
"""

from __future__ import annotations

import ast
import shutil
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE = "flexspot"
FOLDERS = ("capacity", "components", "policies", "infra", "lab")
PROGRAMS = ("policies/pack",)
"""Python without the ending of a module."""

PLUGINS = ("policies/PulumiPolicy.yaml", "components/PulumiPlugin.yaml")
"""What Pulumi reads to start a folder as a program of its own."""

_IN_CHECKOUT = "toolchain: uv\n    virtualenv: ../.venv"
# From site-packages/flexspot/FOLDER up to the environment. Pulumi's toolchain for pip asks no more of it than bin/python.
_INSTALLED = "toolchain: pip\n    virtualenv: ../../../../.."

_LEFT_OUT = ("__pycache__", "*.pyc")


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
            relocate(Path(self.root), Path(made))
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


def relocated(source: str, name: str) -> str:
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
            lines[node.lineno - 1] = line[:begun] + line[begun:].replace(node.module, f"{PACKAGE}.{node.module}", 1)
    return "".join(lines)


def _is_own(module: str) -> bool:
    return module.partition(".")[0] in FOLDERS
