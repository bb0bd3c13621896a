"""The script in a notebook's sidecar, run as in its pod: against a server that answers like Jupyter's, and against Kubernetes' scale."""

from __future__ import annotations

import json
import os
import queue
import ssl
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from loopback_server import Reply, Request, serving
from service_plans import of_kind, service

from flexspot.capacity.workloads.notebook_stop import last_activity, look, next_night, reason_to_stop, stop
from flexspot.lab.certificates import ensure_certificates

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

NOON = 1_795_348_800.0
"""2026-11-22T12:00:00Z."""


def kernel(at: str, state: str = "idle") -> dict[str, Any]:
    """Return a kernel as jupyter_server 2.21 lists it."""
    return {"id": "2bf1d1b8", "name": "python3", "last_activity": at, "execution_state": state, "connections": 1}


def terminal(at: str) -> dict[str, Any]:
    return {"name": "1", "last_activity": at}


class Requests(queue.Queue[tuple[str, str, str, str]]):
    """Method, path, authorization and body of each request, the oldest first."""

    def all(self) -> list[tuple[str, str, str, str]]:
        return list(self.queue)


@contextmanager
def answering(answers: dict[str, Any], trust: ssl.SSLContext | None = None) -> Generator[tuple[int, Requests]]:
    """Yield the port and the received requests of a server that gives these answers by path, 403 for other paths."""
    asked = Requests()

    def reply(request: Request) -> Reply:
        asked.put((request.method, request.path, request.headers.get("authorization", ""), request.body))
        return Reply(200 if request.path in answers else 403, json.dumps(answers.get(request.path)).encode())

    with serving(reply, trust) as address:
        yield int(address.rpartition(":")[2]), asked


def environment(port: int, **more: str) -> dict[str, str]:
    variables = {"FLEXSPOT_NOTEBOOK_URL": f"http://127.0.0.1:{port}", "JUPYTER_TOKEN": "secret", "FLEXSPOT_IDLE_TIMEOUT_SECONDS": "3600"}
    return {**variables, **more}


def test_a_kernel_at_work_works_now_and_a_terminal_counts_like_a_kernel() -> None:
    idle, later = "2026-11-22T10:00:00.155176Z", "2026-11-22T11:00:00Z"

    assert last_activity([kernel(idle)], [], NOON - 9000, NOON) == pytest.approx(NOON - 7200, abs=1)
    assert last_activity([kernel(idle)], [terminal(later)], NOON - 9000, NOON) == NOON - 3600
    assert last_activity([kernel(idle, "busy")], [], NOON - 9000, NOON) == NOON
    assert last_activity([], [], NOON - 60, NOON) == NOON - 60


@pytest.mark.parametrize(
    "active,started,reason",
    [
        (NOON - 3599, NOON - 8000, ""),
        (NOON - 3600, NOON - 8000, "it has been idle for 3600 s"),
        (NOON, NOON - 43_200, "it has run for 43200 s, which is its limit"),
        (NOON, NOON - 50, "it is 12:00 UTC"),
    ],
)
def test_a_notebook_is_stopped_when_idle_at_its_limit_and_at_night(active: float, started: float, reason: str) -> None:
    limits = {"FLEXSPOT_IDLE_TIMEOUT_SECONDS": "3600", "FLEXSPOT_RUN_LIMIT_SECONDS": "43200"}
    night = {"FLEXSPOT_NIGHTLY_STOP_UTC": "12:00"} if "UTC" in reason else {}

    assert reason_to_stop({**limits, **night}, active, started, NOON) == reason


def test_the_night_is_the_first_after_the_start() -> None:
    assert next_night(NOON, "20:00") == NOON + 8 * 3600
    assert next_night(NOON, "12:00") == NOON + 24 * 3600


def test_an_idle_server_is_shut_down_with_its_own_token() -> None:
    long_ago = "2026-01-01T00:00:00Z"
    with answering({"/api/kernels": [kernel(long_ago)], "/api/terminals": [], "/api/shutdown": None}) as (port, asked):
        look(environment(port), active=0.0, started=0.0)

    assert [each[:2] for each in asked.all()] == [("GET", "/api/kernels"), ("GET", "/api/terminals"), ("POST", "/api/shutdown")]
    assert {each[2] for each in asked.all()} == {"token secret"}


def test_a_busy_server_keeps_running_and_its_activity_is_remembered() -> None:
    with answering({"/api/kernels": [kernel("2026-01-01T00:00:00Z", "busy")], "/api/terminals": []}) as (port, asked):
        active = look(environment(port), active=0.0, started=0.0)

    assert [each[0] for each in asked.all()] == ["GET", "GET"]
    assert active > NOON - 86_400 * 365


def test_a_server_that_does_not_answer_is_idle_and_one_that_refuses_is_asked_again_next_time(capsys: pytest.CaptureFixture[str]) -> None:
    with answering({}) as (port, asked):
        assert look(environment(port), active=7.0, started=0.0) == 7.0

    assert [each[1] for each in asked.all()] == ["/api/kernels", "/api/shutdown"]
    assert "it could not be stopped, next try in 30 s: HTTP Error 403" in capsys.readouterr().out


def test_a_deployment_is_scaled_to_zero_over_a_connection_that_is_trusted(tmp_path: Path) -> None:
    made = ensure_certificates(tmp_path / "pki")
    trust = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trust.load_cert_chain(made.certificate("server"), made.key("server"))
    (tmp_path / "token").write_text("of-the-pod")
    (tmp_path / "ca.crt").write_bytes(made.certificate("ca").read_bytes())
    path = "/apis/apps/v1/namespaces/search/deployments/desk/scale"
    with answering({path: {}}, trust) as (port, asked):
        variables = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(port), "FLEXSPOT_SCALE_PATH": path}
        stop({**variables, "FLEXSPOT_KUBERNETES_CREDENTIALS": str(tmp_path)})

    assert asked.all() == [("PATCH", path, "Bearer of-the-pod", '{"spec":{"replicas":0}}')]


def test_the_script_in_the_pod_runs_alone_until_sigterm() -> None:
    [sidecar] = of_kind(service("local", "notebook"), "CronJob")["spec"]["jobTemplate"]["spec"]["template"]["spec"]["initContainers"]
    _, *arguments = sidecar["command"]
    answers: dict[str, Any] = {"/api/kernels": [], "/api/terminals": [], "/api/shutdown": None}
    with answering(answers) as (port, asked):
        variables = environment(port, FLEXSPOT_IDLE_TIMEOUT_SECONDS="0", PATH=os.environ["PATH"])
        with subprocess.Popen([sys.executable, *arguments], env=variables, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert "it has been idle" in process.stdout.readline()
            while asked.get(timeout=60)[1] != "/api/shutdown":
                pass
            process.terminate()
            assert process.wait(timeout=60) == 0
