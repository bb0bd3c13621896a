from __future__ import annotations

import urllib.error
import urllib.request

import pytest
from flexspot_runtime.status import RunStatus, render, served
from manual_clock import ManualClock

pytestmark = pytest.mark.slow

STATUS = RunStatus(started_at=900.0, step=42, saved_step=40, saved_at=980.0, saves=4)


def test_every_figure_has_its_type_and_unit() -> None:
    lines = render(STATUS, 1000.0).splitlines()

    assert lines[:4] == [
        "# TYPE flexspot_training_step gauge",
        "flexspot_training_step 42",
        "# TYPE flexspot_training_checkpoint_step gauge",
        "flexspot_training_checkpoint_step 40",
    ]
    assert [line.split()[2] for line in lines if line.endswith(" counter")] == [
        f"flexspot_training_{name}_total" for name in ("checkpoints", "checkpoint_failures", "interruptions")
    ]


def test_prometheus_scrapes_the_age_of_the_moment() -> None:
    clock = ManualClock()
    with served(STATUS, 0, address="127.0.0.1", clock=clock) as port:
        clock.seconds += 7
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
            assert answer.read().decode() == render(STATUS, 1007.0)
        with pytest.raises(urllib.error.HTTPError, match="404") as refused:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10)
        refused.value.close()
