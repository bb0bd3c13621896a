"""One save that runs beside the training."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from flexspot_runtime.group import CheckpointFailedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from flexspot_runtime.schedule import Clock


class BackgroundSave:
    """A save of one step. `run` does it here, `start` in a thread; the thread ends with the process, and a torn checkpoint does not count.

    Hashing and writing leave the interpreter to the training thread; turning tensors into bytes (pickle) does so only for the large ones.
    """

    def __init__(self, step: int, save: Callable[[], None], clock: Clock) -> None:
        self.step = step
        self.failure: CheckpointFailedError | None = None
        self.begun_at = clock.monotonic()
        self.ended_at = self.begun_at
        self._save = save
        self._clock = clock
        self._thread = threading.Thread(target=self._run_aside, name="flexspot-save", daemon=True)
        self._error: BaseException | None = None

    def run(self) -> None:
        """Does it. What fails besides the checkpoint is raised."""
        try:
            self._save()
        except CheckpointFailedError as error:
            self.failure = error
        finally:
            self.ended_at = self._clock.monotonic()

    def start(self) -> None:
        """Does it in a thread."""
        self._thread.start()

    @property
    def ended(self) -> bool:
        """Whether the thread has ended."""
        return not self._thread.is_alive()

    def join(self) -> None:
        """Waits for the thread. Raises what `run` would."""
        self._thread.join()
        if self._error:
            raise self._error

    def _run_aside(self) -> None:
        try:
            self.run()
        except BaseException as error:  # noqa: BLE001 -- raised where the training is
            self._error = error
