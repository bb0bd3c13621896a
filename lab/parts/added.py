"""Parts that a running lab gets for as long as somebody asks: what no lab needs to be one."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from lab.ports import Reservations
from lab.processes import (
    GRACE_SECONDS,
    POLL_SECONDS,
    PORT_ATTEMPTS,
    READY_SECONDS,
    PortTakenError,
    Prober,
    Running,
    end,
    never_ready,
    spawn,
    why_it_ended,
)
from lab.progress import interrupts_wait

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lab.home import LabHome
    from lab.part import Part


def brought_up(home: LabHome, ports: Sequence[str], parts: Callable[[dict[str, int]], list[Part]]) -> tuple[list[Running], dict[str, int]]:
    """Starts parts on free ports of these names and returns once all are ready; nothing is left of those that do not become so."""
    for attempt in range(1, PORT_ATTEMPTS + 1):
        running: list[Running] = []
        try:
            with Reservations() as reservations:
                chosen = {name: reservations.choose() for name in ports}
                for part in parts(chosen):
                    with interrupts_wait():
                        running.append(spawn(home, part))
                    _wait_until_ready(home, part, running[-1], chosen)
        except PortTakenError as error:
            end(running, GRACE_SECONDS)
            if attempt == PORT_ATTEMPTS:
                raise error.again_and_again() from error
        except BaseException:
            end(running, GRACE_SECONDS)
            raise
        else:
            return running, chosen
    raise AssertionError("the last attempt returns or raises")


def _wait_until_ready(home: LabHome, part: Part, process: Running, ports: dict[str, int]) -> None:
    prober, deadline = Prober(), time.monotonic() + READY_SECONDS
    while not (prober.is_ready(part, ports) and process.listens_on(ports[name] for name in part.ports)):
        if not process.is_alive:
            raise why_it_ended(home, part, "start again")
        if time.monotonic() > deadline:
            raise never_ready(home, part)
        time.sleep(POLL_SECONDS)
