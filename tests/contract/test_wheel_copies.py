"""What a wheel is made of is copied, and nothing of the copies is left; hatchling itself is where wheels are built."""

from __future__ import annotations

import runpy
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]


class HookInterface:
    """Hatchling's, as far as the hook uses it."""

    def __init__(self, root: str) -> None:
        self.root = root

    def __class_getitem__(cls, _: Any) -> type[HookInterface]:
        return cls


@pytest.fixture
def hook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The class of the hook; temporary folders are made in `tmp_path`."""
    interface = ModuleType("hatchling.builders.hooks.plugin.interface")
    monkeypatch.setattr(interface, "BuildHookInterface", HookInterface, raising=False)
    monkeypatch.setitem(sys.modules, interface.__name__, interface)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return runpy.run_path(str(CHECKOUT / "hatch_build.py"))["RelocationHook"]


def test_the_copies_are_there_for_the_build_and_gone_behind_it(hook: Any, tmp_path: Path) -> None:
    made, build_data = hook(str(CHECKOUT)), dict[str, dict[str, str]](force_include={})

    made.initialize("standard", build_data)
    [(folder, package)] = build_data["force_include"].items()
    assert (Path(folder) / "infra" / "project.py").read_text().count("from flexspot.capacity.") == 1
    made.finalize("standard", build_data, "a.whl")

    assert package == "flexspot"
    assert list(tmp_path.iterdir()) == []


def test_copies_that_cannot_be_made_leave_nothing(hook: Any, tmp_path: Path) -> None:
    made = hook(str(tmp_path / "no-checkout"))

    with pytest.raises(FileNotFoundError):
        made.initialize("standard", {"force_include": {}})

    assert list(tmp_path.iterdir()) == []


def test_an_editable_install_copies_nothing(hook: Any, tmp_path: Path) -> None:
    made, build_data = hook(str(CHECKOUT)), dict[str, dict[str, str]](force_include={})

    made.initialize("editable", build_data)
    made.finalize("editable", build_data, "a.whl")

    assert (build_data, list(tmp_path.iterdir())) == ({"force_include": {}}, [])
