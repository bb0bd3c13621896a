"""Real Ray under the launcher: two pods are one cluster, and end together with the exit codes that a Job counts correctly."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from rank_pods import LIFE_SECONDS, LaunchedPod, Pod, free_port, lived

if TYPE_CHECKING:
    from collections.abc import Sequence

LAUNCHER = (sys.executable, "-m", "flexspot_runtime.ray", "--grace-seconds", "30", "--")

PROGRAM = """
import os, sys, time
import ray
from flexspot_runtime import Interrupted, Interruption

with Interruption() as interruption:
    ray.init(log_to_driver=False)

    @ray.remote(num_gpus=1)
    def where():
        time.sleep(1)
        return ray.get_runtime_context().get_node_id()

    nodes = set(ray.get([where.remote() for _ in range(2)], timeout=120))
    print(f"ran on {len(nodes)} pods", flush=True)
    if sys.argv[1] == "crash":
        sys.exit(3)
    if sys.argv[1] == "wait":
        interruption.wait()
        print("saved", flush=True)
        raise Interrupted("SIGTERM", 7)
"""


@pytest.mark.parametrize(
    "does,number,pod,codes,saved",
    [
        ("finish", None, 0, [0, 0], False),
        ("crash", None, 0, [3, 143], False),
        ("wait", signal.SIGTERM, 0, [143, 143], True),
        ("wait", signal.SIGTERM, 1, [143, 143], True),
        ("wait", signal.SIGKILL, 1, [143, -9], True),
    ],
    ids=["all is done", "the program fails", "the first is warned", "the other is warned", "the other is lost"],
)
def test_how_two_pods_end(  # noqa: PLR0913 -- the table's columns
    tmp_path: Path, does: str, number: signal.Signals | None, pod: int, codes: list[int], *, saved: bool
) -> None:
    script, port = tmp_path / "main.py", free_port()
    script.write_text(PROGRAM)
    outputs = [tmp_path / f"output-{each}" for each in range(2)]
    pods = [
        LaunchedPod(f"{tmp_path}-{each}", [sys.executable, str(script), does], environment(each, port, tmp_path), outputs[each], LAUNCHER)
        for each in range(2)
    ]

    def strike(started: Sequence[Pod]) -> None:
        end = time.monotonic() + LIFE_SECONDS
        while "ran on" not in outputs[0].read_text() and all(each.whole for each in started):
            assert time.monotonic() < end
            time.sleep(0.1)
            for each in started:
                each.collect()
        if number is not None:
            started[pod].signal(number)

    ended = lived(pods, strike)
    printed = outputs[0].read_text()

    assert ended == [[code] for code in codes], printed[-3000:]
    assert "ran on 2 pods" in printed
    assert ("saved" in printed) == saved


def environment(rank: int, port: str, home: Path) -> dict[str, str]:
    return {
        "NNODES": "2",
        "NODE_RANK": str(rank),
        "NPROC_PER_NODE": "1",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
        # A Ray that was started separately leaves a token there, and then requires one.
        "HOME": str(home),
        # Ray counts them, without a driver.
        "CUDA_VISIBLE_DEVICES": "0",
        # `ray` is the one of this environment.
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
