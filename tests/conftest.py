"""Fixtures for all tests, by what they need: a copy of the project, Pulumi's mocks, a running lab."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    import pytest

pytest_plugins = ["checkout_fixtures", "gke_deployment_fixtures", "mock_fixtures", "lab_fixtures"]

# A shell that runs tests in the background has them ignore Ctrl-C, and so would every program that they start and then interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Tests assert behaviour, never wall time, and the same commit tries the same examples wherever it is tested.
settings.register_profile("same-everywhere", deadline=None, database=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
# `make check` tries fewer of them.
settings.register_profile("quick", settings.get_profile("same-everywhere"), max_examples=20)
settings.load_profile("same-everywhere")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests with a lab of their own come first: the shared one, started by then, would take a sixth of a core for nothing."""
    items.sort(key=lambda item: "lab" in getattr(item, "fixturenames", ()))
