"""Launchers of a job on all GPUs. The rendered command runs as under a kubelet, and gives every process its rank in one world."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from workload_plans import IMAGE, job_of, objects

from flexspot.capacity.workloads.requests import WorkloadError

RUNTIME = Path(__file__).parents[3] / "runtime"
DOUBLE = Path(__file__).parents[2] / "runtime" / "torchrun_double.py"

SHOW = """import json, os, sys
names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "JAX_COORDINATOR_ADDRESS", "NNODES", "NODE_RANK")
os.write(1, (json.dumps([{name: os.environ.get(name) for name in names}, sys.argv[1:]]) + "\\n").encode())
"""

TORCHRUN = f"""#!{sys.executable}
import os, sys
options = dict(each.removeprefix("--").split("=") for each in sys.argv[1:6])
assert set(options) == {{"nnodes", "nproc-per-node", "node-rank", "master-addr", "master-port"}}, sys.argv
program = sys.argv[7:] if sys.argv[6] == "--no-python" else [sys.executable, *sys.argv[6:]]
os.environ.update({{name.upper().replace("-", "_"): options[name] for name in ("nnodes", "node-rank", "master-addr", "master-port")}})
os.execv(sys.executable, [sys.executable, {str(DOUBLE)!r}, options["nproc-per-node"], *program])
"""
"""A torchrun that parses its options like the real one and then runs the stand-in. make test-torch compares it with the real one."""


def container(**fields: Any) -> dict[str, Any]:
    written: dict[str, Any] = {"gpus": 8, "pods": 2, "command": ["python", "train.py", "--lr", "0.1"], **fields}
    return job_of("prod-eks", **written)["spec"]["template"]["spec"]["containers"][0]


def expanded(made: dict[str, Any], index: int) -> tuple[list[str], dict[str, str]]:
    """Return command and variables as a kubelet passes them on: $(NAME) is replaced by an earlier variable."""
    known: dict[str, str] = {}

    def filled(text: str) -> str:
        return re.sub(r"\$\((\w+)\)", lambda found: known.get(found[1], found[0]), text)

    for each in made["env"]:
        known[each["name"]] = filled(each["value"]) if "value" in each else str(index)
    return [filled(word) for word in (*made["command"], *made.get("args", ()))], known


def run(made: dict[str, Any], index: int, folder: Path) -> list[tuple[dict[str, str | None], list[str]]]:
    """Return the environment and arguments of each process of a pod, by rank."""
    (folder / "train.py").write_text(SHOW)
    torchrun = folder / "torchrun"
    torchrun.write_text(TORCHRUN)
    torchrun.chmod(0o755)
    command, known = expanded(made, index)
    command = [sys.executable if word == "python" else word for word in command]
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    output = subprocess.run(
        command, env={**known, "PATH": path, "PYTHONPATH": str(RUNTIME)}, cwd=folder, check=True, capture_output=True, text=True, timeout=60
    ).stdout
    return sorted((tuple(json.loads(line)) for line in output.splitlines()), key=lambda each: each[0]["RANK"] or "")


@pytest.mark.slow
@pytest.mark.parametrize("launcher", ["ranks", "torchrun"])
def test_every_gpu_of_every_pod_has_a_process_with_its_rank(launcher: str, tmp_path: Path) -> None:
    made = container(launcher=launcher)

    found = [each for index in range(2) for each in run(made, index, tmp_path)]

    assert sorted(int(place["RANK"] or "") for place, _ in found) == list(range(16))
    assert all(int(place["LOCAL_RANK"] or "") == int(place["RANK"] or "") % 8 for place, _ in found)
    assert {(place["WORLD_SIZE"], place["MASTER_ADDR"], place["MASTER_PORT"]) for place, _ in found} == {
        ("16", "bert-0.flexspot-gang", "29500")
    }
    assert all(arguments == ["--lr", "0.1"] for _, arguments in found)


@pytest.mark.slow
def test_with_jax_each_pod_has_one_process_that_knows_the_coordinator(tmp_path: Path) -> None:
    made = container(launcher="jax", port=12345)

    for index in range(2):
        [(place, _)] = run(made, index, tmp_path)
        assert place["JAX_COORDINATOR_ADDRESS"] == "bert-0.flexspot-gang:12345"
        assert (place["NNODES"], place["NODE_RANK"]) == ("2", str(index))


@pytest.mark.parametrize(
    "command,words",
    [
        (["python", "train.py", "-v"], ["train.py", "-v"]),
        (["train.py"], ["train.py"]),
        (["python", "-m", "trainer", "-v"], ["-m", "trainer", "-v"]),
        (["./train", "-v"], ["--no-python", "./train", "-v"]),
        (["python", "-u", "train.py"], ["--no-python", "python", "-u", "train.py"]),
    ],
)
def test_a_command_becomes_torchruns_arguments(command: list[str], words: list[str]) -> None:
    assert container(launcher="torchrun", command=command)["command"][-len(words) :] == words


def test_with_ray_the_pods_are_one_cluster_in_which_the_first_runs_the_program() -> None:
    """tests/runtime/test_ray.py tests what the command does."""
    assert " ".join(container(launcher="ray")["command"][3:]) == "-- python -m flexspot_runtime.ray -- python train.py --lr 0.1"


@pytest.mark.parametrize("launcher,deciding", [("ray", "0"), ("ranks", None), ("torchrun", None)])
def test_with_ray_the_end_of_the_first_pod_is_that_of_the_job(launcher: str, deciding: str | None) -> None:
    """tests/lab/test_ray_gang.py tests the effect in the API server and the Job controller."""
    fields = {"pods": 2, "gpus": 8, "launcher": launcher, "command": ["python", "main.py"]}
    [gang] = objects("prod-eks", "checkpointed-job", **fields)
    [jobset] = objects("prod-eks", "checkpointed-job", jobset=True, **fields)
    [alone] = objects("prod-eks", "checkpointed-job", **{**fields, "pods": 1})

    rules = {"rules": [{"succeededIndexes": deciding}]} if deciding else None
    assert gang["spec"].get("successPolicy") == rules
    assert jobset["spec"]["replicatedJobs"][0]["template"]["spec"].get("successPolicy") == rules
    assert "successPolicy" not in alone["spec"], "a Job of one pod has no indices"


@pytest.mark.parametrize("launcher", ["ranks", "torchrun", "jax", "ray"])
def test_every_launcher_exits_with_143_after_an_interruption(launcher: str) -> None:
    assert container(launcher=launcher)["command"][:3] == ["python", "-m", "flexspot_runtime.launch"]


@pytest.mark.parametrize(
    "fields,message",
    [
        ({"launcher": "torchrun"}, "launcher (is 'torchrun'): starts the program in command, and command is missing"),
        ({"launcher": "mpirun", "command": ["a"]}, "launcher (is 'mpirun'): is not one of the allowed values"),
    ],
)
def test_an_unknown_launcher_or_one_without_a_program_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(WorkloadError, match=re.escape(message)):
        objects("prod-eks", "checkpointed-job", image=IMAGE, **fields)
