"""How a program is started on all GPUs of a job's pods: the words that go before its own, and the variables that its framework reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.values.errors import SettingsProblem
from capacity.workloads.requests import JobRequest, Launcher

if TYPE_CHECKING:
    from capacity.workloads.pods import KubeObject


_LAUNCH = ("python", "-m", "flexspot_runtime.launch")
_RENDEZVOUS = (
    "--nnodes=$(NNODES)",
    "--nproc-per-node=$(NPROC_PER_NODE)",
    "--node-rank=$(NODE_RANK)",
    "--master-addr=$(MASTER_ADDR)",
    "--master-port=$(MASTER_PORT)",
)
_PYTHONS = ("python", "python3")

COORDINATOR = "JAX_COORDINATOR_ADDRESS"
"""jax.distributed.initialize reads it: jax 0.10.2, jax/_src/distributed.py (read 2026-11-26). How many processes there are, and which this
one is, it reads of no variable, so the program says both: num_processes=int(os.environ["NNODES"]), process_id=int(os.environ["NODE_RANK"]).
"""


def launched(request: JobRequest) -> JobRequest:
    """The request with the container's whole command."""
    before = {
        None: (),
        Launcher.RANKS: (*_LAUNCH, "--ranks=$(NPROC_PER_NODE)", "--"),
        Launcher.TORCHRUN: (*_LAUNCH, "--", "torchrun", *_RENDEZVOUS),
        Launcher.JAX: (*_LAUNCH, "--"),
        Launcher.RAY: (*_LAUNCH, "--", "python", "-m", "flexspot_runtime.ray", "--"),
    }[request.launcher]
    command = _of_torchrun(request.command) if request.launcher is Launcher.TORCHRUN else request.command
    return request.model_copy(update={"command": (*before, *command), "launcher": None}) if before else request


def _of_torchrun(command: tuple[str, ...]) -> tuple[str, ...]:
    """As torchrun takes a program: a script by its name, which it gives to Python itself, and anything else with --no-python."""
    if len(command) > 1 and command[0] in _PYTHONS and command[1].endswith(".py"):
        return command[1:]
    if command[0] in _PYTHONS and command[1:2] == ("-m",):
        return command[1:]
    return command if command[0].endswith(".py") else ("--no-python", *command)


def variables_of_launcher(request: JobRequest) -> list[KubeObject]:
    """Those that its framework reads, made of the variables by which pods meet, which come before them."""
    return [{"name": COORDINATOR, "value": "$(MASTER_ADDR):$(MASTER_PORT)"}] if request.launcher is Launcher.JAX else []


def success_of(request: JobRequest) -> dict[str, KubeObject]:
    """With Ray the first pod's program is all of the work, and its end that of the Job, whatever becomes of the other pods at that moment.

    One that is lost then would be made anew, and wait for a first pod that has done its work. Needs Kubernetes 1.31, where successPolicy is
    on by default (kubernetes.io, Job, Success policy; stable since 1.33).
    """
    return {"successPolicy": {"rules": [{"succeededIndexes": "0"}]}} if request.launcher is Launcher.RAY and request.pods > 1 else {}


def launcher_problems(request: JobRequest) -> list[SettingsProblem]:
    """A launcher without a program to start, or without a GPU to start it on."""
    if request.launcher is None:
        return []
    asked, problems = repr(request.launcher.value), list[SettingsProblem]()
    if not request.command:
        problem = "starts the program that command names, and there is none"
        problems.append(SettingsProblem("launcher", asked, problem, "give the command, such as -- python train.py"))
    if request.gpus == 0:
        problem = "starts processes on GPUs, and this work has none"
        problems.append(SettingsProblem("launcher", asked, problem, "leave it out"))
    return problems
