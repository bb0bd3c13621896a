"""Which distribution this code was installed with: the whole platform, or the linter alone."""

from __future__ import annotations

LINTER = "flexspot_lint"
"""The package of the linter's own distribution; hatch_build.py names it so, too."""


def own_version() -> str:
    """The version of whichever it is."""
    from importlib.metadata import version  # noqa: PLC0415 -- a twentieth of the linter's start, and seldom asked for

    return version("flexspot-lint" if __name__.startswith(f"{LINTER}.") else "flexspot")
