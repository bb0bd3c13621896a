from __future__ import annotations

import urllib.error
import urllib.request

import pytest
from flexspot_runtime.status import RunStatus, render, served
from manual_clock import ManualClock

pytestmark = pytest.mark.slow

STATUS = RunStatus(started_at=900.0, step=42, saved_step=40, saved_at=980.0, saves=4)


def test_every_figure_has_its_type_and_unit() -> None:
    assert render(STATUS, 1000.0).splitlines() == [
        "# TYPE flexspot_training_step gauge",
        "flexspot_training_step 42",
        "# TYPE flexspot_training_checkpoint_step gauge",
        "flexspot_training_checkpoint_step 40",
        "# TYPE flexspot_training_checkpoint_age_seconds gauge",
        "flexspot_training_checkpoint_age_seconds 20",
        "# TYPE flexspot_training_unsaved_steps gauge",
        "flexspot_training_unsaved_steps 2",
        "# TYPE flexspot_training_unsaved_seconds gauge",
        "flexspot_training_unsaved_seconds 20",
        "# TYPE flexspot_training_checkpoints_total counter",
        "flexspot_training_checkpoints_total 4",
        "# TYPE flexspot_training_checkpoint_failures_total counter",
        "flexspot_training_checkpoint_failures_total 0",
        "# TYPE flexspot_training_lost_steps gauge",
        "flexspot_training_lost_steps 0",
        "# TYPE flexspot_training_interruptions_total counter",
        "flexspot_training_interruptions_total 0",
        "# TYPE flexspot_training_notice_received gauge",
        "flexspot_training_notice_received 0",
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
