"""Rules about the two tiers of tests: what `make test` leaves to the night has a cheaper test, and neither tier outgrows its ceiling."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

CHECKOUT = Path(__file__).resolve().parents[2]
TESTS = CHECKOUT / "tests"


@dataclass
class Module:
    """The test functions of one module: all, those that run nightly alone, and the names that its nightly marks give as `tested_by`."""

    tests: list[str] = field(default_factory=list[str])
    nightly: set[str] = field(default_factory=set[str])
    tested_by: list[str] = field(default_factory=list[str])
    unexplained: int = 0


def read_module(source: str) -> Module:
    """Return what a module's source says about its tests and their nightly marks."""
    tree, module = ast.parse(source), Module()
    marks = {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign) and _has_nightly_mark(node.value, set())
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
    for function in functions:
        module.tests.append(function.name)
        # A mark inside `parametrize` is of one parameter: the others stay in `make test`.
        own = [each for each in function.decorator_list if not _is_parametrize(each)]
        if "pytestmark" in marks or any(_has_nightly_mark(each, marks) for each in own):
            module.nightly.add(function.name)
    for call in filter(_is_nightly_call, ast.walk(tree)):
        assert isinstance(call, ast.Call)
        reasons = [word.value.value for word in call.keywords if word.arg == "tested_by" and isinstance(word.value, ast.Constant)]
        module.tested_by += [name.strip() for reason in reasons for name in str(reason).split(",")]
        module.unexplained += not reasons
    return module


def _is_nightly_call(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "nightly"


def _has_nightly_mark(node: ast.expr, names: set[str]) -> bool:
    return any(_is_nightly_call(each) or (isinstance(each, ast.Name) and each.id in names) for each in ast.walk(node))


def _is_parametrize(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "parametrize"


def test_every_nightly_test_names_a_test_of_every_change_that_holds_its_behaviour() -> None:
    modules = {path.name: read_module(path.read_text(encoding="utf-8")) for path in TESTS.rglob("test_*.py")}
    in_every_change = {name for module in modules.values() for name in module.tests if name not in module.nightly}

    missing = {name: sorted({*module.tested_by} - in_every_change) for name, module in modules.items()}
    assert {name: unknown for name, unknown in missing.items() if unknown} == {}
    assert {name: module.unexplained for name, module in modules.items() if module.unexplained} == {}


WORKERS = 2
"""The Makefile runs tests on control planes with so many."""

CEILINGS = yaml.safe_load((Path(__file__).with_name("ceilings.yaml")).read_text(encoding="utf-8"))


def test_snapshots_stay_small_enough_to_review() -> None:
    lines = Counter(
        {
            str(path.relative_to(TESTS)): len(path.read_text(encoding="utf-8").splitlines())
            for path in TESTS.rglob("snapshots/**/*")
            if path.is_file() and path.suffix != ".py"
        }
    )

    assert [(name, length) for name, length in lines.most_common() if length > CEILINGS["snapshot_lines"]["largest"]] == []
    assert lines.total() <= CEILINGS["snapshot_lines"]["all"]


_A_TEST = re.compile(r"^\s+tests/\S+::test_", re.MULTILINE)
_A_SHARED_LAB = re.compile(r"^\s*SETUP\s+S lab\b", re.MULTILINE)
_A_LAB_OF_ITS_OWN = re.compile(
    r"^\s*SETUP\s+M stack_lab \(fixtures used: tmp_path_factory"  # a lab of a module; where it is the shared one, that is the fixture used
    r"|test_control_plane\.py::.*fixtures used:.*\bown\b"
    r"|test_command_line\.py::",
    re.MULTILINE,
)


@pytest.mark.slow
def test_few_tests_of_every_change_run_on_control_planes_and_they_start_few() -> None:
    files = [str(path) for path in TESTS.rglob("test_*.py") if "mark.lab" in path.read_text(encoding="utf-8")]
    options = ["--setup-plan", "-q", "-n", "0", "-p", "no:cacheprovider", "-m", "lab and not nightly"]
    plan = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *files], cwd=CHECKOUT, capture_output=True, text=True, check=True
    ).stdout

    # Each worker has a shared lab; the plan is that of one.
    started = WORKERS * len(_A_SHARED_LAB.findall(plan)) + len(_A_LAB_OF_ITS_OWN.findall(plan))
    tests = len(_A_TEST.findall(plan))
    assert started > WORKERS, plan
    assert started <= CEILINGS["control_planes"]["started"]
    assert 0 < tests <= CEILINGS["control_planes"]["tests"]


def test_each_tier_was_measured_below_its_ceiling() -> None:
    """`make bench` measures: a test does not assert how long something takes."""
    over = {name: tier for name, tier in CEILINGS["cpu"].items() if tier["measured"] > tier["at_most"]}

    assert over == {}
