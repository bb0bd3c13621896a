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
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What hatch_build.py declares; temporary folders are made in `tmp_path`."""
    for module, name in (
        ("hatchling.builders.hooks.plugin.interface", "BuildHookInterface"),
        ("hatchling.metadata.plugin.interface", "MetadataHookInterface"),
    ):
        interface = ModuleType(module)
        monkeypatch.setattr(interface, name, HookInterface, raising=False)
        monkeypatch.setitem(sys.modules, module, interface)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return runpy.run_path(str(CHECKOUT / "hatch_build.py"))


@pytest.fixture
def hook(build: dict[str, Any]) -> Any:
    """The class of the hook."""
    return build["RelocationHook"]


def test_the_copies_are_there_for_the_build_and_gone_behind_it(hook: Any, tmp_path: Path) -> None:
    made, build_data = hook(str(CHECKOUT)), dict[str, dict[str, str]](force_include={})

    made.initialize("standard", build_data)
    [(folder, package)] = build_data["force_include"].items()
    assert (Path(folder) / "infra" / "project.py").read_text().count("from flexspot.capacity.") == 1
    made.finalize("standard", build_data, "a.whl")

    assert package == "flexspot"
    assert list(tmp_path.iterdir()) == []


def test_an_editable_install_copies_nothing(hook: Any, tmp_path: Path) -> None:
    made, build_data = hook(str(CHECKOUT)), dict[str, dict[str, str]](force_include={})

    made.initialize("editable", build_data)
    made.finalize("editable", build_data, "a.whl")

    assert (build_data, list(tmp_path.iterdir())) == ({"force_include": {}}, [])


def test_the_linter_leads_to_nothing_of_the_platform(build: dict[str, Any]) -> None:
    """Models of settings take a tenth of a second each to make; Pulumi and the clouds' SDKs are not there at all."""
    modules: list[str] = build["linter_modules"](CHECKOUT)
    heavy = (
        "capacity.settings",
        "capacity.plan",
        "capacity.workloads",
        "capacity.catalog.machines",
        "components",
        "lab",
        "policies.engine",
    )

    assert [each for each in modules if each.startswith(heavy)] == []
    assert {"infra.cli.lint", "policies.lint.run", "policies.own_rules.evaluation", "policies.rules.ami_not_pinned"} <= set(modules)


def test_the_linter_needs_what_the_platform_has_of_it_too(build: dict[str, Any]) -> None:
    metadata: dict[str, Any] = {}
    build["LinterNeedsHook"](str(CHECKOUT / "policies" / "lint")).update(metadata)

    assert [each.partition("~")[0] for each in metadata["dependencies"]] == ["promql-parser", "pyyaml", "rich", "typer"]
    assert list(metadata["optional-dependencies"]) == ["own-rules"]


def test_the_linter_is_copied_under_its_own_name(build: dict[str, Any], tmp_path: Path) -> None:
    made, build_data = build["RelocationHook"](str(CHECKOUT / "policies" / "lint")), dict[str, dict[str, str]](force_include={})

    made.initialize("standard", build_data)
    [(folder, package)] = build_data["force_include"].items()
    run = (Path(folder) / "policies" / "lint" / "run.py").read_text()
    there = {str(path.relative_to(folder)) for path in Path(folder).rglob("*") if path.is_file()}
    made.finalize("standard", build_data, "a.whl")

    assert package == "flexspot_lint"
    assert "from flexspot_lint.policies.core import" in run
    assert "from policies" not in run
    assert {"__main__.py", "py.typed", "policies/inventory/fields.json", "capacity/catalog/aws.yaml"} <= there
    assert not [each for each in there if each.startswith(("components", "lab", "flexspot"))]
    assert list(tmp_path.iterdir()) == []
