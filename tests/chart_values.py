"""Whether values that are said to a chart are ones that it has."""

from __future__ import annotations

from typing import Any

FREE = {"affinity", "nodeSelector"}
"""Maps whose keys are Kubernetes' or the user's, of which a chart's own values hold examples."""

QUANTITIES = {"cpu", "memory"}
"""Kubernetes takes a number or a text for these."""


def unknown_values(values: dict[str, Any], chart_values: dict[str, Any], path: str = "") -> list[str]:
    """What of `values` the chart would ignore or misread, each as its dotted path and, where it is known, what the chart has there.

    A chart takes any value without a word, so a misspelt one is a setting that is not set. Where the chart has an empty map, or nothing,
    anything may stand; a list is not looked into.
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
    """The kind of a YAML value. Pulumi's mocks hand numbers over as floats."""
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
