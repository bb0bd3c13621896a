"""The examples, as a user runs them."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from sqs_server import sqs_server

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).resolve().parents[2] / "runtime" / "examples"
STEPS = 12_000


def example(name: str, *arguments: object, environment: dict[str, str] | None = None) -> subprocess.Popen[str]:
    command = [sys.executable, str(EXAMPLES / name), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **(environment or {})})


def printed(process: subprocess.Popen[str]) -> str:
    output, log = process.communicate(timeout=300)
    assert process.returncode == 0, log
    return output.strip()


def test_a_training_that_is_killed_and_resumed_ends_with_the_same_weights(tmp_path: Path) -> None:
    undisturbed = printed(example("train_numpy.py", tmp_path / "undisturbed", STEPS))
    chance, codes = random.Random(1), list[int]()  # noqa: S311 -- repeatable, not secret
    for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGTERM):
        with example("train_numpy.py", tmp_path / "killed", STEPS) as process:
            try:
                process.wait(chance.uniform(0.5, 1.5))
            except subprocess.TimeoutExpired:
                process.send_signal(number)
            codes.append(process.wait(60))

    assert printed(example("train_numpy.py", tmp_path / "killed", STEPS)) == undisturbed
    # SIGTERM itself ends it when it comes while Python is still loading numpy.
    assert set(codes) <= {0, 143, -signal.SIGTERM, -signal.SIGKILL}


def test_the_pods_of_a_sweep_do_all_trials_together_and_a_replacement_does_none_twice(tmp_path: Path) -> None:
    outputs = [printed(example("sweep.py", tmp_path, 3, environment={"JOB_COMPLETION_INDEX": str(index)})) for index in (0, 1, 2)]
    assert [line.split()[0] for line in outputs] == ["4", "8", "12"]
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "sweep").rglob("*") if path.is_file()}

    again = printed(example("sweep.py", tmp_path, 3, environment={"JOB_COMPLETION_INDEX": "1"}))

    assert again == outputs[-1]
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "sweep").rglob("*") if path.is_file()} == before


def test_a_batch_of_texts_is_scored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with sqs_server(monkeypatch) as client:
        url = client.create_queue(QueueName="texts")["QueueUrl"]
        for text in ("a great and fine day", "poor service", "a chair"):
            client.send_message(QueueUrl=url, MessageBody=text)

        output = printed(example("score_batch.py", url, tmp_path))

    assert output == "WorkerReport(stored=3, found_done=0, given_back=0, failed=0)"
    scores = [json.loads(path.read_text()) for path in (tmp_path / "results").iterdir()]
    assert {each["text"]: each["score"] for each in scores} == {"a great and fine day": 2, "poor service": -1, "a chair": 0}
