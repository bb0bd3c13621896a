from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_a_delivery_is_leased_counted_extended_given_back_and_finished() -> None:
    program = Path(__file__).with_name("pubsub_server.py")

    printed = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=True).stdout

    assert json.loads(printed) == {
        "nothing": 0,
        "while leased": 0,
        "deliveries": [["tile-7", 1], ["tile-7", 2]],
        "empty": True,
        "absent": "OSError: Pub/Sub: 404 projects/ai/subscriptions/absent is not there",
        "leases": [f"ValueError: lease_seconds is {seconds}; Pub/Sub takes 1 to 600" for seconds in (0, 601)],
    }
