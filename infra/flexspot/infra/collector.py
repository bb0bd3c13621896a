"""How often Python looks for cyclic garbage while a command or a program runs."""

from __future__ import annotations

import gc

THRESHOLDS = (50_000, 20, 50)
"""Allocations before the youngest objects are looked through, and such looks before the older ones are. Python's: 700, 10, 10."""


def collect_rarely() -> None:
    """For a process that lives for seconds and keeps what it loads.

    A cloud's SDK is a million objects that stay. With Python's own thresholds they are looked through again and again: a fifth of a
    preview's time (dev-eks, four pairs of runs on 2 cores, 2026-11-25: 14.2 s before, 11.3 s after).
    """
    gc.set_threshold(*THRESHOLDS)
