"""`python tests/bench_lab.py`: start times of a lab, as ratios within one run.

The unit is the store and the API server alone, which is the least that any test against a real API server has to start.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from flexspot.lab.control_plane import LabControlPlane
from flexspot.lab.home import LabHome
from flexspot.lab.progress import Silence
from flexspot.lab.tools.build import Tools, ensure_tools

_ROUNDS = 3
_SERVER = ("etcd", "kube-apiserver")


class _Stopwatch(Silence):
    """A record of the end of each step, in seconds since its creation."""

    def __init__(self) -> None:
        self.started = time.monotonic()
        self.ended: dict[str, float] = {}

    def end(self, step: str, outcome: str) -> None:  # noqa: ARG002 -- the time is all that counts
        """Record the time."""
        self.ended[step] = time.monotonic() - self.started


def _one_round(tools: Tools, root: Path) -> dict[str, float]:
    control_plane = LabControlPlane(LabHome(root, "bench"))
    cold = _Stopwatch()
    control_plane.start(tools, cold)
    everything = time.monotonic() - cold.started
    try:
        again = _Stopwatch()
        control_plane.start(tools, again)
        unchanged = time.monotonic() - again.started
        control_plane.stop(Silence())
        warm = _Stopwatch()
        control_plane.start(tools, warm)
        restart = time.monotonic() - warm.started
    finally:
        control_plane.stop(Silence(), delete=True)
    server = max(cold.ended[name] for name in _SERVER)
    return {
        "etcd and API server, from nothing": server,
        "whole lab, from nothing": everything,
        "whole lab, stopped before": restart,
        "whole lab, running already": unchanged,
    }


def main() -> None:
    """Measure and print a table."""
    tools = ensure_tools(Path(__file__).parents[1] / ".tools", Silence())
    with tempfile.TemporaryDirectory() as root:
        rounds = [_one_round(tools, Path(root)) for _ in range(_ROUNDS)]
    table = Table(title=f"lab start, median of {_ROUNDS}", title_justify="left", box=None)
    table.add_column("start of")
    table.add_column("seconds", justify="right")
    table.add_column("ratio", justify="right")
    medians = {name: statistics.median(each[name] for each in rounds) for name in rounds[0]}
    unit = next(iter(medians.values()))
    for name, seconds in medians.items():
        table.add_row(name, f"{seconds:.2f}", f"{seconds / unit:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
