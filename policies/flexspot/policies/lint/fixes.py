"""Changes of `flexspot lint --fix`: each adds what certainly fixes a finding and changes no other character of the file.

The file is not rendered from parsed data, which would lose comments, quotes and the order of keys. The addition is inserted at the
beginning of its mapping or list: below the line of its key, or after its opening bracket.
"""

from __future__ import annotations

import codecs
import difflib
import json
import os
import re
import tempfile
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import yaml

from flexspot.capacity.values.errors import ExitCode, ExplainedError
from flexspot.policies.inventory.reading.source import from_manifest
from flexspot.policies.lint.file_reading import Manifest, read_text
from flexspot.policies.lint.places import steps_of, walk
from flexspot.policies.lint.yaml_reading import DocumentRefusedError, documents_in, nodes_in, yaml_chunks
from flexspot.policies.rules.objects import missing_owner_labels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flexspot.capacity.values.verdict import Addition, ObjectIdentity
    from flexspot.policies.judging import Settings
    from flexspot.policies.lint.report import LintReport, Placed


# Matches scalars that are text anywhere in YAML and in all of its versions.
_PLAIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*[A-Za-z0-9]")
_WORDS: Final = frozenset({"true", "false", "yes", "no", "on", "off", "null", "nan", "inf"})


class NotEditableError(Exception):
    """The reason why an addition is not written, for users."""


@dataclass(frozen=True)
class _YamlPlace:
    """A mapping or list of the document."""

    node: yaml.Node
    key_line: int
    """Line of its key, or its own line."""
    missing: Sequence[str]
    """Steps below it that do not exist yet."""


def with_addition(text: str, steps: Sequence[str], line: int, addition: Addition, *, is_json: bool) -> str:
    """Return the text of one document with the addition. `steps` and `line` (from 1) locate the object in it.

    Raises NotEditableError if the document contains templates, anchors or aliases, or if the result would differ from the document in
    anything but the addition.
    """
    if "{{" in text or "${" in text:
        raise NotEditableError("the document is a template")
    if re.search(r"(?:^|[\s\[{,:-])[&*]\w", text):
        raise NotEditableError("a YAML anchor may share the value to change")
    encoded = text.encode()
    try:
        [root] = [node for node in nodes_in(encoded.replace(b"\t", b" ") if is_json else encoded) if node.start_mark.line + 1 == line]
        whole = [*steps, *steps_of(addition.at)]
        expected = _value_with(_value(encoded, line), whole, addition)
        written, key_line, node = walk(root, whole)
        changed = _written(text, _YamlPlace(node, key_line, whole[written:]), addition, is_json=is_json)
        if _value(changed.encode(), line) != expected:
            raise NotEditableError("Flexspot cannot edit this YAML without other changes")
    except (yaml.YAMLError, DocumentRefusedError, ValueError) as error:
        raise NotEditableError("Flexspot cannot edit this YAML without other changes") from error
    return changed


def _value(text: bytes, line: int) -> Any:
    [document] = [each for each in documents_in(text) if each.line == line]
    return document.value


def _value_with(value: Any, steps: Sequence[str], addition: Addition) -> Any:
    """Return the expected document as plain data. Raises ValueError if another value is in the way."""
    if not steps:
        if addition.key and (value is None or isinstance(value, dict)):
            fields = cast("dict[str, Any]", value or {})
            if addition.key not in fields:
                return {addition.key: addition.value, **fields}
        elif not addition.key and (value is None or isinstance(value, list)):
            return [addition.value, *cast("list[Any]", value or [])]
        raise ValueError(addition.at)
    first, *rest = steps
    if isinstance(value, list):
        listed, place = cast("list[Any]", value), int(first)
        return [_value_with(each, rest, addition) if here == place else each for here, each in enumerate(listed)]
    if value is not None and not isinstance(value, dict):
        raise ValueError(addition.at)
    fields = cast("dict[str, Any]", value or {})
    return {**fields, first: _value_with(fields.get(first), rest, addition)}


def _written(text: str, place: _YamlPlace, addition: Addition, *, is_json: bool) -> str:
    key, value = addition.key, addition.value
    if not isinstance(place.node, yaml.CollectionNode):
        raise NotEditableError(f"{addition.at} has no value")
    if place.missing:
        key, value = place.missing[0], _below(place.missing[1:], {key: value} if key else [value])
    lines = text.split("\n")
    if place.node.flow_style:
        mark = place.node.start_mark
        entry = _inline(value, is_json=is_json)
        entry = f"{_scalar(key, is_json=is_json)}: {entry}" if key else entry
        line = lines[mark.line]
        lines[mark.line] = line[: mark.column + 1] + entry + (", " if place.node.value else "") + line[mark.column + 1 :]
        return "\n".join(lines)
    if place.node.start_mark.line == place.key_line:
        raise NotEditableError(f"{addition.at} is written in flow style, on one line")
    indent, ending = " " * place.node.start_mark.column, "\r" if lines[place.key_line].endswith("\r") else ""
    written = [f"{key}:", *_block(value)] if isinstance(value, (dict, list)) else [f"{key}: {_scalar(value)}"]
    block = written if key else [f"- {_inline(value)}"]
    lines[place.key_line + 1 : place.key_line + 1] = [f"{indent}{each}{ending}" for each in block]
    return "\n".join(lines)


def _below(steps: Sequence[str], value: Any) -> Any:
    """Return the value nested below the missing keys."""
    return {steps[0]: _below(steps[1:], value)} if steps else value


def _block(value: Any) -> list[str]:
    """Return the lines of a mapping or a list below its key."""
    if isinstance(value, list):
        return [f"  - {_inline(each)}" for each in cast("list[Any]", value)]
    found: list[str] = []
    for key, each in cast("dict[str, Any]", value).items():
        found += [f"  {_scalar(key)}:", *(f"  {line}" for line in _block(each))] if isinstance(each, (dict, list)) else []
        found += [] if isinstance(each, (dict, list)) else [f"  {_scalar(key)}: {_scalar(each)}"]
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


_ENDINGS: Final = (".yaml", ".yml", ".json")


@dataclass(frozen=True)
class FileChange:
    """A file before and after its fixes."""

    path: str
    before: str
    after: str
    fixed: int
    """Number of findings that the change fixes."""

    def diff(self) -> str:
        """Return the change as a patch."""
        lines = (each.splitlines(keepends=True) for each in (self.before, self.after))
        return "".join(difflib.unified_diff(*lines, fromfile=self.path, tofile=self.path, n=2))

    def write(self) -> None:
        """Replace the file atomically, so that readers see either the old or the new text. Raises ExplainedError."""
        real = Path(self.path).resolve()
        try:
            _replace(real, self.after)
        except OSError as error:
            problem = f"{self.path} cannot be written: {error.strerror}. It is unchanged."
            raise ExplainedError(problem, "give this user write access, or use --diff.", exit_code=ExitCode.BAD_USAGE) from error


@dataclass(frozen=True)
class Fixes:
    """The changes that fix findings."""

    changes: tuple[FileChange, ...]
    left: tuple[tuple[Placed, str], ...]
    """Fixable findings that are not fixed, with the reason."""


def owner_label(written: str, settings: Settings) -> tuple[str, str]:
    """Return key and value of the option --owner. Raises ExplainedError for a key that is not an owner label."""
    key, _, value = written.partition("=")
    allowed = settings.parameters(missing_owner_labels).texts("label-keys")
    if key in allowed and value:
        return key, value
    problem = f"--owner {written} names no owner."
    raise ExplainedError(problem, f"write KEY=VALUE with one of the keys {', '.join(allowed)}.", exit_code=ExitCode.BAD_USAGE)


def fixes_of(report: LintReport, owner: tuple[str, str] | None) -> Fixes:
    """Return the changes that fix the open findings of a report. Reads each file again.

    Owner labels use only the `owner` that a user named.
    """
    by_path: dict[str, list[Placed]] = {}
    for each in report.open:
        if each.finding.adds is not None:
            by_path.setdefault(each.path, []).append(each)
    left: list[tuple[Placed, str]] = []
    changes = [_change(path, owner, findings, left) for path, findings in by_path.items()]
    return Fixes(tuple(each for each in changes if each.fixed), tuple(left))


def _change(path: str, owner: tuple[str, str] | None, findings: Sequence[Placed], left: list[tuple[Placed, str]]) -> FileChange:
    """Return the additions to one file, made from its end to its beginning so that earlier lines keep their numbers."""
    try:
        before = _text(path)
    except NotEditableError as error:
        left += [(each, str(error)) for each in findings]
        return FileChange(path, "", "", 0)
    manifests = read_text(path, before.encode()).manifests
    identities = [from_manifest(each.value).identity for each in manifests]
    counted = Counter(identities)
    # One addition may fix several findings, such as the owner of each pod template of an object.
    wanted: dict[tuple[ObjectIdentity, str, str], list[tuple[Placed, Addition]]] = {}
    for placed in findings:
        addition = placed.finding.adds
        if addition is not None and addition.value is None and owner:
            addition = replace(addition, key=owner[0], value=owner[1])
        if addition is None or addition.value is None:
            left.append((placed, "name its owner with --owner KEY=VALUE"))
        elif counted[placed.finding.object] == 1:
            wanted.setdefault((placed.finding.object, addition.at, addition.key), []).append((placed, addition))
        else:
            left.append((placed, "the file does not hold one object of this name"))
    after, fixed = before, 0
    places = {identity: place for place, identity in enumerate(identities)}
    for (identity, _, _), listed in sorted(wanted.items(), key=lambda each: -places[each[0][0]]):
        try:
            after = _added(after, manifests[places[identity]], listed[0][1], is_json=path.endswith(".json"))
            fixed += len(listed)
        except NotEditableError as error:
            left += [(placed, str(error)) for placed, _ in listed]
    return FileChange(path, before, after, fixed)


def _text(path: str) -> str:
    if not path.endswith(_ENDINGS):
        raise NotEditableError(f"only files ending in {', '.join(_ENDINGS)} are changed")
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise NotEditableError(f"it cannot be read: {error.strerror}") from error
    if text.startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise NotEditableError("it begins with a byte order mark")
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        raise NotEditableError("it is not UTF-8") from error


def _added(text: str, manifest: Manifest, addition: Addition, *, is_json: bool) -> str:
    """Return the file's text with the addition in the object's document. No line before it may have changed since it was read."""
    for chunk in yaml_chunks(text.encode()):
        if chunk.line == manifest.chunk:
            lines = text.split("\n")
            here = chunk.text.decode()
            changed = with_addition(here, manifest.steps, manifest.line - manifest.chunk, addition, is_json=is_json)
            before = "".join(f"{line}\n" for line in lines[: chunk.line])
            return before + changed + text[len(before) + len(here) :]
    raise NotEditableError("its document was not found again")


def _replace(path: Path, text: str) -> None:
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        Path(name).chmod(path.stat().st_mode)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
