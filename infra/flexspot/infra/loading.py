"""Loading of libraries: those of extras only when a command needs them, and all with rare garbage collection."""

from __future__ import annotations

import gc
import importlib
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from flexspot.capacity.values.errors import ExitCode, ExplainedError

if TYPE_CHECKING:
    from collections.abc import Generator

EXTRAS: Final = {
    **dict.fromkeys(("cryptography", "filelock", "grpc", "psutil", "pulumi", "pulumi_kubernetes"), "platform"),
    "pulumi_aws": "eks",
    "pulumi_gcp": "gke",
}
"""The extra of each library that commands import directly."""


@contextmanager
def explained_imports() -> Generator[None]:
    """Raise ExplainedError in place of the failed import of a library of an extra."""
    try:
        yield
    except ModuleNotFoundError as error:
        module = str(error.name).partition(".")[0]
        if module not in EXTRAS:
            raise
        raise _missing(module, EXTRAS[module]) from None


def library(module: str, extra: str) -> Any:
    """Return a library of an extra. Raises ExplainedError if the extra is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise _missing(module.partition(".")[0], extra) from None


def require(library: str) -> None:
    """Raise ExplainedError unless a library of EXTRAS is installed. Does not load it."""
    if find_spec(library) is None:
        raise _missing(library, EXTRAS[library])


def install(extra: str) -> str:
    """Return how to install an extra, as the remedy of an error."""
    larger = " (`flexspot[gke]` and `flexspot[eks]` also include it)" if extra == "platform" else ""
    return f"run `pip install 'flexspot[{extra}]'`{larger}, or `uv sync --inexact --extra {extra}` in a checkout."


def _missing(module: str, extra: str) -> ExplainedError:
    return ExplainedError(
        f"library {module} is required, but not installed.",
        install(extra),
        exit_code=ExitCode.BAD_USAGE,
    )


GARBAGE_THRESHOLDS: Final = (50_000, 20, 50)
"""Allocations between collections of the youngest generation, then collections of one generation per collection of the next.

Python's defaults are 700, 10, 10.
"""


def collect_rarely() -> None:
    """Make garbage collection rare, for a process that runs for seconds and keeps what it loads.

    A cloud's SDK is a million permanent objects. With Python's default thresholds they are scanned repeatedly, which takes a fifth of a
    preview's time (dev-eks, four pairs of runs on 2 cores, 2026-11-25: 14.2 s before, 11.3 s after).
    """
    gc.set_threshold(*GARBAGE_THRESHOLDS)
