from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from flexspot_runtime import LocalFolder, Results
from memory_folder import folder_in_memory
from queue_worker import POISON
from worker_kills import MESSAGES_AND_KILLS, Workers

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent

ATTEMPTS = 8
NAME = "projects/ai/subscriptions/work"


class Server:
    """The server's program."""

    def __init__(self, program: subprocess.Popen[str]) -> None:
        self._program = program
        self.address = self._line()

    def ask(self, what: object) -> Any:
        assert self._program.stdin
        self._program.stdin.write(json.dumps(what) + "\n")
        self._program.stdin.flush()
        return self._line()

    def _line(self) -> Any:
        assert self._program.stdout
        return json.loads(self._program.stdout.readline())


@pytest.fixture
def server() -> Iterator[Server]:
    command = [sys.executable, str(HERE / "pubsub_server.py"), NAME, str(ATTEMPTS)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        yield Server(program)
        assert program.stdin
        program.stdin.close()


@pytest.fixture
def results_folder() -> Iterator[Path]:
    with folder_in_memory() as folder:
        yield folder


@pytest.mark.kills
@pytest.mark.parametrize("messages,kills", MESSAGES_AND_KILLS)
def test_every_task_has_one_result_whoever_is_killed(server: Server, results_folder: Path, messages: int, kills: int) -> None:
    server.ask([*map(str, range(messages)), POISON.decode()])
    results = Results(LocalFolder(results_folder))
    workers = Workers("pubsub", NAME, results_folder, {**os.environ, "PUBSUB_EMULATOR_HOST": server.address})

    workers.kill_until(lambda: server.ask(None)["empty"], kills, random.Random(1))  # noqa: S311 -- repeatable, not secret

    assert workers.events["SIGKILL"] >= 1
    assert {key: int(results.get(key)) for key in results.keys()} == {  # noqa: SIM118 -- no mapping
        f"square-of-{number}": number**2 for number in range(messages)
    }
    assert server.ask(None)["dead letters"] == [POISON.decode()]


def test_a_delivery_is_leased_counted_extended_given_back_and_finished() -> None:
    printed = subprocess.run([sys.executable, str(HERE / "pubsub_scenario.py")], capture_output=True, text=True, check=True).stdout

    assert json.loads(printed) == {
        "nothing": 0,
        "while leased": 0,
        "deliveries": [["tile-7", 1], ["tile-7", 2]],
        "empty": True,
        "absent": "OSError: Pub/Sub: 404 projects/ai/subscriptions/absent is not there",
        "leases": [f"ValueError: lease_seconds is {seconds}; Pub/Sub takes 1 to 600" for seconds in (0, 601)],
    }
