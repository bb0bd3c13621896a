"""From a file's bytes to the Kubernetes objects in it, and what is wrong with its text. Never raises for what the bytes are."""

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
    Taking,
    compared_files,
    is_assertion_file,
    is_fragment,
    is_patch,
    patch_files,
    taking_of,
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
    """Why something was not judged without that being anybody's fault. The value is how the summary names it."""

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
    """What can be wrong with a file before any rule sees an object of it. These are findings, named like rules."""

    UNREADABLE = "unreadable-manifest"
    DUPLICATE_KEY = "duplicate-key"


@dataclass(frozen=True)
class Manifest:
    """One Kubernetes object of a file.

    `chunk` is how many lines stand before the text that it is in, `line` where that text's first key is, from 1; `steps` lead from the
    root of the document to the object, and are empty unless it is an item of a List. `partial`: a page shows a part of it.
    `unread`: a template makes it, or a page shows it in no whole YAML, so that its kind alone is known: it is judged by nobody, and others
    may refer to it.
    """

    path: str
    chunk: int
    line: int
    steps: tuple[str, ...]
    value: dict[str, Any]
    partial: bool = False
    unread: bool = False


@dataclass(frozen=True)
class Problem:
    """Something wrong with the text. `named` is apiVersion, kind, namespace and name as far as they could be read."""

    kind: InputProblem
    path: str
    line: int
    named: tuple[str, str, str, str]
    message: str


@dataclass
class FilesRead:
    """What was read, of one file or of many. `documents` counts those that hold anything, Kubernetes objects or not."""

    manifests: list[Manifest] = field(default_factory=list[Manifest])
    problems: list[Problem] = field(default_factory=list[Problem])
    skipped: Counter[Skipped] = field(default_factory=Counter[Skipped])
    files: int = 0
    documents: int = 0
    parts: list[tuple[str, Skipped]] = field(default_factory=list[tuple[str, Skipped]])
    """Files that others say to hold parts of objects, as paths in the form of Manifest.path, or patterns of such, with what they are."""
    takings: list[Taking] = field(default_factory=list["Taking"])
    """What kustomizations and tools of GitOps take."""

    def add(self, other: FilesRead) -> None:
        """Takes in what another part of the run read."""
        self.manifests += other.manifests
        self.problems += other.problems
        if other.skipped:
            self.skipped += other.skipped
        self.files += other.files
        self.documents += other.documents
        self.parts += other.parts
        self.takings += other.takings


# What names a Kubernetes object, where the text as a whole cannot be read.
_NAMES_OBJECT = re.compile(rb'^[ \t{-]*"?apiVersion"?[ \t]*:', re.MULTILINE)
_FIELD_TEXT: Final = {
    name: re.compile(rb'^[ \t{]*"?' + name.encode() + rb'"?[ \t]*:[ \t]*["\']?([A-Za-z0-9./_-]+)', re.MULTILINE)
    for name in ("apiVersion", "kind")
}
# A key may be spelled with escapes; then only the parser can tell what it is.
_ESCAPE = re.compile(rb"\\[uUx]")
_NO_BLANK = re.compile(r"\S")
_UTF16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_MARKDOWN: Final = frozenset({".md", ".markdown"})
_BINARY_WITHIN: Final = 8192
_NAMED_WITHIN: Final = 1024 * 1024

_NO_RULE_LOOKS_AT: Final = frozenset({"CustomResourceDefinition"})
"""Kinds that are long and that no reader of flexspot.policies.inventory.reading takes for its own; their text is checked all the same."""


def read_text(path: str, text: bytes) -> FilesRead:
    """What a file holds; its name says whether it is Markdown, JSON or, for any other ending, YAML."""
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
        # A tab within a text of JSON is written as an escape, so every tab is a blank; YAML takes no tabs for indentation.
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
    """Adds what a chunk holds; returns how many values it has."""
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
            _tell_links(reading, path, cast("dict[str, Any]", document.value))
        found = list(_objects(document.value, ()))
        if not found:
            reading.skipped[Skipped.NOT_KUBERNETES] += 1
            continue
        _tell_duplicates(reading, path, chunk, document)
        for steps, value in found:
            if not kustomizes:
                _tell_links(reading, path, value)
            _take(reading, Manifest(path, chunk.line, chunk.line + document.line, steps, value), chunk.text, ending)
    return sum(document.size for document in documents)


def _take(reading: FilesRead, manifest: Manifest, text: bytes, ending: str) -> None:
    """Takes an object to be judged, unless no rule looks at it or it is a part of another."""
    value = manifest.value
    part = _part_of(manifest.path, value, text)
    if part is not None:
        reading.skipped[part] += 1
    elif value["kind"] not in _NO_RULE_LOOKS_AT or _speaks_to_rules(value):
        reading.manifests.append(replace(manifest, partial=True) if ending in _MARKDOWN and is_fragment(value) else manifest)


def _tell_links(reading: FilesRead, path: str, value: dict[str, Any]) -> None:
    """Notes what an object says of other files."""
    reading.parts += [(file, Skipped.PATCH) for file in patch_files(path, value)]
    reading.parts += [(file, Skipped.ASSERTION) for file in compared_files(path, value)]
    taking = taking_of(path, value)
    if taking is not None:
        reading.takings.append(taking)


def _part_of(path: str, value: dict[str, Any], text: bytes) -> Skipped | None:
    """What an object is that is none of its own, by its file's name or by its keys."""
    if is_assertion_file(path):
        return Skipped.ASSERTION
    return Skipped.PATCH if any(mark in text for mark in PATCH_MARKS) and is_patch(value) else None


def _documents(text: bytes, ending: str) -> list[Document]:
    try:
        return documents_in(text)
    except DocumentRefusedError as refused:
        if ending != ".json" or not refused.syntax:
            raise
        # JSON that is no YAML: surrogate pairs, a key of over 1,024 letters, or objects one after the other, which kubectl takes.
        # Written by a program, so without duplicate keys.
        try:
            return [each for line, value in _json_values(text.decode()) for each in _as_yaml(value, line)]
        except (ValueError, RecursionError):
            raise refused from None


def _json_values(text: str) -> Iterator[tuple[int, Any]]:
    """The values that stand one after the other, each with the number of lines before it. Raises ValueError for what is no JSON."""
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
    """What JSON's own reader took, through YAML again, so that its bounds hold for it."""
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


def _tell_duplicates(reading: FilesRead, path: str, chunk: Chunk, document: Document) -> None:
    for each in document.duplicates:
        reason = f"duplicate key {each.key}, first on line {chunk.line + each.first_line}"
        line = chunk.line + each.line
        reading.problems.append(Problem(InputProblem.DUPLICATE_KEY, path, line, named(mapping_of(document.value)), reason))


def _objects(value: Any, steps: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """The object, or those of a List or of an array; the items of a PodList need not say that they are Pods."""
    if isinstance(value, list) and not steps:
        for place, each in enumerate(cast("list[Any]", value)):
            yield from _objects(each, (str(place),))
    if not isinstance(value, dict):
        return
    held = cast("dict[str, Any]", value)
    version, kind = held.get("apiVersion"), held.get("kind")
    if not isinstance(version, str) or not isinstance(kind, str):
        return
    items = held.get("items")
    if not kind.endswith("List") or not isinstance(items, list):
        yield steps, held
        return
    typed = {"apiVersion": version, "kind": kind.removesuffix("List")} if kind != "List" else {}
    for place, item in enumerate(cast("list[Any]", items)):
        if isinstance(item, dict):
            yield from _objects({**typed, **cast("dict[str, Any]", item)}, (*steps, "items", str(place)))


def named(value: dict[str, Any]) -> tuple[str, str, str, str]:
    """apiVersion, kind, namespace and name of an object, empty where they are no texts."""
    of = mapping_of(value.get("metadata"))
    wanted = (value.get("apiVersion"), value.get("kind"), of.get("namespace"), of.get("name"))
    version, kind, namespace, name = (each if isinstance(each, str) else "" for each in wanted)
    return version, kind, namespace, name


def _speaks_to_rules(value: dict[str, Any]) -> bool:
    """Whether an annotation of the object is for the rules, and so has to be checked whatever the object is."""
    return any("flexspot" in key for key in mapping_of(mapping_of(value.get("metadata")).get("annotations")))
