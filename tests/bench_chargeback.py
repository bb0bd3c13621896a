"""`python tests/bench_chargeback.py [PODS...]`: time and memory of `flexspot chargeback` for a month, as the month grows.

The month is synthetic and contains all series that the report requests. It is in a real Prometheus, whose own memory is not counted. The
report is compared with the generated month.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from lab_monitoring import serving
from made_month import TEAMS, made_month, write_blocks
from rich.console import Console
from rich.table import Table

from flexspot.capacity.chargeback.samples import month_period
from flexspot.lab.home import LabHome
from flexspot.lab.progress import Silence
from flexspot.lab.tools.build import Tools, ensure_tools, family_named

SIZES = (2_500, 5_000, 10_000)
MONTH = "2026-03"
AT_MOST_SECONDS, AT_MOST_MIB = 60.0, 1024.0
"""Ceilings for the largest size."""

FLEXSPOT = Path(sys.executable).with_name("flexspot")


def report(url: str, out: Path) -> tuple[float, float, float]:
    """Run the command and return its seconds, its own processor seconds, and its peak memory in MiB."""
    command = [FLEXSPOT, "chargeback", "report", "--prometheus", url, "--month", MONTH, "--format", "json", "--out", str(out)]
    start = time.perf_counter()
    with subprocess.Popen(command, cwd=Path(__file__).parents[1], stderr=subprocess.PIPE, text=True) as process:
        errors = process.stderr.read() if process.stderr else ""
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"the report ended with {process.returncode}:\n{errors}")
    # macOS counts bytes, Linux KiB.
    mebibytes = usage.ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
    return time.perf_counter() - start, usage.ru_utime + usage.ru_stime, mebibytes


def measure(pods: int, tools: Tools) -> tuple[float, float, float]:
    """Generate a month, and measure a report on it. Exits if the report differs from the generated month."""
    month = made_month(month_period(MONTH, "UTC"), pods)
    with tempfile.TemporaryDirectory() as folder:
        home, blocks, out = LabHome(Path(folder), "month"), Path(folder) / "blocks", Path(folder) / "report.json"
        write_blocks(month, tools, blocks)
        with serving(home, tools, blocks) as server:
            took = report(server.url, out)
        said = {each["team"]: each["allocated_gpu_hours"] for each in json.loads(out.read_text(encoding="utf-8"))["by"]["team"]}
    made = {team: round(gpu_seconds / 3600, 4) for team, gpu_seconds in month.gpu_seconds_by_team().items()}
    if wrong := {team: (made[team], said.get(team)) for team in TEAMS if abs(made[team] - said.get(team, 0)) > 0.01}:
        sys.exit(f"generated and reported GPU hours differ: {wrong}")
    return took


def main() -> None:
    """Measure and print a table. Exits with 1 if the largest month exceeds its time or memory ceiling."""
    sizes = [int(each) for each in sys.argv[1:]] or list(SIZES)
    wanted = (family_named("prometheus"),)
    tools = ensure_tools(Path(__file__).parents[1] / ".tools", Silence(), wanted=wanted)
    console, took = Console(), dict[int, tuple[float, float, float]]()
    for pods in sizes:
        console.print(f"{pods:,} pods: generating the month, and reporting on it")
        took[pods] = measure(pods, tools)
    table = Table("pods", "seconds", "CPU seconds", "MiB", title=f"chargeback of {MONTH}, scraped each minute", box=None)
    for pods, (seconds, processor_seconds, mebibytes) in took.items():
        table.add_row(f"{pods:,}", f"{seconds:.1f}", f"{processor_seconds:.1f}", f"{mebibytes:.0f}")
    console.print(table)
    seconds, _, mebibytes = took[max(took)]
    if seconds > AT_MOST_SECONDS or mebibytes > AT_MOST_MIB:
        sys.exit(f"a month of {max(took):,} pods may take {AT_MOST_SECONDS:.0f} s and {AT_MOST_MIB:.0f} MiB")


if __name__ == "__main__":
    main()
