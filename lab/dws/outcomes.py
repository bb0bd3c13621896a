"""What may become of a ProvisioningRequest, and who says what becomes of one."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lab.cluster import KubeObject

OUTCOMES_PARAMETER = "lab-outcomes"
"""A parameter of the request: an outcome for each attempt, with commas between; the last one counts for all that follow.

A Job says it by the annotation JOB_ANNOTATION, from which Kueue makes the parameter.
"""

JOB_ANNOTATION = f"provreq.kueue.x-k8s.io/{OUTCOMES_PARAMETER}"

OUTCOME_ANNOTATION = "lab.flexspot.dev/outcome"
"""An annotation that anybody puts on the request itself, at any time: the outcome from then on, whatever the parameter says."""


class Outcome(StrEnum):
    """What GKE does with a request, told by the conditions of autoscaling.x-k8s.io/v1.

    ACCEPTED: waits for capacity. PROVISIONED: all of its nodes are there. REFUSED: cannot be had. BOOKING_EXPIRED: was provisioned, and
    taken back because nobody used it in time. CAPACITY_REVOKED: was provisioned and used, and taken away.
    """

    ACCEPTED = "accepted"
    PROVISIONED = "provisioned"
    REFUSED = "refused"
    BOOKING_EXPIRED = "booking-expired"
    CAPACITY_REVOKED = "capacity-revoked"


_WAITING = (False, "ResourcesNotYetAvailable", "Waiting for resources. Currently there are not enough resources available.")
_DONE = (True, "Provisioned", "Provisioning Request was successfully provisioned.")

_CONDITIONS: dict[Outcome, dict[str, tuple[bool, str, str]]] = {
    Outcome.ACCEPTED: {"Provisioned": _WAITING},
    Outcome.PROVISIONED: {"Provisioned": _DONE},
    Outcome.REFUSED: {"Failed": (True, "OutOfResources", "The zone does not have enough resources available to fulfill the request.")},
    Outcome.BOOKING_EXPIRED: {
        "Provisioned": _DONE,
        "BookingExpired": (True, "BookingExpired", "The capacity was booked for 10 minutes and no pod used it."),
    },
    Outcome.CAPACITY_REVOKED: {
        "Provisioned": _DONE,
        "CapacityRevoked": (True, "CapacityRevoked", "The run duration of the request has passed; its nodes were deleted."),
    },
}


def outcome_of(request: KubeObject) -> Outcome:
    """What is to become of a request: its annotation, else its parameter, else PROVISIONED.

    Raises ValueError for a word that is no outcome.
    """
    annotations: dict[str, str] = request["metadata"].get("annotations") or {}
    parameters: dict[str, str] = request["spec"].get("parameters") or {}
    if told := annotations.get(OUTCOME_ANNOTATION):
        return Outcome(told)
    words = parameters.get(OUTCOMES_PARAMETER, Outcome.PROVISIONED.value)
    each_attempt = [Outcome(word.strip()) for word in words.split(",")]
    # Kueue ends a request's name with the number of the attempt (v0.19.0, provisioning.ProvisioningRequestName).
    attempt = int(request["metadata"]["name"].rpartition("-")[2])
    return each_attempt[min(attempt, len(each_attempt)) - 1]


def conditions_for(outcome: Outcome) -> list[KubeObject]:
    """The conditions of a request's status."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    accepted = (True, "Accepted", "Provisioning Request was accepted.")
    return [
        {"type": name, "status": str(true), "reason": reason, "message": message, "lastTransitionTime": now}
        for name, (true, reason, message) in {"Accepted": accepted, **_CONDITIONS[outcome]}.items()
    ]
