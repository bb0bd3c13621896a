"""`python tests/bench_tiers.py [TIER ...]`: CPU time of tiers of tests, in multiples of a fixed loop; fails above contract/ceilings.yaml.

A tier is a target of the Makefile: check, test or test-all. The loop makes figures of different machines comparable.
"""

from __future__ import annotations

import ctypes
import os
import resource
import statistics
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import yaml
from rich.console import Console

CHECKOUT = Path(__file__).resolve().parents[1]
CEILINGS = CHECKOUT / "tests" / "contract" / "ceilings.yaml"

_SET_CHILD_SUBREAPER = 36
_ROUNDS = 5


def loop_seconds() -> float:
    """Return the CPU seconds of the fixed loop, the median of five."""

    def once() -> float:
        start, total = time.process_time(), 0
        for number in range(5_000_000):
            total += number & 7
        return time.process_time() - start

    return statistics.median(once() for _ in range(_ROUNDS))


def cpu_seconds(tier: str) -> float:
    """Return the CPU seconds of all processes of a tier. Raises SystemExit if a test fails.

    A lab's parts outlive the process that starts them. Linux re-parents them to this process, which counts them after waiting for them.
    """
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    make = subprocess.Popen(["make", "--no-print-directory", tier], cwd=CHECKOUT)  # noqa: S607 -- make is on PATH, as for a user
    ended = status = 0
    # Every ended process is reaped at once, since tests check that processes are gone.
    while ended != make.pid:
        ended, status = os.waitpid(-1, 0)
    if status:
        raise SystemExit(f"make {tier} ended with {os.waitstatus_to_exitcode(status)}")
    with suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Measure the named tiers, by default those of every change, and exit with 1 if one is above its ceiling."""
    console, ceilings = Console(), yaml.safe_load(CEILINGS.read_text(encoding="utf-8"))["cpu"]
    over: list[str] = []
    for tier in sys.argv[1:] or ("check", "test"):
        seconds, unit = cpu_seconds(tier), loop_seconds()
        at_most = ceilings.get(tier, {}).get("at_most")
        console.print(f"make {tier}: {seconds:.0f} CPU seconds, {seconds / unit:.0f} times the loop ({unit:.2f} s); at most {at_most}")
        if at_most is not None and seconds / unit > at_most:
            over.append(tier)
    if over:
        raise SystemExit(f"CPU above the ceilings in {CEILINGS.relative_to(CHECKOUT)}: {', '.join(over)}")


if __name__ == "__main__":
    main()
