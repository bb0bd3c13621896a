"""Writing one addition into the text of a YAML document, without touching a letter of what stands there.

The text is not printed anew from what a parser made of it: that would lose comments, quotes and the order of keys. The addition is put
at the beginning of the mapping or the list that it belongs to: below the line of its key, or behind its opening bracket.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

import yaml

from policies.lint.places import steps_of
from policies.lint.yaml_reading import DocumentRefusedError, documents_in, nodes_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from capacity.values.verdict import Addition

# What is a text for YAML wherever it stands, and for every version of it.
_PLAIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*[A-Za-z0-9]")
_WORDS: Final = frozenset({"true", "false", "yes", "no", "on", "off", "null", "nan", "inf"})


class NotEditableError(Exception):
    """Why an addition is not written, for a person."""


@dataclass(frozen=True)
class _Place:
    """A mapping or a list of the document, the line of its key, and the steps below it that are not written."""

    node: yaml.Node
    key_line: int
    missing: Sequence[str]


def with_addition(text: str, steps: Sequence[str], line: int, addition: Addition, *, is_json: bool) -> str:
    """The text of one document with the addition; `steps` and `line` (from 1) are of the object in it.

    Raises NotEditableError where the document holds templates, anchors or aliases, or where what comes out is not the document with the
    addition and nothing else.
    """
    if "{{" in text or "${" in text:
        raise NotEditableError("the document is a template")
    if re.search(r"(?:^|[\s\[{,:-])[&*]\w", text):
        raise NotEditableError("anchors may share what would be changed")
    encoded = text.encode()
    try:
        [root] = [node for node in nodes_in(encoded.replace(b"\t", b" ") if is_json else encoded) if node.start_mark.line + 1 == line]
        expected = _added(_value(encoded, line), [*steps, *steps_of(addition.at)], addition)
        place = _place(root, [*steps, *steps_of(addition.at)])
        changed = _written(text, place, addition, is_json=is_json)
        if _value(changed.encode(), line) != expected:
            raise NotEditableError("its YAML is written in a way that is not edited")
    except (yaml.YAMLError, DocumentRefusedError, ValueError) as error:
        raise NotEditableError("its YAML is written in a way that is not edited") from error
    return changed


def _value(text: bytes, line: int) -> Any:
    [document] = [each for each in documents_in(text) if each.line == line]
    return document.value


def _added(value: Any, steps: Sequence[str], addition: Addition) -> Any:
    """The document as it should be, as plain data. Raises ValueError where something else stands in the way."""
    if not steps:
        if addition.key and isinstance(value, dict | None):
            held = cast("dict[str, Any]", value or {})
            if addition.key not in held:
                return {addition.key: addition.value, **held}
        elif not addition.key and isinstance(value, list | None):
            return [addition.value, *cast("list[Any]", value or [])]
        raise ValueError(addition.at)
    first, *rest = steps
    if isinstance(value, list):
        listed, place = cast("list[Any]", value), int(first)
        return [_added(each, rest, addition) if here == place else each for here, each in enumerate(listed)]
    if value is not None and not isinstance(value, dict):
        raise ValueError(addition.at)
    fields = cast("dict[str, Any]", value or {})
    return {**fields, first: _added(fields.get(first), rest, addition)}


def _place(root: yaml.Node, steps: Sequence[str]) -> _Place:
    node, key_line = root, -1
    for depth, step in enumerate(steps):
        if isinstance(node, yaml.SequenceNode):
            node, key_line = node.value[int(step)], -1
            continue
        found = next(((key, value) for key, value in cast("yaml.MappingNode", node).value if key.value == step), None)
        if found is None:
            return _Place(node, key_line, steps[depth:])
        node, key_line = found[1], found[0].start_mark.line
    return _Place(node, key_line, ())


def _written(text: str, place: _Place, addition: Addition, *, is_json: bool) -> str:
    key, value = addition.key, addition.value
    if not isinstance(place.node, yaml.CollectionNode):
        raise NotEditableError(f"{addition.at} has no value")
    if place.missing:
        value = {key: value} if key else [value]
        for step in reversed(place.missing[1:]):
            value = {step: value}
        key = place.missing[0]
    lines = text.split("\n")
    if place.node.flow_style:
        mark = place.node.start_mark
        entry = _inline(value, is_json=is_json)
        entry = f"{_scalar(key, is_json=is_json)}: {entry}" if key else entry
        line = lines[mark.line]
        lines[mark.line] = line[: mark.column + 1] + entry + (", " if place.node.value else "") + line[mark.column + 1 :]
        return "\n".join(lines)
    if place.key_line < 0 or place.node.start_mark.line == place.key_line:
        raise NotEditableError(f"{addition.at} does not stand on lines of its own")
    indent, ending = " " * place.node.start_mark.column, "\r" if lines[place.key_line].endswith("\r") else ""
    written = [f"{key}:", *_block(value)] if isinstance(value, dict | list) else [f"{key}: {_scalar(value)}"]
    block = written if key else [f"- {_inline(value)}"]
    lines[place.key_line + 1 : place.key_line + 1] = [f"{indent}{each}{ending}" for each in block]
    return "\n".join(lines)


def _block(value: Any) -> list[str]:
    """The lines of a mapping or a list below its key."""
    if isinstance(value, list):
        return [f"  - {_inline(each)}" for each in cast("list[Any]", value)]
    found: list[str] = []
    for key, each in cast("dict[str, Any]", value).items():
        found += [f"  {_scalar(key)}:", *(f"  {line}" for line in _block(each))] if isinstance(each, dict | list) else []
        found += [] if isinstance(each, dict | list) else [f"  {_scalar(key)}: {_scalar(each)}"]
    return found


def _inline(value: Any, *, is_json: bool = False) -> str:
    if isinstance(value, dict):
        entries = cast("dict[str, Any]", value).items()
        return "{" + ", ".join(f"{_scalar(key, is_json=is_json)}: {_inline(each, is_json=is_json)}" for key, each in entries) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_inline(each, is_json=is_json) for each in cast("list[Any]", value)) + "]"
    return _scalar(value, is_json=is_json)


def _scalar(value: Any, *, is_json: bool = False) -> str:
    plain = isinstance(value, str) and not is_json and _PLAIN.fullmatch(value) and value.lower() not in _WORDS
    return value if plain else json.dumps(value)
