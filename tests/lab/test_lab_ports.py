"""Ports of labs that start at the same time, and the owners of ports in use."""

from __future__ import annotations

import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import psutil
import pytest

from flexspot.lab import ports
from flexspot.lab.ports import HOST, Reservations
from flexspot.lab.processes import Running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LISTENING = "import socket; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True); input()"


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> range:
    found = range(31_990, 31_998)
    monkeypatch.setattr(ports, "_RANGE", found)
    return found


@pytest.fixture
def squatter() -> Iterator[socket.socket]:
    with socket.create_server((HOST, 0)) as listening:
        yield listening


def test_concurrent_starts_never_choose_the_same_port(few: range) -> None:
    with Reservations() as one, Reservations() as other:
        chosen = [each.choose() for each in (one, other) for _ in range(len(few) // 2)]

        assert sorted(chosen) == list(few)
        with pytest.raises(OSError, match="no free port"):
            one.choose()
        assert not other.take(chosen[0])

    with Reservations() as later:
        assert later.take(chosen[0]), "a start that has ended keeps nothing"


def test_ports_are_given_out_once_even_without_a_writable_cache(few: range, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "no-folder"
    file.touch()

    def cache(_: str) -> Path:
        return file

    monkeypatch.setattr("platformdirs.user_cache_path", cache)

    with Reservations() as reservations:
        assert sorted(reservations.choose() for _ in few) == list(few)
        assert not reservations.take(few[0])


def test_a_port_in_use_is_not_given_out(squatter: socket.socket) -> None:
    with Reservations() as reservations:
        assert not reservations.take(squatter.getsockname()[1])


def test_a_program_listens_only_on_its_own_ports(squatter: socket.socket) -> None:
    with subprocess.Popen([sys.executable, "-c", LISTENING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        own = int(process.stdout.readline())
        running = Running("part", "digest", psutil.Process(process.pid))

        assert running.listens_on([own])
        assert not running.listens_on([own, squatter.getsockname()[1]])
        process.communicate("\n")
    assert not running.listens_on([own])
