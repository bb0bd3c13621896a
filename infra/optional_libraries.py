"""The libraries of the extras, loaded when a command needs one: most commands need none, and most people one cloud's."""

from __future__ import annotations

import importlib
from typing import Any

from capacity.values.errors import ExitCode, ExplainedError


def library(module: str, extra: str) -> Any:
    """A library of an extra. Raises ExplainedError where the extra is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise ExplainedError(
            f"the library {module.partition('.')[0]} is not installed.",
            f"install it with Flexspot: `uv sync --inexact --extra {extra}` in a checkout, or flexspot[{extra}] in your requirements.",
            exit_code=ExitCode.BAD_USAGE,
        ) from None
