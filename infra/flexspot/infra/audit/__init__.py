"""`flexspot audit`: rules and wasted money on a running cluster, which it only reads."""

from typing import Final

NEW_MINUTES: Final = 15
"""Default age in minutes below which a node without work is not idle."""

MOST_MINUTES: Final = 366 * 24 * 60
"""Longest such age: a year."""
