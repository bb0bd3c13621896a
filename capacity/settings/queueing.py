"""The queues as a whole: who installs Kueue, and whether work is let in."""

from __future__ import annotations

from enum import StrEnum

from capacity.records import Record


class Stop(StrEnum):
    """Whether a queue admits work. NONE: it does. HOLD: what runs goes on, nothing new starts. DRAIN: what runs is stopped too."""

    NONE = "none"
    HOLD = "hold"
    DRAIN = "drain"


class Queueing(Record):
    """The platform's queues.

    `stop` holds or drains every team's queue, for maintenance; a team's own `stop` adds to it, and the stricter one counts.
    `existing_kueue` says that the cluster has its Kueue already (v1beta2, fair sharing on): then none is installed. The local control plane
    always brings its own.
    """

    stop: Stop = Stop.NONE
    existing_kueue: bool = False
