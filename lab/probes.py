"""Asking a part whether it is ready, the way an orchestrator would: over HTTP, on loopback."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import urllib3

from lab.ports import HOST

if TYPE_CHECKING:
    from lab.certificates import Certificates
    from lab.part import Part

_TIMEOUT_SECONDS = 5.0


class Prober:
    """Sends readiness probes, with the lab's own certificates where parts ask for any; usable by several threads."""

    def __init__(self, certificates: Certificates | None = None) -> None:
        if certificates is None:
            self._http = urllib3.PoolManager(timeout=_TIMEOUT_SECONDS, retries=False)
            return
        self._http = urllib3.PoolManager(
            ca_certs=str(certificates.certificate("ca")),
            cert_file=str(certificates.certificate("admin")),
            key_file=str(certificates.key("admin")),
            timeout=_TIMEOUT_SECONDS,
            retries=False,
        )

    def is_ready(self, part: Part, ports: dict[str, int]) -> bool:
        """Whether `part` listens on all its ports and its probe answers 200 now."""
        return all(_accepts(ports[name]) for name in part.ports) and self._answers(part.probe)

    def _answers(self, url: str) -> bool:
        try:
            return self._http.request("GET", url).status == 200  # noqa: PLR2004 -- HTTP's own number
        except urllib3.exceptions.HTTPError:
            return False


def _accepts(port: int) -> bool:
    # Readiness says nothing of the other ports: Kueue answers its probe before its metrics can be read.
    try:
        socket.create_connection((HOST, port), _TIMEOUT_SECONDS).close()
    except OSError:
        return False
    return True
