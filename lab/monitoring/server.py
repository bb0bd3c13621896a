"""A running Prometheus, asked over its own API."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import urllib3

from lab.cluster import WaitTimeoutError

if TYPE_CHECKING:
    from collections.abc import Callable

Series = list[tuple[dict[str, str], float]]
"""Labels and value of each series."""

_POLL_SECONDS = 0.1


@dataclass(frozen=True)
class PrometheusServer:
    """`url` is where its API is, without /api/v1."""

    url: str

    def instant(self, expression: str) -> Series:
        """What an instant query finds now: each series' labels and value. Raises ValueError with the server's words when it refuses."""
        reply = urllib3.request("GET", f"{self.url}/api/v1/query", fields={"query": expression})
        found: dict[str, Any] = reply.json()
        if found["status"] != "success":
            raise ValueError(f"{expression}: {found['error']}")
        return [(each["metric"], float(each["value"][1])) for each in found["data"]["result"]]

    def wait_for(self, expression: str, look: Callable[[Series], bool], timeout_seconds: float = 60) -> Series:
        """What an instant query finds, as soon as `look` says so. Raises WaitTimeoutError with what was found last."""
        deadline = time.monotonic() + timeout_seconds
        while not look(found := self.instant(expression)):
            if time.monotonic() > deadline:
                raise WaitTimeoutError(f"{expression} was not as wanted within {timeout_seconds:.0f} s; it was {found or 'nothing'}")
            time.sleep(_POLL_SECONDS)
        return found

    def wait_until_scraped(self, moment: float, timeout_seconds: float = 60) -> None:
        """Returns once every target was scraped, and well, after `moment`, in seconds since 1970 UTC."""
        self.wait_for("timestamp(up == 1)", lambda found: bool(found) and all(when > moment for _, when in found), timeout_seconds)
