"""The public records of github.com/skypilot-org/spot-traces, which are no part of this project.

They are read from the folder that TRACES names, else from shared/data/spot-traces beside the checkout. Where there are none, tests that
play them are skipped and say so.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from capacity.cost.replay import Trace, read_trace

RECORDS = Path(os.environ.get("TRACES") or Path(__file__).resolve().parents[2] / "shared" / "data" / "spot-traces")

needs_records = pytest.mark.skipif(not RECORDS.is_dir(), reason=f"no records at {RECORDS}; TRACES names a copy of spot-traces")

SIXTEEN_NODES = "availability/16-node/aws-08-27-2023/us-west-2a_v100_1"


def record(name: str) -> Trace:
    """By its path in the public repository, without the ending."""
    return read_trace(RECORDS / f"{name}.json", name)
