"""The process of the policy pack, and of the engine that starts it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

pytestmark = pytest.mark.slow

PACK = Path(__file__).parents[3] / "policies" / "pack"

# Starts the pack as an engine does, prints its process id and port, and waits to be killed.
ENGINE = """
import subprocess, sys
pack = subprocess.Popen([sys.executable, sys.argv[1], "127.0.0.1:1"], stdout=subprocess.PIPE, text=True)
print(pack.pid, pack.stdout.readline(), end="", flush=True)
pack.wait()
"""


def test_a_pack_ends_when_its_engine_was_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", ENGINE, str(PACK)], stdout=subprocess.PIPE, text=True) as engine:
        assert engine.stdout is not None
        process, port = map(int, engine.stdout.readline().split())
        pack = psutil.Process(process)
        assert port > 0

        engine.kill()
        engine.wait(60)

        # It must have ended by itself: no other process ends it.
        psutil.wait_procs([pack], timeout=60)
        assert not pack.is_running()
