"""Checkpointing and interruption handling inside the user's container, with the standard library only.

A separate package, so that an image installs it without the platform's dependencies. It imports none of the other folders. Modules that
need more than the standard library are fsspec_storage, sqs_queue and pubsub_queue, each with its own extra.
"""

from __future__ import annotations

from flexspot_runtime.checkpointer import Checkpointer
from flexspot_runtime.contents import CheckpointFile, CheckpointReader, CheckpointWriter, CorruptCheckpointError
from flexspot_runtime.group import CheckpointFailedError, Group
from flexspot_runtime.interruption import INTERRUPTED_EXIT_CODE, Interrupted, Interruption, Notice
from flexspot_runtime.names import completion_index, share_of
from flexspot_runtime.resumption import ForeignCheckpointError
from flexspot_runtime.schedule import (
    Clock,
    EverySeconds,
    EverySteps,
    InterruptionRate,
    LeastWaste,
    SystemClock,
    Timed,
    daly_seconds,
    young_seconds,
)
from flexspot_runtime.status import ProgressFile
from flexspot_runtime.storage import LocalFolder
from flexspot_runtime.training import TrainingRun
from flexspot_runtime.worker import GiveBack, Results, Task, Worker, WorkerReport

__all__ = [
    "INTERRUPTED_EXIT_CODE",
    "CheckpointFailedError",
    "CheckpointFile",
    "CheckpointReader",
    "CheckpointWriter",
    "Checkpointer",
    "Clock",
    "CorruptCheckpointError",
    "EverySeconds",
    "EverySteps",
    "ForeignCheckpointError",
    "GiveBack",
    "Group",
    "Interrupted",
    "Interruption",
    "InterruptionRate",
    "LeastWaste",
    "LocalFolder",
    "Notice",
    "ProgressFile",
    "Results",
    "SystemClock",
    "Task",
    "Timed",
    "TrainingRun",
    "Worker",
    "WorkerReport",
    "completion_index",
    "daly_seconds",
    "share_of",
    "young_seconds",
]
