"""`python tests/bench_settings.py [EXAMPLES]`: looks for a settings document that ends in a traceback, for longer than a test may."""

from __future__ import annotations

import sys
import time

from rich.console import Console
from settings_strategies import find_tracebacks

EXAMPLES = 10_000


def main() -> None:
    """Tries so many documents; Hypothesis prints and raises the first that is not answered with a plan or with problems."""
    examples = int(sys.argv[1]) if len(sys.argv) > 1 else EXAMPLES
    begun = time.monotonic()
    find_tracebacks(examples)
    Console().print(
        f"{examples} settings documents: each became a plan or was told what is wrong with it ({time.monotonic() - begun:.0f} s)."
    )


if __name__ == "__main__":
    main()
