"""What the lab says when it cannot go on."""

from __future__ import annotations

from capacity.values.errors import ExitCode, ExplainedError

__all__ = ["ExitCode", "LabError"]


class LabError(ExplainedError):
    """The lab cannot do this."""
