"""Fixtures for all tests, by what they need: a copy of the project, Pulumi's mocks, a running lab."""

from __future__ import annotations

import atexit
import gc
import os
import re
import shutil
import signal
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from flexspot.infra.loading import collect_rarely

if TYPE_CHECKING:
    from collections.abc import Sequence

# Collecting the tests takes each worker half a minute of CPU, and took a third more with Python's default thresholds.
collect_rarely()

pytest_plugins = ["checkout_fixtures", "installed_fixtures", "mock_fixtures", "lab_fixtures"]

# A shell starts background jobs with Ctrl-C ignored. Programs that tests start and interrupt would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Engines of tests do not see the user's own plugins. A file in place of the folder for logs keeps Pulumi processes from writing zipped and
# encrypted logs, which take a third of their CPU (pprof of `up` and `destroy` of dev-gke, 3.259.0, 2026-11-26). Workers inherit the
# variable.
if "PYTEST_XDIST_WORKER" not in os.environ:
    os.environ["FLEXSPOT_PERSONS_PULUMI_HOME"] = os.environ.get("PULUMI_HOME", "")
    os.environ["PULUMI_HOME"] = tempfile.mkdtemp(prefix="pulumi-home-")
    (Path(os.environ["PULUMI_HOME"]) / "logs").touch()
    atexit.register(shutil.rmtree, os.environ["PULUMI_HOME"], ignore_errors=True)

# Tests assert behaviour, never wall time. One commit tries the same examples on every machine.
settings.register_profile("same-everywhere", deadline=None, database=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
# `make check` and `make test` try fewer examples.
settings.register_profile("quick", settings.get_profile("same-everywhere"), max_examples=10)
# Many more examples, for a run before a release.
settings.register_profile("wide", settings.get_profile("same-everywhere"), max_examples=200)
settings.load_profile("same-everywhere")


@pytest.hookimpl(tryfirst=True)  # before pytest-cov starts the second measurement
def pytest_sessionstart(session: pytest.Session) -> None:
    """End the first of two coverage measurements that pytest-cov starts in a worker of xdist. Its data is never read.

    With two, every line is traced twice. A test marked no_cover is also traced, because only one measurement is paused (pytest-cov 7.1,
    CovPlugin.__init__ and pytest_sessionstart).
    """
    measured = session.config.pluginmanager.get_plugin("_cov")
    if hasattr(session.config, "workerinput") and measured is not None and measured.cov_controller is not None:
        measured.cov_controller.cov.stop()


_MARKS_OF_FILE = re.compile(r"^pytestmark = (?:\[\n.*?^\]|[^\n]*$)", re.MULTILINE | re.DOTALL)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip a file without selected tests. Importing the files of labs and engines takes a third of each worker's time."""
    unwanted = set(re.findall(r"\bnot (\w+)", config.option.markexpr)) if " or " not in config.option.markexpr else set()
    if not unwanted or not collection_path.name.startswith("test_") or not collection_path.is_file():
        return None
    marked = _MARKS_OF_FILE.search(collection_path.read_text(encoding="utf-8"))
    return True if marked and unwanted & set(re.findall(r"\bmark\.(\w+)", marked[0])) else None


def pytest_collection_finish(session: pytest.Session) -> None:
    """Exclude all modules loaded so far from Python's garbage collection, so that it covers only objects of tests.

    Raises UsageError if xdist does not group tests, since each worker would start the same lab.
    """
    if getattr(session.config.option, "loadgroup", False):
        for item in session.items:
            if item.get_closest_marker("xdist_group") and "@" not in item.nodeid.rpartition("]")[2]:
                message = f"{item.nodeid} is in a group, which pytest-xdist ignores. Use compatible versions of pytest and pytest-xdist."
                raise pytest.UsageError(message)
    gc.collect()
    gc.freeze()


_LONG_ID = 120


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name a long value by its length. Workers compare the names of all tests, and compressed values contain the time."""
    return f"{argname} of {len(val)}" if isinstance(val, (str, bytes)) and len(val) > _LONG_ID else None


@pytest.hookimpl(tryfirst=True)  # before xdist looks for groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Decide the order of tests, their groups (for `--dist loadgroup`), and which of them are measured for coverage.

    Tests without the shared lab come first, since a running lab takes CPU. Among them, and among tests of the shared lab, those that wait
    for minutes, need an engine or are slow come first, so that none of them is left for the end. Tests that share a fixture of their
    module, such as a lab, run in one worker. Every other test goes to any free worker.
    """
    for mark in ("engine", "lab", "kills", "slow"):
        for path in {item.path for item in items if item.get_closest_marker(mark)}:
            if f"mark.{mark}" not in path.read_text():
                message = f"{path} has tests marked {mark}, but not the text mark.{mark}, by which the Makefile finds them. Add it."
                raise pytest.UsageError(message)

    def place(item: pytest.Item) -> tuple[bool, bool]:
        return "lab" in getattr(item, "fixturenames", ()), not any(map(item.get_closest_marker, ("waits", "nightly", "slow", "engine")))

    items.sort(key=place)
    for item in items:
        fixtures: dict[str, Sequence[pytest.FixtureDef[object]]] = getattr(item, "_fixtureinfo").name2fixturedefs  # noqa: B009
        if any(each.scope == "module" for definitions in fixtures.values() for each in definitions):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))
        # Other tests cover the same lines. Tracing would double the time of these.
        if item.get_closest_marker("nightly") or getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker(pytest.mark.no_cover)
