"""A check that values for a chart exist in the chart."""

from __future__ import annotations

from typing import Any

FREE = {"affinity", "nodeSelector"}
"""Maps with free keys, for which a chart's own values only contain examples."""

QUANTITIES = {"cpu", "memory"}
"""Fields in which Kubernetes accepts a number or a text."""


def unknown_values(values: dict[str, Any], chart_values: dict[str, Any], path: str = "") -> list[str]:
    """Return the part of `values` that the chart would ignore or misread: dotted paths, with the chart's own value where known.

    A chart silently ignores a misspelt value. Where the chart has an empty map, or nothing, any value is allowed. Lists are not checked.
    """
    found: list[str] = []
    for key, value in values.items():
        where = f"{path}{key}"
        if key not in chart_values:
            found.append(where)
        elif key not in QUANTITIES and _kind(chart_values[key]) not in {_kind(value), "nothing"}:
            found.append(f"{where}: {_kind(value)}, the chart has {_kind(chart_values[key])}")
        elif _kind(value) == "a map" and chart_values[key] and key not in FREE:
            found += unknown_values(value, chart_values[key], f"{where}.")
    return found


def _kind(value: Any) -> str:
    """Return the kind of a YAML value. Pulumi's mocks return numbers as floats."""
    kinds: dict[type, str] = {
        bool: "true or false",
        int: "a number",
        float: "a number",
        str: "text",
        list: "a list",
        dict: "a map",
        type(None): "nothing",
    }
    return kinds[type(value)]
