"""For inside the user's container: checkpointing and interruption handling, on the standard library alone.

A package of its own so that an image installs it without the platform's dependencies; it imports none of the other folders. What needs more
than the standard library is in modules of their own, with an extra each: fsspec_storage, sqs_queue, pubsub_queue.
"""

from __future__ import annotations

from flexspot_runtime.barrier import CheckpointFailedError
from flexspot_runtime.checkpointer import Checkpointer
from flexspot_runtime.clock import Clock, SystemClock
from flexspot_runtime.contents import CheckpointReader, CheckpointWriter, CorruptCheckpointError
from flexspot_runtime.exits import INTERRUPTED_EXIT_CODE, Interrupted
from flexspot_runtime.group import Group
from flexspot_runtime.indexed_job import completion_index, share_of
from flexspot_runtime.interruption import Interruption, Notice
from flexspot_runtime.interval import EverySeconds, InterruptionRate, LeastWaste, daly_seconds, young_seconds
from flexspot_runtime.local_folder import LocalFolder
from flexspot_runtime.progress import ProgressFile
from flexspot_runtime.results import Results
from flexspot_runtime.schedule import EverySteps, Timed
from flexspot_runtime.training import TrainingRun
from flexspot_runtime.worker import GiveBack, Task, Worker, WorkerReport

__all__ = [
    "INTERRUPTED_EXIT_CODE",
    "CheckpointFailedError",
    "CheckpointReader",
    "CheckpointWriter",
    "Checkpointer",
    "Clock",
    "CorruptCheckpointError",
    "EverySeconds",
    "EverySteps",
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
