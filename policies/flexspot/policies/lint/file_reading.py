"""Kubernetes objects in a file's bytes, and problems of its text. Never raises, whatever the bytes are."""

from __future__ import annotations

import codecs
import json
import posixpath
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, cast

from flexspot.policies.lint.parts import (
    KUSTOMIZATION_FILES,
    PATCH_MARKS,
    Include,
    compared_files,
    includes_of,
    is_assertion_file,
    is_fragment,
    is_patch,
    patch_files,
)
from flexspot.policies.lint.yaml_reading import (
    FILE_BYTES,
    FILE_DOCUMENTS,
    FILE_VALUES,
    FILLED_LATER,
    Chunk,
    Document,
    DocumentRefusedError,
    documents_in,
    markdown_chunks,
    yaml_chunks,
)
from flexspot.policies.values.field import mapping_of

if TYPE_CHECKING:
    from collections.abc import Iterator


class Skipped(StrEnum):
    """Reason why something was not judged although it is not wrong. The value is its name in the summary."""

    NOT_KUBERNETES = "documents that are not Kubernetes objects"
    TEMPLATE = "templates that must be rendered first"
    EXAMPLE = "examples in Markdown that are not complete YAML"
    NOT_YAML = "files that are not YAML and name no Kubernetes object"
    PATCH = "Kustomize patches, to be judged in its output"
    ASSERTION = "partial objects that a test compares with a cluster"
    BINARY = "binary files"
    TOO_LARGE = "large files that name no Kubernetes object"
    LINK = "links to folders, or to nothing"
    NOT_A_FILE = "pipes, sockets and devices"
    EXCLUDED = "excluded files"


class InputProblem(StrEnum):
    """A problem of a file that is found before rules see its objects. Problems are findings, named like rules."""

    UNREADABLE = "unreadable-manifest"
    DUPLICATE_KEY = "duplicate-key"


@dataclass(frozen=True)
class Manifest:
    """One Kubernetes object in a file."""

    path: str
    chunk: int
    """Number of lines before the document's text."""
    line: int
    """Line of the document's first key, from 1."""
    steps: tuple[str, ...]
    """Path from the document's root to the object. Empty unless it is an item of a List."""
    value: dict[str, Any]
    partial: bool = False
    """True if a page shows only a part of the object."""
    unread: bool = False
    """True for a template, or for incomplete YAML in a page, of which only the kind is known.

    No rule judges it, but others may refer to it.
    """


@dataclass(frozen=True)
class Problem:
    """A problem of a file's text."""

    kind: InputProblem
    path: str
    line: int
    named: tuple[str, str, str, str]
    """apiVersion, kind, namespace and name, as far as they could be read."""
    message: str


@dataclass
class FilesRead:
    """The contents of one or more files."""

    manifests: list[Manifest] = field(default_factory=list[Manifest])
    problems: list[Problem] = field(default_factory=list[Problem])
    skipped: Counter[Skipped] = field(default_factory=Counter[Skipped])
    files: int = 0
    documents: int = 0
    """Number of documents with content, whether Kubernetes objects or not."""
    parts: list[tuple[str, Skipped]] = field(default_factory=list[tuple[str, Skipped]])
    """Paths, or patterns of paths, of files that other files declare as parts of objects, with their kind. Same form as Manifest.path."""
    includes: list[Include] = field(default_factory=list["Include"])
    """Files that kustomizations and GitOps tools include."""

    def add(self, other: FilesRead) -> None:
        """Add the contents of other files."""
        self.manifests += other.manifests
        self.problems += other.problems
        if other.skipped:
            self.skipped += other.skipped
        self.files += other.files
        self.documents += other.documents
        self.parts += other.parts
        self.includes += other.includes


# Finds a Kubernetes object in text that cannot be parsed.
_NAMES_OBJECT = re.compile(rb'^[ \t{-]*"?apiVersion"?[ \t]*:', re.MULTILINE)
_FIELD_TEXT: Final = {
    name: re.compile(rb'^[ \t{]*"?' + name.encode() + rb'"?[ \t]*:[ \t]*["\']?([A-Za-z0-9./_-]+)', re.MULTILINE)
    for name in ("apiVersion", "kind")
}
# Keys may contain escapes, which only the parser can decode.
_ESCAPE = re.compile(rb"\\[uUx]")
_NO_BLANK = re.compile(r"\S")
_UTF16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_MARKDOWN: Final = frozenset({".md", ".markdown"})
_BINARY_WITHIN: Final = 8192
_NAMED_WITHIN: Final = 1024 * 1024

_UNUSED_KINDS: Final = frozenset({"CustomResourceDefinition"})
"""Long kinds that no reader of flexspot.policies.inventory.reading uses. Their text is checked all the same."""


def read_text(path: str, text: bytes) -> FilesRead:
    """Read the contents of a file. The name's ending decides between Markdown, JSON and, for any other, YAML."""
    reading = FilesRead(files=1)
    if len(text) > FILE_BYTES:
        _refuse_file(reading, path, text, f"the file is over {FILE_BYTES >> 20} MiB, the most that is read")
        return reading
    if text.startswith(_UTF16):
        text = text.decode("utf-16", errors="replace").encode()
    elif b"\0" in text[:_BINARY_WITHIN]:
        reading.skipped[Skipped.BINARY] += 1
        return reading
    text = text.removeprefix(codecs.BOM_UTF8)
    if text.count(b"\n---") > 4 * FILE_DOCUMENTS:
        _refuse_file(reading, path, text, f"the file has over {4 * FILE_DOCUMENTS} lines that begin with ---")
        return reading
    ending = posixpath.splitext(path)[1].lower()
    if ending == ".json":
        # JSON strings contain tabs only as escapes, so every tab is white space. YAML does not accept tabs as indentation.
        text = text.replace(b"\t", b" ")
    values = 0
    for chunk in markdown_chunks(text) if ending in _MARKDOWN else yaml_chunks(text):
        values += _read_chunk(reading, path, chunk, ending)
        if reading.documents > FILE_DOCUMENTS or values > FILE_VALUES:
            reason = f"it has over {FILE_DOCUMENTS} documents or {FILE_VALUES} values; what comes after this line is not judged"
            reading.problems.append(Problem(InputProblem.UNREADABLE, path, chunk.line + 1, ("", "", "", ""), reason))
            break
    return reading


def _refuse_file(reading: FilesRead, path: str, text: bytes, reason: str) -> None:
    if b"apiVersion" in text[:_NAMED_WITHIN]:
        reading.problems.append(Problem(InputProblem.UNREADABLE, path, 1, ("", "", "", ""), reason))
    else:
        reading.skipped[Skipped.TOO_LARGE] += 1


def _read_chunk(reading: FilesRead, path: str, chunk: Chunk, ending: str) -> int:
    """Add the contents of a chunk, and return its number of values."""
    reading.documents += 1
    kustomizes = posixpath.basename(path) in KUSTOMIZATION_FILES
    if b"apiVersion" not in chunk.text and _ESCAPE.search(chunk.text) is None and not kustomizes:
        reading.skipped[Skipped.NOT_KUBERNETES] += 1
        return 0
    try:
        documents = _documents(chunk.text, ending)
    except DocumentRefusedError as refused:
        _refuse(reading, path, chunk, ending, refused)
        return 0
    for document in documents:
        if kustomizes and isinstance(document.value, dict):
            _record_links(reading, path, cast("dict[str, Any]", document.value))
        found = list(_objects(document.value, ()))
        if not found:
            reading.skipped[Skipped.NOT_KUBERNETES] += 1
            continue
        _record_duplicates(reading, path, chunk, document)
        for steps, value in found:
            if not kustomizes:
                _record_links(reading, path, value)
            _add_object(reading, Manifest(path, chunk.line, chunk.line + document.line, steps, value), chunk.text, ending)
    return sum(document.size for document in documents)


def _add_object(reading: FilesRead, manifest: Manifest, text: bytes, ending: str) -> None:
    """Add an object to be judged, unless no rule covers it or it is a part of another object."""
    value = manifest.value
    part = _part_of(manifest.path, value, text)
    if part is not None:
        reading.skipped[part] += 1
    elif value["kind"] not in _UNUSED_KINDS or _has_rule_annotation(value):
        reading.manifests.append(replace(manifest, partial=True) if ending in _MARKDOWN and is_fragment(value) else manifest)


def _record_links(reading: FilesRead, path: str, value: dict[str, Any]) -> None:
    """Record an object's references to other files."""
    reading.parts += [(file, Skipped.PATCH) for file in patch_files(path, value)]
    reading.parts += [(file, Skipped.ASSERTION) for file in compared_files(path, value)]
    included = includes_of(path, value)
    if included is not None:
        reading.includes.append(included)


def _part_of(path: str, value: dict[str, Any], text: bytes) -> Skipped | None:
    """Return the reason to skip an object that is only a part of one, by its file's name or its keys."""
    if is_assertion_file(path):
        return Skipped.ASSERTION
    return Skipped.PATCH if any(mark in text for mark in PATCH_MARKS) and is_patch(value) else None


def _documents(text: bytes, ending: str) -> list[Document]:
    try:
        return documents_in(text)
    except DocumentRefusedError as refused:
        if ending != ".json" or not refused.syntax:
            raise
        # JSON that is not YAML: surrogate pairs, keys of over 1,024 characters, or several objects in a row, which kubectl accepts.
        # Programs write such JSON, so it has no duplicate keys.
        try:
            return [each for line, value in _json_values(text.decode()) for each in _as_yaml(value, line)]
        except (ValueError, RecursionError):
            raise refused from None


def _json_values(text: str) -> Iterator[tuple[int, Any]]:
    """Yield consecutive JSON values, each with the number of lines before it. Raises ValueError for other text."""
    reader = json.JSONDecoder()
    place, line = 0, 0
    while True:
        begin = _NO_BLANK.search(text, place)
        if begin is None:
            return
        line += text.count("\n", place, begin.start())
        value, end = reader.raw_decode(text, begin.start())
        yield line, value
        line += text.count("\n", begin.start(), end)
        place = end


def _as_yaml(value: Any, line: int) -> Iterator[Document]:
    """Parse a JSON value again as YAML, so that the limits of YAML apply."""
    for each in documents_in(json.dumps(value, ensure_ascii=False).encode(errors="replace")):
        yield replace(each, line=line + 1)


def _refuse(reading: FilesRead, path: str, chunk: Chunk, ending: str, refused: DocumentRefusedError) -> None:
    if refused.template or (ending in _MARKDOWN and refused.syntax):
        reading.skipped[Skipped.TEMPLATE if refused.template else Skipped.EXAMPLE] += 1
        found = [pattern.search(chunk.text) for pattern in _FIELD_TEXT.values()]
        if all(found):
            version, kind = (match[1].decode() for match in found if match)
            value = {"apiVersion": version, "kind": kind, "metadata": {"name": FILLED_LATER}}
            reading.manifests.append(Manifest(path, chunk.line, chunk.line + 1, (), value, partial=True, unread=True))
    elif _NAMES_OBJECT.search(chunk.text) is None:
        reading.skipped[Skipped.NOT_YAML] += 1
    else:
        found = [pattern.search(chunk.text) for pattern in _FIELD_TEXT.values()]
        version, kind = (match[1].decode() if match else "" for match in found)
        reading.problems.append(Problem(InputProblem.UNREADABLE, path, chunk.line + refused.line, (version, kind, "", ""), str(refused)))


def _record_duplicates(reading: FilesRead, path: str, chunk: Chunk, document: Document) -> None:
    for each in document.duplicates:
        reason = f"duplicate key {each.key}, first on line {chunk.line + each.first_line}"
        line = chunk.line + each.line
        reading.problems.append(Problem(InputProblem.DUPLICATE_KEY, path, line, named(mapping_of(document.value)), reason))


def _objects(value: Any, steps: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Yield the object, or the items of a List or an array. Items of a PodList need not have a kind."""
    if isinstance(value, list) and not steps:
        for place, each in enumerate(cast("list[Any]", value)):
            yield from _objects(each, (str(place),))
    if not isinstance(value, dict):
        return
    fields = cast("dict[str, Any]", value)
    version, kind = fields.get("apiVersion"), fields.get("kind")
    if not isinstance(version, str) or not isinstance(kind, str):
        return
    items = fields.get("items")
    if not kind.endswith("List") or not isinstance(items, list):
        yield steps, fields
        return
    typed = {"apiVersion": version, "kind": kind.removesuffix("List")} if kind != "List" else {}
    for place, item in enumerate(cast("list[Any]", items)):
        if isinstance(item, dict):
            yield from _objects({**typed, **cast("dict[str, Any]", item)}, (*steps, "items", str(place)))


def named(value: dict[str, Any]) -> tuple[str, str, str, str]:
    """Return apiVersion, kind, namespace and name of an object. Empty where they are not text."""
    of = mapping_of(value.get("metadata"))
    wanted = (value.get("apiVersion"), value.get("kind"), of.get("namespace"), of.get("name"))
    version, kind, namespace, name = (each if isinstance(each, str) else "" for each in wanted)
    return version, kind, namespace, name


def _has_rule_annotation(value: dict[str, Any]) -> bool:
    """Return whether the object has an annotation for rules, which is checked for every kind."""
    return any("flexspot" in key for key in mapping_of(mapping_of(value.get("metadata")).get("annotations")))
