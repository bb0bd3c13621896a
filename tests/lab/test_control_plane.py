"""Starting, stopping and repairing labs: the successes, and the error messages."""

from __future__ import annotations

import json
import shutil
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

import psutil
import pytest

from flexspot.lab import control_plane
from flexspot.lab.cluster import Cluster
from flexspot.lab.control_plane import LabControlPlane, PartState
from flexspot.lab.home import LabHome, load_state
from flexspot.lab.ports import HOST, is_free
from flexspot.lab.processes import Running, end, running_parts, spawn
from flexspot.lab.progress import ExitCode, LabError, Silence

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from flexspot.lab.parts import Part
    from flexspot.lab.tools.build import Tools

pytestmark = pytest.mark.lab

MEMO = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "memo", "namespace": "default"}, "data": {"kept": "yes"}}


@pytest.fixture
def own(tmp_path: Path) -> Iterator[LabControlPlane]:
    """Yield the test's own lab, not started. Parts that the test leaves running are stopped."""
    created = LabControlPlane(LabHome(tmp_path / ".lab", "own"))
    yield created
    end(running_parts(created.home).values(), 5)


def ports_of(lab: LabControlPlane) -> dict[str, int]:
    state = load_state(lab.home.state)
    assert state is not None
    return state.ports


def test_a_lab_listens_on_loopback_on_its_own_ports_and_reaches_nothing_else(lab: LabControlPlane) -> None:
    connections = [each for part in running_parts(lab.home).values() for each in part.process.net_connections(kind="inet")]
    listening = {each.laddr for each in connections if each.status == psutil.CONN_LISTEN}

    assert {address.ip for address in listening} == {each.raddr.ip for each in connections if each.raddr} == {"127.0.0.1"}
    assert {address.port for address in listening} == set(ports_of(lab).values())


def test_private_keys_are_for_their_owner_alone(lab: LabControlPlane) -> None:
    keys = [*lab.home.folder.rglob("*.key"), *lab.home.folder.rglob("kubeconfig")]

    assert len(keys) >= 8
    assert {oct(key.stat().st_mode & 0o777) for key in keys} == {"0o600"}
    assert oct(lab.home.folder.stat().st_mode & 0o777) == "0o700"


def test_a_second_start_finds_everything_healthy_and_starts_nothing(lab: LabControlPlane, tools: Tools) -> None:
    before = {name: running.process.pid for name, running in running_parts(lab.home).items()}

    report = lab.start(tools, Silence())

    assert report.started == []
    assert {name: running.process.pid for name, running in running_parts(lab.home).items()} == before


LATE = """
import sys, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Well(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()

for port in map(int, sys.argv[1:]):
    threading.Thread(target=ThreadingHTTPServer(("127.0.0.1", port), Well).serve_forever, daemon=True).start()
time.sleep(3)
sys.exit("listen tcp: bind: address already in use")
"""
"""Kueue on a busy machine: it is healthy for seconds before it finds that it cannot listen for the API server."""


def test_a_folder_of_another_version_is_named_with_both_versions(own: LabControlPlane, tools: Tools) -> None:
    own.home.folder.mkdir(parents=True)
    own.home.state.write_text(json.dumps({"version": 0, "pids": {"etcd": 1}}))

    with pytest.raises(LabError, match="has layout 0, this version of flexspot has layout 1"):
        own.status(tools)


@pytest.mark.nightly(
    tested_by="test_a_second_start_finds_everything_healthy_and_starts_nothing, test_the_life_of_a_lab_from_the_command_line, "
    "test_a_folder_of_another_version_is_named_with_both_versions, test_an_api_port_that_is_in_use_is_refused_with_its_owner"
)
def test_two_starts_at_once_create_one_lab_that_stops_completely_and_restarts_with_its_objects(
    own: LabControlPlane, lab: LabControlPlane, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder of another version, which is set aside. Before the last start and during it, other programs take the same port."""
    own.home.folder.mkdir(parents=True)
    own.home.state.write_text(json.dumps({"version": 0, "pids": {"etcd": 1}}))

    with ThreadPoolExecutor() as starting:
        reports = [each.result() for each in [starting.submit(own.start, tools, Silence()) for _ in range(2)]]

    assert sorted(len(report.started) for report in reports) == [0, 7], "the second waited and found all of it running"
    [note] = [note for report in reports for note in report.notes]
    [aside] = own.home.root.glob("own.set-aside-*")
    assert f"its folder was renamed to {aside.name}" in note
    assert json.loads((aside / "state.json").read_text())["version"] == 0
    assert len(running_parts(lab.home)) == 7, "the other lab is untouched"
    assert not set(ports_of(own).values()) & set(ports_of(lab).values())
    Cluster(own.home.kubeconfig).apply(MEMO)

    assert len(own.stop(Silence())) == 7

    assert running_parts(own.home) == {}
    assert all(is_free(port) for port in ports_of(own).values())
    assert {each.state for each in own.status(tools)} == {PartState.STOPPED}

    with socket.socket() as before, socket.socket() as meanwhile:
        taken = [ports_of(own)["kueue-webhook"]]
        before.bind((HOST, taken[0]))
        before.listen()

        def spawn_too_late(home: LabHome, part: Part) -> Running:
            if part.name == "kueue" and len(taken) == 1:
                ports = ports_of(own)
                taken.append(ports["kueue-webhook"])
                meanwhile.bind((HOST, taken[1]))
                meanwhile.listen()
                part = replace(part, command=[sys.executable, "-c", LATE, str(ports["kueue-health"]), str(ports["kueue-metrics"])])
            return spawn(home, part)

        monkeypatch.setattr(control_plane, "spawn", spawn_too_late)
        report = own.start(tools, Silence())

        assert len(report.started) == 7
        assert any("kueue-webhook is in use" in note for note in report.notes)
        assert ports_of(own)["kueue-webhook"] not in taken, "what another program answers does not make a part ready"
    cluster = Cluster(own.home.kubeconfig)
    found = cluster.get("v1/ConfigMap", "memo", "default")
    assert found is not None
    assert found["data"] == {"kept": "yes"}
    # The webhooks follow the port: an object that Kueue's webhook must see is still accepted.
    cluster.apply({"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "any"}, "spec": {}})
    own.stop(Silence(), delete=True)
    assert not own.home.folder.exists()


def test_a_part_that_ends_while_starting_is_shown_with_its_last_lines_and_nothing_stays(
    own: LabControlPlane, tools: Tools, tmp_path: Path
) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(tools.links, broken, symlinks=True)
    server = broken / "bin" / "kube-apiserver"
    server.unlink()
    server.write_text("#!/bin/sh\necho cannot find the objects\nexit 3\n")
    server.chmod(0o755)

    with pytest.raises(LabError, match="kube-apiserver ended while it was starting") as refused:
        own.start(replace(tools, links=broken), Silence())

    assert refused.value.evidence == ("cannot find the objects",)
    assert running_parts(own.home) == {}, "etcd ran already"


def test_an_api_port_that_is_in_use_is_refused_with_its_owner(own: LabControlPlane, tools: Tools) -> None:
    with socket.socket() as squatter:
        squatter.bind(("127.0.0.1", 0))
        squatter.listen()
        port = squatter.getsockname()[1]

        with pytest.raises(LabError, match=f"port {port}, requested for the API server, is in use by") as refused:
            own.start(tools, Silence(), api_port=port)

    assert refused.value.exit_code is ExitCode.BAD_USAGE
    assert running_parts(own.home) == {}


def test_a_lab_that_never_ran_has_nothing_to_stop_and_its_status_names_the_start_command(own: LabControlPlane, tools: Tools) -> None:
    assert own.stop(Silence()) == []
    with pytest.raises(LabError, match="there is no lab own") as refused:
        own.status(tools)

    assert "flexspot lab start --lab own" in refused.value.remedy
