"""Asking a part whether it is ready, as an orchestrator would, and why a program that was started does not answer."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import urllib3

from lab.errors import LabError
from lab.ports import HOST
from lab.processes import log_tail

if TYPE_CHECKING:
    from lab.certificates import Certificates
    from lab.home import LabHome
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


READY_SECONDS = 120.0
"""How long a part may take until it answers."""

POLL_SECONDS = 0.1

PORT_ATTEMPTS = 3
"""How often ports are chosen before a person is asked: between choosing one and listening on it another program can be quicker."""


class PortTakenError(Exception):
    """A part found its port in use."""

    def again_and_again(self) -> LabError:
        """The error to raise after the last attempt."""
        return LabError(f"{self}, {PORT_ATTEMPTS} times in a row.", "free some ports on loopback and start again.")


def why_it_ended(home: LabHome, part: Part, remedy: str) -> PortTakenError | LabError:
    """The error for a part that ended while it was starting; `remedy` is what to do after its log was read."""
    lines = log_tail(home, part.name)
    if any("address already in use" in line for line in lines):
        return PortTakenError(f"{part.name} found its port taken by another program")
    told = f"{part.name} ended while it was starting. Its last lines:"
    return LabError(told, f"read {home.log(part.name)}, then {remedy}.", evidence=lines)


def never_ready(home: LabHome, part: Part) -> LabError:
    """The error for a part that lives and does not answer."""
    return LabError(
        f"{part.name} was not ready within {READY_SECONDS:.0f} s ({part.probe}). Its last lines:",
        f"read {home.log(part.name)}; on a busy machine, start again.",
        evidence=log_tail(home, part.name),
    )
