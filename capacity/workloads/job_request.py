"""What a person asks for of work that runs to an end."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, field_validator

from capacity.workloads.names import INTERRUPTED_EXIT_CODE
from capacity.workloads.request import WorkloadRequest

THREE_DAYS = 3 * 24 * 3600

_MOST_PODS = 2000
"""Fewer than Kubernetes allows: the pods of one job are one decision of the queue, and one ProvisioningRequest."""

ExitCode = Annotated[int, Field(ge=1, le=255)]


class JobRequest(WorkloadRequest):
    """A request for a job.

    `pods` is how many do the work, each with `gpus`. `at_once` lets fewer of them run at a time, where they do not train together; default:
    all. `run_seconds` ends the job; default, and most: the class's limit. `retries` is how many real failures of a pod it survives (1 to
    100), interruptions not counted. `fatal_exit_codes` of the program end the job at once. The finished job is deleted after
    `keep_seconds`, its pods' logs with it. `jobset` makes several pods a JobSet, which restarts all of them after a real failure of one;
    the cluster must have JobSet's controller. `port` is where pod 0 waits for the others (MASTER_PORT).
    """

    pods: Annotated[int, Field(ge=1, le=_MOST_PODS)] = 1
    at_once: Annotated[int, Field(ge=1)] | None = None
    run_seconds: Annotated[int, Field(ge=60)] | None = None
    retries: Annotated[int, Field(ge=1, le=100)] = 3
    fatal_exit_codes: tuple[ExitCode, ...] = ()
    keep_seconds: Annotated[int, Field(ge=0)] = THREE_DAYS
    jobset: bool = False
    port: Annotated[int, Field(ge=1024, le=65_535)] = 29_500

    @field_validator("fatal_exit_codes")
    @classmethod
    def _an_interruption_is_never_fatal(cls, codes: tuple[int, ...]) -> tuple[int, ...]:
        if INTERRUPTED_EXIT_CODE in codes:
            raise ValueError(
                f"{INTERRUPTED_EXIT_CODE} is how an interrupted program ends; leave it out, or the first reclaimed node ends it"
            )
        return codes
