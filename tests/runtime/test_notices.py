"""The metadata services, simulated after their documentation."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from flexspot_runtime import Interruption
from flexspot_runtime.notices import Ec2Metadata, GceMetadata, NoticePoller
from loopback_server import Reply, Request, serving
from manual_clock import ManualClock

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping


@dataclass
class Metadata:
    """The service's current answers."""

    preempted: str = "FALSE"
    action: str | None = None
    tokens: int = 0
    expired: bool = False
    refused: list[str] = field(default_factory=list[str])

    def answer(self, method: str, path: str, headers: Mapping[str, str]) -> tuple[int, str]:
        if path == "/computeMetadata/v1/instance/preempted":
            return (200, self.preempted) if headers.get("metadata-flavor") == "Google" else (403, "")
        if method == "PUT" and path == "/latest/api/token" and "x-aws-ec2-metadata-token-ttl-seconds" in headers:
            self.tokens += 1
            self.expired = False
            return 200, f"token-{self.tokens}"
        if path == "/latest/meta-data/spot/instance-action":
            if self.expired or headers.get("x-aws-ec2-metadata-token") != f"token-{self.tokens}":
                return 401, ""
            return (404, "") if self.action is None else (200, self.action)
        return 400, ""


@contextmanager
def served(metadata: Metadata) -> Generator[str]:
    def reply(asked: Request) -> Reply:
        code, body = metadata.answer(asked.method, asked.path, asked.headers)
        return Reply(code, body.encode(), "text/plain")

    with serving(reply) as address:
        yield address


def test_gce_says_true_when_the_vm_is_preempted() -> None:
    metadata = Metadata()
    with served(metadata) as endpoint:
        source = GceMetadata(endpoint)
        assert source.seconds_left(0) is None
        metadata.preempted = "TRUE"
        assert source.seconds_left(0) == 30


def test_ec2_says_when_the_instance_goes() -> None:
    metadata = Metadata()
    with served(metadata) as endpoint:
        source = Ec2Metadata(endpoint)
        assert source.seconds_left(1_800_000_000) is None
        metadata.action = '{"action": "terminate", "time": "2027-01-15T08:02:00Z"}'
        assert source.seconds_left(1_800_000_000) == 120
        assert metadata.tokens == 1, "one token serves for hours"


def test_an_expired_token_is_renewed() -> None:
    metadata = Metadata(action='{"action": "stop", "time": "2027-01-15T08:02:00Z"}')
    with served(metadata) as endpoint:
        source = Ec2Metadata(endpoint)
        assert source.seconds_left(1_800_000_000) == 120
        metadata.expired = True
        assert source.seconds_left(1_800_000_000) is None
        assert source.seconds_left(1_800_000_000) == 120


@pytest.mark.parametrize("date,left", [(1_800_000_000.0, 120.0), (1_800_000_500.0, 0.0), (0.0, 3600.0)])
def test_a_poller_gives_the_warning_with_the_time_that_is_left(date: float, left: float) -> None:
    """Between 0 and an hour, whatever the machine's date."""
    metadata = Metadata(action='{"action": "terminate", "time": "2027-01-15T08:02:00Z"}')
    interruption = Interruption(15.0, clock=ManualClock(date=date))
    with served(metadata) as endpoint, NoticePoller(interruption, Ec2Metadata(endpoint), every_seconds=0.01):
        assert interruption.wait(10)

    assert interruption.notice
    assert interruption.notice.source == "ec2-metadata"
    assert interruption.notice.deadline - interruption.notice.received_at == left


def test_a_service_that_does_not_answer_is_logged_once_and_polled_again(caplog: pytest.LogCaptureFixture) -> None:
    asked = threading.Semaphore(0)

    @dataclass
    class Silent:
        name: str = "silent"
        times: int = 0

        def seconds_left(self, now_unix_seconds: float) -> float | None:
            self.times += 1
            asked.release()
            raise OSError(f"no route at {now_unix_seconds:.0f}")

    interruption = Interruption(15.0, clock=ManualClock())
    with NoticePoller(interruption, Silent(), every_seconds=0.001):
        assert all(asked.acquire(timeout=10) for _ in range(3))

    assert caplog.text.count("silent does not answer") == 1
    assert not interruption.noticed
