"""Generates the components' reference (docs/components-reference.md) and the schema of the plugins.

`python -m flexspot.infra.declaring.components_page` writes both. Programs in other languages use the same schema, so one page is enough:
Python's names are the same with underscores.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flexspot.capacity.values.shown_text import anchor, table_cell
from flexspot.components.hosting.host import Host, hosted
from flexspot.components.hosting.plugin import SCHEMA, written
from flexspot.infra.declaring.platforms import PLATFORMS

if TYPE_CHECKING:
    from collections.abc import Collection

    import pulumi

PAGE = Path(__file__).resolve().parents[4] / "docs" / "components-reference.md"

_ABOUT = (
    "Every component with its inputs and outputs. `python -m flexspot.infra.declaring.components_page` generates this page from the "
    "package's schema. Names are the schema's, as in YAML, TypeScript, Go, C# and Java programs; in Python they have underscores "
    "(`max_nodes` for `maxNodes`). [guides/other-languages.md](guides/other-languages.md) explains how to use them. A plain input shapes "
    "the graph, so its value must be known when the program runs; all other inputs also accept outputs of other resources."
)
_KINDS = {"integer": "a whole number", "number": "a number", "string": "text", "boolean": "`true` or `false`", "object": "an object"}


def offered() -> list[type[pulumi.ComponentResource]]:
    """Return every component for programs in any language: those of `components`, and whole platforms."""
    return [*hosted(), *PLATFORMS]


def page(schema: dict[str, Any]) -> str:
    """Return the page's text, from the host's schema."""
    modules = {each.__name__: each.__module__ for each in offered()}
    parts = ["# Components", _ABOUT]
    for token, described in schema["resources"].items():
        name = _name(token)
        parts += [f"## {name}", f"Python: `{modules[name]}.{name}`", *_paragraphs(described["description"])]
        parts += _table("input", described.get("inputProperties", {}), described.get("requiredInputs", ()))
        outputs = [f"`{output}` ({_takes(each)})" for output, each in described.get("properties", {}).items()]
        parts += [f"Outputs: {', '.join(outputs)}."] if outputs else []
    parts.append("## Types of inputs")
    for token, described in schema["types"].items():
        parts += [f"### {_name(token)}", *_paragraphs(described.get("description", ""))]
        parts += _table("field", described["properties"], described.get("required", ()))
    return "\n\n".join(parts) + "\n"


def _name(token: str) -> str:
    return token.rpartition(":")[2]


def _paragraphs(text: str) -> list[str]:
    return [table_cell(each) for each in re.split(r"\n\s*\n", text.strip()) if each]


def _table(what: str, fields: dict[str, Any], required: Collection[str]) -> list[str]:
    rows = [
        f"| `{name}` | {_takes(each)}{', plain' if each.get('plain') else ''} | {'**yes**' if name in required else ''} "
        f"| {table_cell(each.get('description', ''))} |"
        for name, each in fields.items()
    ]
    return ["\n".join([f"| {what} | takes | required | says |", "|---|---|---|---|", *rows])] if rows else []


def _takes(described: dict[str, Any]) -> str:
    """Return the accepted type in words. A type of the package becomes a link to its table."""
    if reference := described.get("$ref"):
        name = _name(reference.rpartition("/")[2])
        return f"[{name}](#{anchor(name)})" if reference.startswith("#") else f"`{name or reference}`"
    if described["type"] == "array":
        return f"list of: {_takes(described['items'])}"
    if described["type"] == "object" and (values := described.get("additionalProperties")):
        return f"by name: {_takes(values)}"
    return _KINDS[described["type"]]


if __name__ == "__main__":
    described = Host(offered()).described_schema
    PAGE.write_text(page(described), encoding="utf-8")
    SCHEMA.write_text(written(described, offered()), encoding="utf-8")
