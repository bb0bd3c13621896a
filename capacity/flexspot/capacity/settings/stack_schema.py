"""The JSON schema of a stack file. `python -m flexspot.capacity.settings.stack_schema` writes docs/settings-reference.md from it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pydantic.json_schema import models_json_schema

from flexspot.capacity.catalog.machines import machines_of
from flexspot.capacity.catalog.platform import VOCABULARIES, Platform
from flexspot.capacity.settings.platform import MODELS
from flexspot.capacity.settings.pools import EksPool, GkePool, LocalPool
from flexspot.capacity.settings.stack_file import SETTINGS_KEY
from flexspot.capacity.values.names import EC2_MACHINE, FORMS, GKE_MACHINE, NAME
from flexspot.capacity.values.shown_text import anchor, table_cell

if TYPE_CHECKING:
    from collections.abc import Iterator


_DESCRIBED = {Platform.GKE: GKE_MACHINE, Platform.EKS: EC2_MACHINE}
"""Patterns of the names of machines that a stack file may describe."""

_POOLS = {Platform.LOCAL: LocalPool, Platform.GKE: GkePool, Platform.EKS: EksPool}


def stack_file_schema() -> dict[str, Any]:
    """Return the schema of a whole `Pulumi.<stack>.yaml`: strict for the project's own key, open for other programs' keys."""
    _, generated = models_json_schema([(model, "validation") for model in MODELS.values()], ref_template="#/$defs/{model}")
    definitions: dict[str, Any] = generated["$defs"]
    _name_the_machines(definitions)
    for each in definitions.values():
        for field in each.get("properties", {}).values():
            # One line, because editors wrap descriptions to their window.
            field["description"] = " ".join(field["description"].split())
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Flexspot stack file",
        "type": "object",
        "required": ["config"],
        "properties": {
            "config": {
                "type": "object",
                "required": [SETTINGS_KEY],
                "properties": {
                    SETTINGS_KEY: {
                        "type": "object",
                        "required": ["cloud"],
                        "properties": {"cloud": {"enum": [platform.value for platform in MODELS]}},
                        # One branch per cloud, so that editors report problems of that branch, and not that none of three fits.
                        "allOf": [
                            {
                                "if": {"properties": {"cloud": {"const": platform.value}}, "required": ["cloud"]},
                                "then": {"$ref": f"#/$defs/{model.__name__}"},
                            }
                            for platform, model in MODELS.items()
                        ],
                    }
                },
            }
        },
        "$defs": definitions,
    }


def _name_the_machines(definitions: dict[str, Any]) -> None:
    """Restrict the machines of pools to those of the catalog with GPUs, and to the names that `machines` may have."""
    for platform in MODELS:
        machines = machines_of(VOCABULARIES[platform].catalog).values()
        names = [machine.name for machine in machines if machine.gpu]
        fields: dict[str, Any] = definitions[_POOLS[platform].__name__]["properties"]
        own = [{"type": "string", "pattern": _DESCRIBED[platform]}] if platform in _DESCRIBED else []
        wanted = [fields["machine"]] + ([fields["alternatives"]["items"]] if "alternatives" in fields else [])
        for each in wanted:
            if own:
                each["anyOf"] = [{"enum": names}, *own]
            else:
                each["enum"] = names


PAGE = Path(__file__).resolve().parents[4] / "docs" / "settings-reference.md"

_ROOTS = {"LocalSettings": "The local control plane", "GkeSettings": "GKE", "EksSettings": "EKS"}
_TITLES = {"Gke": "GKE", "Eks": "EKS", "Gpu": "GPU", "Settings": ""}
_LONGEST_LIST = 12
"""Most values of a choice that are listed. The catalog has more machines than a table can show."""


def page() -> str:
    """Return the text of the page."""
    models: dict[str, Any] = stack_file_schema()["$defs"]
    of_roots: list[set[str]] = [set(models[root]["properties"]) for root in _ROOTS]
    shared = set[str].intersection(*of_roots) - {"cloud", "pools"}
    about = (
        "Every setting of a stack file, under its key `flexspot:platform`. `python -m flexspot.capacity.settings.stack_schema` generates "
        "this page from the settings. [settings.md](settings.md) explains what they are for, with examples."
    )
    name_form = f"A *name* consists of {FORMS[NAME]}."
    lines = ["# Settings", about, name_form, "## Every platform", _table(models["GkeSettings"], models, only=shared)]
    for root, title in _ROOTS.items():
        lines += [f"## {title}", _table(models[root], models, only=set(models[root]["properties"]) - shared)]
    lines.append("## Parts")
    for name in _parts(models):
        model = models[name]
        lines += [
            f"### {_title(name)}",
            table_cell(model.get("description", "")),
            _table(model, models, only=set(model["properties"])),
        ]
    return "\n\n".join(lines) + "\n"


def _parts(models: dict[str, Any]) -> list[str]:
    """Return the models inside the settings, in the order of their first reference."""
    found: dict[str, None] = {}
    waiting = list(_ROOTS)
    while waiting:
        inside = [each for each in _references(models[waiting.pop(0)]) if "properties" in models[each] and each not in found]
        found |= dict.fromkeys(inside)
        waiting += inside
    return list(found)


def _references(schema: Any) -> Iterator[str]:
    """Yield the models that a schema refers to."""
    if isinstance(schema, dict):
        fields = cast("dict[str, Any]", schema)
        if "$ref" in fields:
            yield str(fields["$ref"]).rpartition("/")[2]
        for each in fields.values():
            yield from _references(each)
    elif isinstance(schema, list):
        for each in cast("list[Any]", schema):
            yield from _references(each)


def _table(model: dict[str, Any], models: dict[str, Any], only: set[str]) -> str:
    required = set(model.get("required", ()))
    rows = [
        f"| `{name}` | {_takes(field, models)} | {_default(field, needed=name in required)} | {table_cell(field['description'])} |"
        for name, field in model["properties"].items()
        if name in only
    ]
    return "\n".join(["| setting | takes | default | says |", "|---|---|---|---|", *rows])


def _takes(field: dict[str, Any], models: dict[str, Any]) -> str:
    """Describe the accepted values."""
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        title = _title(name)
        return f"[{title}](#{anchor(title)})" if "properties" in models[name] else _choice(models[name]["enum"])
    if "anyOf" in field:
        return " or ".join(_takes(each, models) for each in field["anyOf"] if each.get("type") != "null")
    if "enum" in field or "const" in field:
        return _choice(field.get("enum") or [field["const"]])
    if field["type"] == "array":
        return f"list of: {_takes(field['items'], models)}"
    if field["type"] == "object":
        [values] = field.get("patternProperties", {}).values() or [field["additionalProperties"]]
        return f"by name: {_takes(values, models)}"
    return _plain(field)


def _plain(field: dict[str, Any]) -> str:
    """Describe the accepted values of a scalar field."""
    match field["type"]:
        case "integer":
            return _between(field)
        case "boolean":
            return "`true` or `false`"
        case "number":
            return f"a number up to {field['maximum']:,}"
        case _:
            pattern = field.get("pattern", "")
            return "a name" if pattern == NAME else table_cell(FORMS.get(pattern, "text"))


def _choice(words: list[Any]) -> str:
    return ", ".join(f"`{each}`" for each in words) if len(words) <= _LONGEST_LIST else f"one of {len(words)} such as `{words[0]}`"


def _between(field: dict[str, Any]) -> str:
    least, most = field.get("minimum"), field.get("maximum")
    if least is not None and most is not None:
        return f"{least:,} to {most:,}"
    return "a whole number" if least is None else f"{least:,} or more"


def _default(field: dict[str, Any], *, needed: bool) -> str:
    if needed:
        return "**required**"
    default = field.get("default")
    if default is None or default in ([], {}):
        return ""
    if isinstance(default, dict):
        return "its own"
    return f"`{default if isinstance(default, str) else json.dumps(default)}`"


def _title(model: str) -> str:
    """Return the title of a model: "EKS pool" for `EksPool`, "Team" for `TeamSettings`."""
    words = [_TITLES.get(word, word.lower()) for word in re.findall("[A-Z][a-z]+", model)]
    title = " ".join(word for word in words if word)
    return title[0].upper() + title[1:]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
