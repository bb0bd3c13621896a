"""The rooms of three folders: docs/layout.md lists them from the ground up, and none imports a room that is listed below it."""

from __future__ import annotations

import re

import pytest
from test_imports import CHECKOUT, imports_of, name_of

LAYOUT = (CHECKOUT / "docs" / "layout.md").read_text()


def rooms_of(folder: str) -> list[str]:
    """Return the rooms of a folder as modules, in the order of the page's table."""
    _, _, section = LAYOUT.partition(f"## The rooms of `{folder}/`\n")
    listed: list[str] = re.findall(r"^\| `([\w/.]+)`", section.partition("\n## ")[0], re.MULTILINE)
    return [f"flexspot.{folder}.{room.removesuffix('.py').removesuffix('/').replace('/', '.')}" for room in listed]


def room_of(module: str, rooms: list[str]) -> str | None:
    """Return the innermost room that a module is in."""
    inside = [room for room in rooms if module == room or module.startswith(f"{room}.")]
    return max(inside, key=len, default=None)


def looks_up(module: str, source: str, rooms: list[str]) -> list[str]:
    """Return the imports of a module from a room above its own, including those for types alone."""
    own = room_of(module, rooms)
    if own is None:
        return []
    above = rooms[rooms.index(own) + 1 :]
    return [f"{module} imports {name}" for name, _ in imports_of(source) if room_of(name, rooms) in above]


@pytest.mark.parametrize("folder", ["capacity", "policies", "infra"])
def test_each_module_is_in_a_room_of_the_page(folder: str) -> None:
    rooms = rooms_of(folder)
    assert len(rooms) > 5
    modules = [name_of(path) for path in sorted((CHECKOUT / folder / "flexspot" / folder).rglob("*.py"))]

    assert [module for module in modules if module != f"flexspot.{folder}" and room_of(module, rooms) is None] == []
    assert [room for room in rooms if not any(room_of(module, rooms) == room for module in modules)] == []


@pytest.mark.parametrize("folder", ["capacity", "policies", "infra"])
def test_no_room_imports_one_above_it(folder: str) -> None:
    rooms = rooms_of(folder)
    paths = sorted((CHECKOUT / folder / "flexspot" / folder).rglob("*.py"))

    assert [found for path in paths for found in looks_up(name_of(path), path.read_text(), rooms)] == []


def test_an_import_that_leads_up_would_be_found() -> None:
    rooms = ["flexspot.capacity.values", "flexspot.capacity.plan", "flexspot.capacity.plan.checks"]

    assert len(looks_up("flexspot.capacity.values.names", "import flexspot.capacity.plan.model", rooms)) == 1
    assert looks_up("flexspot.capacity.plan.model", "def f():\n    from flexspot.capacity.plan.checks import names", rooms) != []
    assert looks_up("flexspot.capacity.plan.checks.classes", "from flexspot.capacity.plan.model import Plan", rooms) == []
