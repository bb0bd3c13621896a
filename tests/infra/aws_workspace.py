"""A workspace of Amazon's service in this process, and the command's output about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from chargeback_months import HOUR, Month
from fake_prometheus import FakePrometheus
from loopback_certificate import certificate
from signed_prometheus import AwsGate, guarded, report_or_error, unchanged, without_clouds

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest
    from loopback_server import Reply, Request

REGION = "eu-central-1"
HOST = f"aps-workspaces.{REGION}.amazonaws.com"
WORKSPACE = "/workspaces/ws-b226cc2a-a446-46a9-933a-ac50479a5568"
KEY, SECRET, TOKEN = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "a/session+token=="
ROLE = "arn:aws:iam::123456789012:role/chargeback"
SIGNED = ("--prometheus-auth", "aws", "--aws-region", REGION)


@dataclass
class World:
    """Certificates of a server, and the month of its samples."""

    folder: Path
    ca: Path
    tls: Any
    month: Month

    def run(self, url: str, *arguments: str | Path, code: int = 0) -> str:
        """Return the command's output."""
        return report_or_error(url, self.ca, *arguments, code=code, hidden=(SECRET, TOKEN))

    def asked(
        self, gate: Callable[[Request], Reply | None], *arguments: str, between: Callable[[Request], Request] = unchanged, code: int = 0
    ) -> str:
        """Return the command's output about a server behind `gate`, with requests changed by `between`."""
        with guarded(FakePrometheus(self.month), gate, self.tls, between) as address:
            return self.run(f"{address}{WORKSPACE}", *(arguments or SIGNED), code=code)

    def refused(self, *replies: Reply) -> str:
        """Return the command's error for these replies."""
        left = list(replies)
        return self.asked(lambda _: left.pop(0), code=1)


def workspace(folder: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """Return a workspace for AWS's example credentials, which are in the variables. Others of this machine are hidden."""
    without_clouds(str(folder / "nowhere"), monkeypatch)
    for name, value in (("AWS_ACCESS_KEY_ID", KEY), ("AWS_SECRET_ACCESS_KEY", SECRET), ("AWS_SESSION_TOKEN", TOKEN)):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    month = Month()
    month.node("spot-1", 0, 24 * HOUR)
    month.pod("train", "spot-1", 0, 12 * HOUR, gpus=4)
    ca, tls = certificate(folder, HOST)
    return World(folder, ca, tls, month)


def gate_of(token: str | None = TOKEN, secret: str = SECRET) -> AwsGate:
    return AwsGate(REGION, {KEY: (secret, token)})
