"""Rules about the repository itself: what a file may hold, how long it may be, that every test runs."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

from git_repositories import CHECKOUT, tracked

LINES_AT_MOST = 500

# A path of one machine: a home folder, a temporary folder, or a place that only a build machine has. GKE's nodes have a user of that name.
MACHINE_PATH = re.compile(r"(?<![\w.:/<$}-])/(?:root|home/(?!kubernetes/bin)\w+|Users/\w+|tmp|work|opt/wheels)/[\w.-]+")


# A comment that hides what a type checker says; and one that names the rule and the reason.
HIDDEN = re.compile(r"#\s*(?:type|pyrefly|pyright|mypy|ty):\s*ignore.*")
EXPLAINED = re.compile(r"# pyrefly: ignore\[[a-z-]+(?:, [a-z-]+)*\] -- \S.*")


def test_no_python_file_is_longer_than_a_screenful_of_screens() -> None:
    lengths = {str(path.relative_to(CHECKOUT)): len(path.read_text().splitlines()) for path in tracked("*.py")}

    assert {name: length for name, length in lengths.items() if length > LINES_AT_MOST} == {}


def test_nothing_names_a_path_of_one_machine() -> None:
    found: dict[str, list[str]] = {}
    for path in tracked():
        if path.suffix in {".sum", ".lock"} or path == Path(__file__).resolve():
            continue
        if paths := MACHINE_PATH.findall(path.read_text(encoding="utf-8", errors="ignore")):
            found[str(path.relative_to(CHECKOUT))] = paths

    assert found == {}


def test_every_file_with_tests_has_a_name_that_pytest_takes_and_no_other_file_has() -> None:
    """A file that is not called test_*.py, or lies elsewhere, would silently not run; of two with one name only one could be imported.

    What needs PyTorch is called real_*.py, which `make test` passes by and tests/pytorch/pytest.ini, for `make test-torch`, takes.
    """
    holding_tests = [path for path in tracked("*.py") if has_tests(path)]
    of_torch = [path for path in holding_tests if path.is_relative_to(CHECKOUT / "tests" / "pytorch")]
    others = [path for path in holding_tests if path not in of_torch]

    assert [str(path) for path in others if not (path.name.startswith("test_") and path.is_relative_to(CHECKOUT / "tests"))] == []
    assert [str(path) for path in of_torch if not path.name.startswith("real_")] == []
    assert "python_files = real_*.py" in (CHECKOUT / "tests" / "pytorch" / "pytest.ini").read_text(encoding="utf-8")
    assert sorted(path.name for path in holding_tests) == sorted({path.name for path in holding_tests})


def has_tests(path: Path) -> bool:
    """Return whether a module defines what pytest would collect as a test, at its top or in a class."""
    bodies = [ast.parse(path.read_text(encoding="utf-8")).body]
    bodies += [node.body for node in bodies[0] if isinstance(node, ast.ClassDef)]
    return any(isinstance(node, ast.FunctionDef) and node.name.startswith("test_") for body in bodies for node in body)


def test_the_type_checker_reads_every_python_file() -> None:
    configured = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pyrefly"]
    included = [CHECKOUT / each for each in configured["project-includes"]]

    assert [str(path) for path in tracked("*.py") if not any(path.is_relative_to(each) for each in included)] == []
    assert [
        key for key in ("project-excludes", "baseline", "replace-imports-with-any", "ignore-missing-imports") if key in configured
    ] == []


def test_what_hides_a_mistake_of_types_names_the_rule_and_the_reason() -> None:
    hidden = {
        f"{path.relative_to(CHECKOUT)}:{number}": found[0]
        for path in tracked("*.py")
        if path != Path(__file__).resolve()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if (found := HIDDEN.search(line))
    }

    assert {place: comment for place, comment in hidden.items() if not EXPLAINED.fullmatch(comment)} == {}
