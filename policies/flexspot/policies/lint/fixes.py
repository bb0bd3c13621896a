"""What `flexspot lint --fix` changes: the one addition that surely fixes a finding, without touching another letter of the file.

The text is not printed anew from what a parser made of it: that would lose comments, quotes and the order of keys. The addition is put
at the beginning of the mapping or the list that it belongs to: below the line of its key, or behind its opening bracket.
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


# What is a text for YAML wherever it stands, and for every version of it.
_PLAIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*[A-Za-z0-9]")
_WORDS: Final = frozenset({"true", "false", "yes", "no", "on", "off", "null", "nan", "inf"})


class NotEditableError(Exception):
    """Why an addition is not written, for a person."""


@dataclass(frozen=True)
class _YamlPlace:
    """A mapping or a list of the document, the line of its key or else its own, and the steps below it that are not written."""

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
        raise NotEditableError("anchors may share what would change")
    encoded = text.encode()
    try:
        [root] = [node for node in nodes_in(encoded.replace(b"\t", b" ") if is_json else encoded) if node.start_mark.line + 1 == line]
        whole = [*steps, *steps_of(addition.at)]
        expected = _value_with(_value(encoded, line), whole, addition)
        written, key_line, node = walk(root, whole)
        changed = _written(text, _YamlPlace(node, key_line, whole[written:]), addition, is_json=is_json)
        if _value(changed.encode(), line) != expected:
            raise NotEditableError("Flexspot cannot edit YAML in this form")
    except (yaml.YAMLError, DocumentRefusedError, ValueError) as error:
        raise NotEditableError("Flexspot cannot edit YAML in this form") from error
    return changed


def _value(text: bytes, line: int) -> Any:
    [document] = [each for each in documents_in(text) if each.line == line]
    return document.value


def _value_with(value: Any, steps: Sequence[str], addition: Addition) -> Any:
    """The document as it should be, as plain data. Raises ValueError where something else stands in the way."""
    if not steps:
        if addition.key and (value is None or isinstance(value, dict)):
            held = cast("dict[str, Any]", value or {})
            if addition.key not in held:
                return {addition.key: addition.value, **held}
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
        raise NotEditableError(f"{addition.at} is not on lines of its own")
    indent, ending = " " * place.node.start_mark.column, "\r" if lines[place.key_line].endswith("\r") else ""
    written = [f"{key}:", *_block(value)] if isinstance(value, (dict, list)) else [f"{key}: {_scalar(value)}"]
    block = written if key else [f"- {_inline(value)}"]
    lines[place.key_line + 1 : place.key_line + 1] = [f"{indent}{each}{ending}" for each in block]
    return "\n".join(lines)


def _below(steps: Sequence[str], value: Any) -> Any:
    """The value below keys that are not there yet."""
    return {steps[0]: _below(steps[1:], value)} if steps else value


def _block(value: Any) -> list[str]:
    """The lines of a mapping or a list below its key."""
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
    """A file as it is and as it would be, and how many findings that fixes."""

    path: str
    before: str
    after: str
    fixed: int

    def diff(self) -> str:
        """The change as a patch."""
        lines = (each.splitlines(keepends=True) for each in (self.before, self.after))
        return "".join(difflib.unified_diff(*lines, fromfile=self.path, tofile=self.path, n=2))

    def write(self) -> None:
        """Replaces the file as a whole, so that a reader sees the one text or the other. Raises ExplainedError."""
        real = Path(self.path).resolve()
        try:
            _replace(real, self.after)
        except OSError as error:
            problem = f"{self.path} cannot be written: {error.strerror}. It is unchanged."
            raise ExplainedError(problem, "give this user write access, or use --diff.", exit_code=ExitCode.BAD_USAGE) from error


@dataclass(frozen=True)
class Fixes:
    """What would be changed, and of what can be fixed but is not, the reason."""

    changes: tuple[FileChange, ...]
    left: tuple[tuple[Placed, str], ...]


def owner_label(written: str, settings: Settings) -> tuple[str, str]:
    """KEY and VALUE of the option --owner. Raises ExplainedError for a key that is no owner's."""
    key, _, value = written.partition("=")
    allowed = settings.parameters(missing_owner_labels).texts("label-keys")
    if key in allowed and value:
        return key, value
    problem = f"--owner {written} names no owner."
    raise ExplainedError(problem, f"write KEY=VALUE with one of the keys {', '.join(allowed)}.", exit_code=ExitCode.BAD_USAGE)


def fixes_of(report: LintReport, owner: tuple[str, str] | None) -> Fixes:
    """The changes that fix the open findings of a report; each file is read again. Owners are only those that the person named."""
    by_path: dict[str, list[Placed]] = {}
    for each in report.open:
        if each.finding.adds is not None:
            by_path.setdefault(each.path, []).append(each)
    left: list[tuple[Placed, str]] = []
    changes = [_change(path, owner, findings, left) for path, findings in by_path.items()]
    return Fixes(tuple(each for each in changes if each.fixed), tuple(left))


def _change(path: str, owner: tuple[str, str] | None, findings: Sequence[Placed], left: list[tuple[Placed, str]]) -> FileChange:
    """The additions to one file, from its end to its beginning, so that what is still to be found stays where it was."""
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
    """The file's text with the addition in the document of the object; the lines before that are as they were when it was read."""
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
