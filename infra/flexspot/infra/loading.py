"""How a process loads libraries: those of the extras when a command needs one, and all without looking through them for garbage."""

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
"""The extra of each library that commands import without asking for it."""


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
    """A library of an extra. Raises ExplainedError where the extra is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise _missing(module.partition(".")[0], extra) from None


def require(library: str) -> None:
    """Raise ExplainedError unless a library of EXTRAS is installed. Does not load it."""
    if find_spec(library) is None:
        raise _missing(library, EXTRAS[library])


def install(extra: str) -> str:
    """What brings an extra, as the remedy of an error."""
    larger = " (`flexspot[gke]` and `flexspot[eks]` bring it, too)" if extra == "platform" else ""
    return f"run `pip install 'flexspot[{extra}]'`{larger}, or `uv sync --inexact --extra {extra}` in a checkout."


def _missing(module: str, extra: str) -> ExplainedError:
    return ExplainedError(
        f"this needs the library {module}, which is not installed.",
        install(extra),
        exit_code=ExitCode.BAD_USAGE,
    )


GARBAGE_THRESHOLDS: Final = (50_000, 20, 50)
"""Allocations before the youngest objects are looked through, and such looks before the older ones are. Python's: 700, 10, 10."""


def collect_rarely() -> None:
    """For a process that lives for seconds and keeps what it loads.

    A cloud's SDK is a million objects that stay. With Python's own thresholds they are looked through again and again: a fifth of a
    preview's time (dev-eks, four pairs of runs on 2 cores, 2026-11-25: 14.2 s before, 11.3 s after).
    """
    gc.set_threshold(*GARBAGE_THRESHOLDS)
