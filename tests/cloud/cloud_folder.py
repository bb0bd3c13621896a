"""The memory of a stand-in cloud: its resources, in a folder, so that they outlive the provider processes that change them.

One file per resource, one lock for all. Requests and their results are appended to one file of lines in the order of events, so that tests
can check which came first.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from filelock import FileLock

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

HOME_VARIABLE = "STAND_IN_CLOUD"
"""Environment variable that leads provider processes to the folder."""

THERE = "there"
CREATING = "creating"
DELETING = "deleting"
"""CREATING and DELETING are operations in progress. The cloud finishes them, whether or not the caller still waits."""


@dataclass(frozen=True)
class Held:
    """A resource that the cloud has. `state` is THERE, CREATING or DELETING, or describes a deletion that takes time by design."""

    token: str
    identity: str
    urn: str
    inputs: dict[str, Any]
    outputs: dict[str, Any]
    state: str = THERE

    @property
    def is_there(self) -> bool:
        """True if the resource exists for its callers."""
        return self.state in {THERE, CREATING}


@dataclass(frozen=True)
class Event:
    """A request to a cloud or cluster: `operation` on the resource of `urn`. `phase` is begun, done or refused."""

    operation: str
    urn: str
    phase: str
    identity: str = ""
    detail: str = ""
    moment: float = field(default_factory=time.time)

    @property
    def token(self) -> str:
        """The resource's type token."""
        return self.urn.split("::")[2].rpartition("$")[2] if "::" in self.urn else ""

    @property
    def name(self) -> str:
        """The resource's name in Pulumi."""
        return self.urn.split("::", 3)[3] if "::" in self.urn else ""


class CloudFolder:
    """The memory of one cloud and of the programs around it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @contextmanager
    def changing(self) -> Generator[None]:
        """Hold the lock of the folder, so that only one process changes it at a time."""
        self.folder.mkdir(parents=True, exist_ok=True)
        # Each call needs a new lock object: a shared one would let other threads of this process in.
        with FileLock(self.folder / "lock"):
            yield

    @property
    def settings(self) -> dict[str, Any]:
        """Settings of this cloud: account, project, the control plane behind its clusters."""
        file = self.folder / "settings.json"
        return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}

    def configure(self, **settings: Any) -> None:
        """Add settings."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._write(self.folder / "settings.json", self.settings | settings)

    def get(self, token: str, identity: str) -> Held | None:
        """Return a resource, or None."""
        file = self._file(token, identity)
        return _held(file) if file.exists() else None

    def put(self, held: Held) -> None:
        """Write a new or changed resource."""
        file = self._file(held.token, held.identity)
        file.parent.mkdir(parents=True, exist_ok=True)
        self._write(file, asdict(held))

    def remove(self, token: str, identity: str) -> None:
        """Forget a resource."""
        self._file(token, identity).unlink(missing_ok=True)

    def of(self, token: str) -> list[Held]:
        """Return the existing resources of a type."""
        return [held for held in map(_held, sorted(self._folder(token).glob("*.json"))) if held.is_there]

    def all(self) -> list[Held]:
        """Return every resource, including those being deleted."""
        return [_held(file) for file in sorted((self.folder / "resources").glob("*/*.json"))]

    def note(self, event: Event) -> None:
        """Append an event."""
        line = json.dumps(asdict(event)) + "\n"
        descriptor = os.open(self.folder / "events.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            # A single write of an appended line, so that lines of several processes do not mix.
            os.write(descriptor, line.encode())
        finally:
            os.close(descriptor)

    def events(self) -> list[Event]:
        """Return all events in their order."""
        return list(self._events())

    def forget_events(self) -> None:
        """Start a new list of events."""
        (self.folder / "events.jsonl").unlink(missing_ok=True)

    def _events(self) -> Iterator[Event]:
        file = self.folder / "events.jsonl"
        if file.exists():
            for line in file.read_text(encoding="utf-8").splitlines():
                yield Event(**json.loads(line))

    def _write(self, file: Path, content: Any) -> None:
        """Write a file atomically: a killed provider leaves no partial file behind."""
        new = self.folder / f"{os.getpid()}.{time.monotonic_ns()}.new"
        new.write_text(json.dumps(content, indent=1), encoding="utf-8")
        new.replace(file)

    def _folder(self, token: str) -> Path:
        return self.folder / "resources" / quote(token, safe="")

    def _file(self, token: str, identity: str) -> Path:
        return self._folder(token) / f"{quote(identity, safe='')}.json"


def _held(file: Path) -> Held:
    return Held(**json.loads(file.read_text(encoding="utf-8")))
