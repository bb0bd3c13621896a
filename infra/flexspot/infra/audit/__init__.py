"""`flexspot audit`: the rules, and what is paid for nothing, on a cluster that runs; it reads and writes nothing."""

from typing import Final

NEW_MINUTES: Final = 15
"""How long a node is given to get its work, unless somebody says otherwise."""

MOST_MINUTES: Final = 366 * 24 * 60
"""The longest that a node can be given: a year."""
