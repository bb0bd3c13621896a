"""The documents of a file's text as plain data. The text is split before it is parsed; sizes are limited and duplicate keys reported.

Text that is not YAML may be a template: source with values that Helm, Terraform, envsubst or a person must still fill in.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final, cast

import yaml

from flexspot.capacity.values.engine_marks import UNKNOWN_TEXT

if TYPE_CHECKING:
    from collections.abc import Iterator


# A line of content: not blank, no comment, no directive such as %YAML, no bare `---`. Used with search, because a pattern that matches all
# other lines in sequence would store a backtracking point for each.
_CONTENT: Final = re.compile(rb"^(?!%|---[ \t]*(?:#|\r?$))[ \t]*[^#\s]", re.MULTILINE)
_FENCE: Final = re.compile(rb"^(?P<indent>[ \t]*)(?P<fence>`{3,}|~{3,})[ \t]*(?:\{[ \t.]*)?(?P<language>[A-Za-z]*)[^\n`]*$")
_LANGUAGES: Final = frozenset({b"yaml", b"yml", b"json"})
_AFTER_SEPARATOR: Final = frozenset(b" \t\r\n")


@dataclass(frozen=True)
class Chunk:
    """The text of one document."""

    line: int
    """Number of lines before it in the file."""
    text: bytes


def yaml_chunks(text: bytes, line: int = 0) -> Iterator[Chunk]:
    """Yield the documents of YAML text, separated by `---` at the start of a line, which no scalar may contain (YAML 1.1, section 9.1).

    Skips documents of blanks and comments only.
    """
    carried = b""
    for part in _parts(text):
        here = carried + part
        carried = b""
        if _CONTENT.search(here) is not None:
            yield Chunk(line, here)
        elif here.startswith(b"%") or b"\n%" in here:
            # Directives belong to the document after them.
            carried = here
            continue
        line += here.count(b"\n")


def markdown_chunks(text: bytes) -> Iterator[Chunk]:
    """Yield the documents in fenced YAML and JSON blocks of Markdown, without the indentation of fences in lists."""
    opened: bytes | None = None
    body: list[bytes] = []
    indent = 0
    first = 0
    wanted = False
    # Line by line, because a list of all lines would take several times the text's memory.
    for number, whole in enumerate(BytesIO(text)):
        line = whole.removesuffix(b"\n")
        bare = line.rstrip()
        if opened is None:
            match = _FENCE.match(bare)
            if match is not None:
                opened, indent, first = match["fence"], len(match["indent"]), number + 1
                body = []
                wanted = match["language"].lower() in _LANGUAGES
        elif bare.lstrip().startswith(opened) and not bare.strip(opened[:1] + b" \t"):
            if wanted:
                yield from yaml_chunks(b"\n".join(body) + b"\n", first)
            opened = None
        elif wanted:
            body.append(line[indent:] if not line[:indent].strip() else line)


def _parts(text: bytes) -> Iterator[bytes]:
    """Yield the parts of the text, split before each line that is `---` or begins with `---` and white space."""
    begin = 0
    found = text.find(b"\n---")
    while found >= 0:
        if found + 4 == len(text) or text[found + 4] in _AFTER_SEPARATOR:
            yield text[begin : found + 1]
            begin = found + 1
        found = text.find(b"\n---", found + 4)
    yield text[begin:]


_TEMPLATE_MARKS: Final = (b"{{", b"{%", b"%{", b"<%")
"""Marks of Helm, Go and Jinja; of directives in Jinja and Terraform; of ERB and EJS."""

_UNFILLED: Final = re.compile(
    rb"^[ \t]*(?:- )*(?:[\w./-]+:[ \t]+)?(?:__[A-Z][A-Z0-9_]*__|@[A-Za-z_]\w*@|%(?:[sdvq](?![a-z])|\([a-z_]+\)s)|\{[A-Za-z_][\w.-]*\}(?=\S)"
    rb"|\$\{[^}\n]*\}|<[A-Z][A-Z0-9_ -]*>)"
)
"""A line that is only a placeholder, or whose value begins with one that cannot begin a YAML scalar."""


def _is_template(text: bytes, line: int) -> bool:
    """Return whether text that does not parse is a template: it contains template marks, or a placeholder where the parser stopped.

    The parser stops at the placeholder or up to two lines later, because it may read it as the start of a key.
    """
    return any(mark in text for mark in _TEMPLATE_MARKS) or any(
        _UNFILLED.match(each) is not None for each in text.split(b"\n", line)[max(0, line - 3) : line]
    )


FILE_BYTES: Final = 64 * 1024 * 1024
"""Size of the largest file that is read. A rendering of several hundred objects has a few MiB."""

FILE_DOCUMENTS: Final = 50_000
"""Most documents of one file. A file with over four times as many separators is not read at all."""

FILE_VALUES: Final = 2_000_000
"""Most values of one file. 64 MiB of ordinary YAML have about this many, and they take about half a GiB of memory."""

DOCUMENT_BYTES: Final = 16 * 1024 * 1024
"""Size of the largest document. The API server accepts no object over 3 MiB; a List that kubectl prints may be larger."""

NODES: Final = 500_000
"""Most values in one document. Values that aliases repeat count once per repetition."""

DEPTH: Final = 100
"""Deepest nesting of lists and mappings. A schema within a CustomResourceDefinition has about 50 levels."""

MAX_REPORTED_DUPLICATES: Final = 20
"""Most duplicate keys of one document that are reported as separate findings."""


Scalar = str | int | float | bool | None

_WORDS: Final[dict[str, Scalar]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"), False),
}

# A longer number is read as text: no field of Kubernetes accepts one, and converting it would be slow.
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9_]{0,30})")
_OTHER_BASE = re.compile(r"(?P<sign>[-+]?)(?:0b(?P<binary>[01_]{1,64})|0x(?P<hexadecimal>[0-9a-fA-F_]{1,16})|0o?(?P<octal>[0-7_]{1,22}))")
_FLOAT = re.compile(r"[-+]?(?:[0-9][0-9_]{0,30}\.[0-9_]{0,30}|\.[0-9]{1,30})(?:[eE][-+]?[0-9]{1,3})?")
_BASES: Final = {"binary": 2, "hexadecimal": 16, "octal": 8}

_REMEMBERED: dict[str, Scalar] = dict(_WORDS)
_REMEMBERED_AT_MOST = 50_000


def plain_scalar(written: str) -> Scalar:
    """Return the value of a scalar without quotes and without a tag.

    Like goyaml.v2, which sigs.k8s.io/yaml wraps, except for its rarest forms. Dates stay text, because JSON has none. Quantities such as
    1e3 stay text, because both forms mean the same.
    """
    if written in _REMEMBERED:
        return _REMEMBERED[written]
    value = _converted(written) if written[0] in "0123456789+-." else written
    if len(_REMEMBERED) < _REMEMBERED_AT_MOST and len(written) < 64:  # noqa: PLR2004 -- long texts are rarely repeated
        _REMEMBERED[written] = value
    return value


def _converted(written: str) -> Scalar:
    if _INTEGER.fullmatch(written):
        return int(written.replace("_", ""))
    if _FLOAT.fullmatch(written):
        return float(written.replace("_", ""))
    if match := _OTHER_BASE.fullmatch(written):
        [(base, digits)] = [(_BASES[name], match[name]) for name in _BASES if match[name]]
        digits = digits.replace("_", "")
        return int(match["sign"] + digits, base) if digits else written
    return written


_PLAIN: Final = "plain"
_TEXT: Final = "text"
_STRING_TAG: Final = "tag:yaml.org,2002:str"

FILLED_LATER: Final = UNKNOWN_TEXT
"""Value of a scalar with a placeholder, such as ${GPUS}, '{{ .Values.gpus }}' or <image>: unknown."""

_PLACEHOLDER_SIGNS: Final = (b"{{", b"$", b"%", b"<", b"@", b"[[")
"""Every placeholder contains one of these."""

_PLACEHOLDER: Final = re.compile(
    r"\{\{|\$\{"  # Helm, Jinja and Go; envsubst, Flux and Terraform
    r"|^\S*\$(?:\(\w+\)|[A-Z_][A-Z0-9_]*\b)\S*$"  # shells and Kubernetes; a script with variables in it is no placeholder
    r"|%\{"  # Terraform directives
    r"|^[^\s%]*%(?:[sdvq](?![a-z])|\([a-z_]+\)s)[^\s%]*$"  # printf and Python
    r"|^[^\s<>]*<[A-Za-z][\w .:/-]*>[^\s<>]*$|^<[A-Z][A-Z0-9_ -]*>$"  # to be filled in by a person
    r"|^@[A-Za-z_]\w*@$|\[\[ ?[.$\w]+ ?\]\]"
)
"""Sources: helm.sh/docs/chart_template_guide, fluxcd.io/flux/components/kustomize/kustomizations/#post-build-variable-substitution,
developer.hashicorp.com/terraform/language/expressions/strings#string-templates, and kubernetes.io's own pages for <image> (2026-11-25).
"""

_SIGN: Final = re.compile(r"[{$%<@\[]")
_PLACEHOLDER_SCRIPT: Final = re.compile(r"\{\{|\$\{")
_SCRIPT_LENGTH: Final = 300
"""Longer texts are scripts or files, in which people write no one-word placeholders."""

# Nested blocks have spaces and indicators before a line's first key, or none where a list starts in its key's column. So a document without
# 2 * DEPTH of these characters in a row is nested less than 4 * DEPTH deep. Faster than a regular expression.
_INDENTING = bytes.maketrans(b" ?:-", b"    ")
_FAR_RIGHT = b" " * (2 * DEPTH)


class DocumentRefusedError(Exception):
    """A document that cannot be judged. The message is one sentence for users. `line` counts from 1 within the document's text."""

    def __init__(self, reason: str, line: int = 1, *, template: bool = False, syntax: bool = False) -> None:
        super().__init__(reason)
        self.line = line
        self.template = template
        """True if the text is a template."""
        self.syntax = syntax
        """True if it is not YAML; False if it exceeds a limit."""


@dataclass(frozen=True)
class DuplicateKey:
    """A key that occurs twice in one mapping. Lines count from 1 within the document's text."""

    key: str
    first_line: int
    line: int


@dataclass(frozen=True)
class Document:
    """One parsed document."""

    value: Any
    line: int
    """Line of the first key."""
    duplicates: tuple[DuplicateKey, ...]
    size: int
    """Number of values."""


class LeanLoader(yaml.CSafeLoader):
    """Composes nodes without Python resolvers: tags only tell whether a scalar was written without quotes."""

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> str:  # noqa: ARG002 -- PyYAML's signature
        """Return a tag for the form of a scalar. Collections need none."""
        return _PLAIN if kind is yaml.ScalarNode and implicit[0] else _TEXT

    def descend_resolver(self, current_node: yaml.Node | None, current_index: int) -> None:
        """Do nothing: tags do not depend on the place."""

    def ascend_resolver(self) -> None:
        """Do nothing: tags do not depend on the place."""


def documents_in(text: bytes) -> list[Document]:
    """Return the documents in a text with at most one `---`, without empty ones. Raises DocumentRefusedError."""
    if len(text) > DOCUMENT_BYTES:
        raise DocumentRefusedError(f"it has {len(text) >> 20} MiB; documents above {DOCUMENT_BYTES >> 20} MiB are not checked")
    try:
        text.decode()
    except UnicodeDecodeError as error:
        raise DocumentRefusedError("it is not UTF-8", text.count(b"\n", 0, error.start) + 1) from None
    _refuse_nesting(text)
    build = _Builder(
        aliases=b"&" in text, braces=b"{{" in text or b"${" in text, placeholders=any(sign in text for sign in _PLACEHOLDER_SIGNS)
    )
    try:
        return [build.document(node) for node in nodes_in(text)]
    except yaml.YAMLError as error:
        raise refusal(error, text) from None


def nodes_in(text: bytes) -> Iterator[yaml.Node]:
    """Yield the composed documents of a text. Raises yaml.YAMLError."""
    loader = LeanLoader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            if node is not None:
                yield node
    finally:
        loader.dispose()


def refusal(error: yaml.YAMLError, text: bytes) -> DocumentRefusedError:
    """Explain a parser's error to users. Does not quote the text, which may contain a secret."""
    mark = getattr(error, "problem_mark", None)
    what = getattr(error, "problem", None) or getattr(error, "reason", None) or "it is not YAML"
    line = mark.line + 1 if mark is not None else 1
    return DocumentRefusedError(f"it is not YAML: {what}", line, template=_is_template(text, line), syntax=True)


def _refuse_nesting(text: bytes) -> None:
    """Refuse text with too deep nesting or too many values before the composer, which recurses in C, reads it.

    Nearly every document passes two cheap checks. A document that fails one is parsed event by event and counted. The composer bears some
    10,000 levels with the usual stack of 8 MiB (PyYAML 6.0.3); the checks allow a fifth of that.
    """
    openers = text.count(b"[") + text.count(b"{")
    values = openers + text.count(b",") + text.count(b"\n") + text.count(b":") + text.count(b"-")
    if openers < 16 * DEPTH and values < NODES and _FAR_RIGHT not in text.translate(_INDENTING):
        return
    depth = count = 0
    try:
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            count += isinstance(event, yaml.NodeEvent)
            line = event.start_mark.line + 1 if event.start_mark else 1
            if depth > DEPTH:
                raise DocumentRefusedError(f"lists and mappings are nested over {DEPTH} deep", line)
            if count > NODES:
                raise DocumentRefusedError(f"it has over {NODES} values", line)
    except yaml.YAMLError as error:
        raise refusal(error, text) from None


class _Builder:
    """Builds dicts and lists from nodes. Anchors are built once and counted once per repetition."""

    def __init__(self, *, aliases: bool, braces: bool, placeholders: bool) -> None:
        self._aliases = aliases
        self._braces = braces
        self._placeholders = placeholders
        self._built: dict[int, tuple[Any, int]] = {}
        self._open: set[int] = set()
        self._size = 0
        self._duplicates: list[DuplicateKey] = []

    def document(self, node: yaml.Node) -> Document:
        self._duplicates = []
        before = self._size
        value = self._value(node, 0)
        return Document(value, node.start_mark.line + 1, tuple(self._duplicates), self._size - before)

    def _value(self, node: yaml.Node, depth: int) -> Any:
        self._size += 1
        if type(node) is yaml.ScalarNode:
            return self._scalar(node)
        if depth > DEPTH:
            raise DocumentRefusedError(f"lists and mappings are nested over {DEPTH} deep", node.start_mark.line + 1)
        return self._shared(node, depth) if self._aliases else self._collection(node, depth)

    def _shared(self, node: yaml.Node, depth: int) -> Any:
        known = id(node)
        if known in self._built:
            value, size = self._built[known]
            self._size += size
            if self._size > NODES:
                raise DocumentRefusedError(f"its aliases expand to over {NODES} values", node.start_mark.line + 1)
            return value
        if known in self._open:
            raise DocumentRefusedError("an alias in it refers to a value that contains it", node.start_mark.line + 1)
        self._open.add(known)
        before = self._size
        value = self._collection(node, depth)
        self._open.discard(known)
        self._built[known] = (value, self._size - before)
        return value

    def _collection(self, node: yaml.Node, depth: int) -> Any:
        if type(node) is yaml.SequenceNode:
            return [self._value(each, depth + 1) for each in node.value]
        return self._mapping(cast("yaml.MappingNode", node), depth)

    def _mapping(self, node: yaml.MappingNode, depth: int) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        merged: list[dict[str, Any]] = []
        for key_node, value_node in node.value:
            if type(key_node) is not yaml.ScalarNode:
                # YAML reads {{ .Values.name }} without quotes as a mapping whose key is a mapping.
                raise DocumentRefusedError("a key in it is not text", key_node.start_mark.line + 1, template=self._braces)
            key = key_node.value
            value = self._value(value_node, depth + 1)
            if key == "<<" and key_node.tag == _PLAIN:
                merged += _mappings(value)
                continue
            if key in mapping:
                self._record_duplicate(node, key_node)
            mapping[key] = value
        for each in merged:
            mapping = {**each, **mapping}
        return mapping

    def _record_duplicate(self, node: yaml.MappingNode, again: yaml.ScalarNode) -> None:
        if len(self._duplicates) < MAX_REPORTED_DUPLICATES:
            first = next(key for key, _ in node.value if key.value == again.value)
            self._duplicates.append(DuplicateKey(again.value, first.start_mark.line + 1, again.start_mark.line + 1))

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        written = node.value
        if self._placeholders and _is_placeholder(written):
            return FILLED_LATER
        if node.tag == _PLAIN:
            return plain_scalar(written)
        return written if node.tag in {_TEXT, _STRING_TAG} else plain_scalar(written) if node.tag.startswith("tag:yaml.org") else written


def _is_placeholder(written: str) -> bool:
    """Return whether a scalar contains a placeholder that must still be filled in."""
    if _SIGN.search(written) is None:
        return False
    return (_PLACEHOLDER if len(written) < _SCRIPT_LENGTH else _PLACEHOLDER_SCRIPT).search(written) is not None


def _mappings(value: Any) -> list[dict[str, Any]]:
    """Return the mappings that `<<` merges in. The first has the highest priority."""
    listed = cast("list[Any]", value) if isinstance(value, list) else [value]
    return [cast("dict[str, Any]", each) for each in listed if isinstance(each, dict)]
