"""Polls the cloud's metadata service for a notice that this machine will be taken. Off by default, and rarely needed in pods.

SIGTERM is enough for a pod: kubelet and Karpenter send it in time. These pollers are for pods on the host's network and for machines
without Kubernetes. Do not open network access for them. On EKS, a hop limit of 1 keeps the metadata service, and the node's credentials,
from pods. On GKE, the metadata server of Workload Identity replaces it; whether that one reports preemption is not verified.
"""

from __future__ import annotations

import json
import logging
import threading
import urllib.error
import urllib.request
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, Self

if TYPE_CHECKING:
    from flexspot_runtime.interruption import Interruption

_LOG = logging.getLogger("flexspot_runtime")

_NOT_FOUND = 404
_UNAUTHORISED = 401
_TIMEOUT_SECONDS = 2.0
_TOKEN_SECONDS = 21600
_MOST_SECONDS = 3600.0
"""Upper limit of the reported time. A clock that jumped must not move the deadline to next week."""


class NoticeSource(Protocol):
    """A cloud's metadata service."""

    @property
    def name(self) -> str:
        """Source named in the notice."""
        ...

    def seconds_left(self, now_unix_seconds: float) -> float | None:
        """Return the time until the machine is taken, or None if there is no notice. Raises OSError when the service does not answer."""
        ...


@dataclass
class GceMetadata:
    """Google Compute Engine: `instance/preempted` is TRUE from the moment that the 30 s of a Spot VM begin.

    https://cloud.google.com/compute/docs/instances/spot#detect-preemption
    """

    endpoint: str = "http://metadata.google.internal"
    notice_seconds: float = 30.0
    name: str = "gce-metadata"

    def seconds_left(self, now_unix_seconds: float) -> float | None:
        """See NoticeSource."""
        del now_unix_seconds
        request = urllib.request.Request(  # noqa: S310 -- the endpoint is this class's own or a test's
            f"{self.endpoint}/computeMetadata/v1/instance/preempted", headers={"Metadata-Flavor": "Google"}
        )
        return self.notice_seconds if _body(request).strip() == "TRUE" else None


@dataclass
class Ec2Metadata:
    """EC2 with IMDSv2: `spot/instance-action` is there from about two minutes before a Spot instance is stopped or terminated.

    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html
    """

    endpoint: str = "http://169.254.169.254"
    name: str = "ec2-metadata"
    _token: str | None = None

    def seconds_left(self, now_unix_seconds: float) -> float | None:
        """See NoticeSource."""
        try:
            said = self._ask()
        except urllib.error.HTTPError as error:
            if error.code == _UNAUTHORISED:
                self._token = None
                return None
            if error.code == _NOT_FOUND:
                return None
            raise
        action: Any = json.loads(said)
        return datetime.fromisoformat(action["time"]).timestamp() - now_unix_seconds

    def _ask(self) -> str:
        if self._token is None:
            headers = {"X-aws-ec2-metadata-token-ttl-seconds": str(_TOKEN_SECONDS)}
            request = urllib.request.Request(  # noqa: S310 -- as above
                f"{self.endpoint}/latest/api/token", method="PUT", headers=headers
            )
            self._token = _body(request)
        headers = {"X-aws-ec2-metadata-token": self._token}
        return _body(urllib.request.Request(f"{self.endpoint}/latest/meta-data/spot/instance-action", headers=headers))  # noqa: S310 -- as above


class NoticePoller:
    """Polls the source inside its `with` block and passes on a notice. Logs the first failed answer and continues."""

    def __init__(self, interruption: Interruption, source: NoticeSource, *, every_seconds: float = 5.0) -> None:
        self.interruption = interruption
        self.source = source
        self.every_seconds = every_seconds
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._poll, name=f"flexspot-{source.name}", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _poll(self) -> None:
        warned = False
        while not self._end.is_set():
            try:
                left = self.source.seconds_left(self.interruption.clock.wall())
            except (OSError, ValueError, KeyError) as error:
                if not warned:
                    _LOG.warning("%s does not answer: %s", self.source.name, error)
                warned, left = True, None
            if left is not None:
                self.interruption.notify(self.source.name, min(max(left, 0.0), _MOST_SECONDS))
                return
            self._end.wait(self.every_seconds)


def _body(request: urllib.request.Request) -> str:
    # No proxy: the metadata service is on the machine, and a proxy would answer for its own.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=_TIMEOUT_SECONDS) as answer:
        return answer.read().decode()
