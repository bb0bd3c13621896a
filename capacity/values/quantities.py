"""Kubernetes quantities in the form to which the API server rewrites them, so that what is read back is what was written.

Source: k8s.io/apimachinery 0.36, pkg/api/resource, Quantity.CanonicalizeBytes: the largest suffix that leaves a whole number.
"""

from __future__ import annotations

_DECIMAL = ("", "k", "M", "G", "T", "P", "E")
_BINARY = ("Mi", "Gi", "Ti", "Pi", "Ei")
_MIB_IN_A_GIB = 1024


def count_quantity(number: int) -> str:
    """A number of things: 200 stays 200, 1000 becomes 1k."""
    step = 0
    while number and number % 1000 == 0 and step < len(_DECIMAL) - 1:
        number, step = number // 1000, step + 1
    return f"{number}{_DECIMAL[step]}"


def mib_quantity(mib: int) -> str:
    """An amount of memory or disk in MiB: 512 becomes 512Mi, 2048 becomes 2Gi."""
    if mib == 0:
        return "0"
    step = 0
    while mib % 1024 == 0 and step < len(_BINARY) - 1:
        mib, step = mib // 1024, step + 1
    return f"{mib}{_BINARY[step]}"


def gib_quantity(gib: int) -> str:
    """An amount of memory or disk in GiB: 500 becomes 500Gi, 2048 becomes 2Ti."""
    return mib_quantity(gib * _MIB_IN_A_GIB)
