"""The documents of a file's text, cut apart before anything reads them, each as plain data: within bounds, with duplicate keys told.

Of a text that is no YAML it says whether it is the source of some: what Helm, Terraform, envsubst or a person has still to fill in.
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


# A line of content: not blank, no comment, no directive such as %YAML, no bare `---`. Searched for, because a pattern that matches all the
# other lines one after the other would keep a way back for each of them.
_CONTENT: Final = re.compile(rb"^(?!%|---[ \t]*(?:#|\r?$))[ \t]*[^#\s]", re.MULTILINE)
_FENCE: Final = re.compile(rb"^(?P<indent>[ \t]*)(?P<fence>`{3,}|~{3,})[ \t]*(?:\{[ \t.]*)?(?P<language>[A-Za-z]*)[^\n`]*$")
_LANGUAGES: Final = frozenset({b"yaml", b"yml", b"json"})
_AFTER_SEPARATOR: Final = frozenset(b" \t\r\n")


@dataclass(frozen=True)
class Chunk:
    """The text of one document. `line` is how many lines of its file stand before it."""

    line: int
    text: bytes


def yaml_chunks(text: bytes, line: int = 0) -> Iterator[Chunk]:
    """The documents of YAML text: what `---` at the start of a line separates, which no scalar may hold (YAML 1.1, section 9.1).

    Texts of blanks and comments alone are left out.
    """
    carried = b""
    for part in _parts(text):
        here = carried + part
        carried = b""
        if _CONTENT.search(here) is not None:
            yield Chunk(line, here)
        elif here.startswith(b"%") or b"\n%" in here:
            # Directives are of the document after them.
            carried = here
            continue
        line += here.count(b"\n")


def markdown_chunks(text: bytes) -> Iterator[Chunk]:
    """The documents of the fenced YAML and JSON in Markdown, without the indentation that their fences have in lists."""
    opened: bytes | None = None
    body: list[bytes] = []
    indent = 0
    first = 0
    wanted = False
    # Line by line: a list of them would take several times the text's memory.
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
    """The text cut before each line that is `---`, or begins with `---` and a blank."""
    begin = 0
    found = text.find(b"\n---")
    while found >= 0:
        if found + 4 == len(text) or text[found + 4] in _AFTER_SEPARATOR:
            yield text[begin : found + 1]
            begin = found + 1
        found = text.find(b"\n---", found + 4)
    yield text[begin:]


_TEMPLATE_MARKS: Final = (b"{{", b"{%", b"%{", b"<%")
"""Helm, Go and Jinja; Jinja's and Terraform's directives; ERB and EJS."""

_UNFILLED: Final = re.compile(
    rb"^[ \t]*(?:- )*(?:[\w./-]+:[ \t]+)?(?:__[A-Z][A-Z0-9_]*__|@[A-Za-z_]\w*@|%(?:[sdvq](?![a-z])|\([a-z_]+\)s)|\{[A-Za-z_][\w.-]*\}(?=\S)"
    rb"|\$\{[^}\n]*\}|<[A-Z][A-Z0-9_ -]*>)"
)
"""A line that is a placeholder alone, or whose value begins with one that no scalar of YAML may begin with."""


def _is_template(text: bytes, line: int) -> bool:
    """Whether a text that no parser takes is the source of one: by its marks, or by a placeholder where the parser gave up.

    A parser gives up at the placeholder, or up to two lines after it: it may have taken it for the begin of a key.
    """
    return any(mark in text for mark in _TEMPLATE_MARKS) or any(
        _UNFILLED.match(each) is not None for each in text.split(b"\n", line)[max(0, line - 3) : line]
    )


FILE_BYTES: Final = 64 * 1024 * 1024
"""The longest file that is read. A rendering of several hundred objects has a few MiB."""

FILE_DOCUMENTS: Final = 50_000
"""The most documents of one file; with four times as many separators it is not read at all."""

FILE_VALUES: Final = 2_000_000
"""The most values of one file; 64 MiB of ordinary YAML have about so many, and they take about half a GiB."""

DOCUMENT_BYTES: Final = 16 * 1024 * 1024
"""The longest document. The API server takes no object over 3 MiB; a List that kubectl prints may be longer."""

NODES: Final = 500_000
"""The most values in one document, those that aliases repeat counted as often as they are repeated."""

DEPTH: Final = 100
"""The deepest nesting of lists and mappings. A schema within a CustomResourceDefinition has about 50."""

DUPLICATES_TOLD: Final = 20
"""How many duplicate keys of one document are findings of their own."""


Scalar = str | int | float | bool | None

_WORDS: Final[dict[str, Scalar]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"), False),
}

# A number of more digits is a text: no field of Kubernetes takes one, and converting it would take long.
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9_]{0,30})")
_OTHER_BASE = re.compile(r"(?P<sign>[-+]?)(?:0b(?P<binary>[01_]{1,64})|0x(?P<hexadecimal>[0-9a-fA-F_]{1,16})|0o?(?P<octal>[0-7_]{1,22}))")
_FLOAT = re.compile(r"[-+]?(?:[0-9][0-9_]{0,30}\.[0-9_]{0,30}|\.[0-9]{1,30})(?:[eE][-+]?[0-9]{1,3})?")
_BASES: Final = {"binary": 2, "hexadecimal": 16, "octal": 8}

_REMEMBERED: dict[str, Scalar] = dict(_WORDS)
_REMEMBERED_AT_MOST = 50_000


def plain_scalar(written: str) -> Scalar:
    """The value of a scalar that stands without quotes and without a tag.

    Like goyaml.v2, which sigs.k8s.io/yaml wraps, but without its rarest forms: dates stay texts because JSON has none, and so do
    quantities such as 1e3, which mean the same either way.
    """
    if written in _REMEMBERED:
        return _REMEMBERED[written]
    value = _converted(written) if written[0] in "0123456789+-." else written
    if len(_REMEMBERED) < _REMEMBERED_AT_MOST and len(written) < 64:  # noqa: PLR2004 -- long texts seldom come twice
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
_TEXT_TAG: Final = "tag:yaml.org,2002:str"

FILLED_LATER: Final = UNKNOWN_TEXT
"""A text that somebody or something fills in, such as ${GPUS}, '{{ .Values.gpus }}' or <image>: its value is unknown."""

_PLACEHOLDER_SIGNS: Final = (b"{{", b"$", b"%", b"<", b"@", b"[[")
"""A document without any of these has no placeholder."""

_PLACEHOLDER: Final = re.compile(
    r"\{\{|\$\{"  # Helm, Jinja and Go; envsubst, Flux and Terraform
    r"|^\S*\$(?:\(\w+\)|[A-Z_][A-Z0-9_]*\b)\S*$"  # of a shell, and Kubernetes' own; a script with variables in it is what it is
    r"|%\{"  # directives of Terraform
    r"|^[^\s%]*%(?:[sdvq](?![a-z])|\([a-z_]+\)s)[^\s%]*$"  # printf, and Python's
    r"|^[^\s<>]*<[A-Za-z][\w .:/-]*>[^\s<>]*$|^<[A-Z][A-Z0-9_ -]*>$"  # what a person is to write
    r"|^@[A-Za-z_]\w*@$|\[\[ ?[.$\w]+ ?\]\]"
)
"""Sources: helm.sh/docs/chart_template_guide, fluxcd.io/flux/components/kustomize/kustomizations/#post-build-variable-substitution,

developer.hashicorp.com/terraform/language/expressions/strings#string-templates, and kubernetes.io's own pages for <image> (2026-11-25).
"""

_SIGN: Final = re.compile(r"[{$%<@\[]")
_PLACEHOLDER_SCRIPT: Final = re.compile(r"\{\{|\$\{")
_SCRIPT_LENGTH: Final = 300
"""Longer texts are scripts and files, in which a person writes no placeholder of one word."""

# Nesting of blocks shows as spaces and indicators before a line's first key, or not at all where a list starts in its key's own column.
# So a document without a run of 2 * DEPTH of these characters is nested less than 4 * DEPTH deep. Faster than a regular expression.
_INDENTING = bytes.maketrans(b" ?:-", b"    ")
_FAR_RIGHT = b" " * (2 * DEPTH)


class DocumentRefusedError(Exception):
    """A document that cannot be judged, as one sentence for a person. `line` counts from 1 within the document's text."""

    def __init__(self, reason: str, line: int = 1, *, template: bool = False, syntax: bool = False) -> None:
        super().__init__(reason)
        self.line = line
        self.template = template
        """Whether it is the source of a document rather than a document."""
        self.syntax = syntax
        """Whether it is no YAML at all, rather than more than is judged."""


@dataclass(frozen=True)
class DuplicateKey:
    """A key that one mapping holds twice; lines count from 1 within the document's text."""

    key: str
    first_line: int
    line: int


@dataclass(frozen=True)
class Document:
    """What one text held. `line` is that of its first key, `size` how many values it has."""

    value: Any
    line: int
    duplicates: tuple[DuplicateKey, ...]
    size: int


class LeanLoader(yaml.CSafeLoader):
    """Composes nodes without asking Python what each scalar means: only whether it stood without quotes."""

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> str:  # noqa: ARG002 -- PyYAML's signature
        """Names the form of a scalar; collections need no name."""
        return _PLAIN if kind is yaml.ScalarNode and implicit[0] else _TEXT

    def descend_resolver(self, current_node: yaml.Node | None, current_index: int) -> None:
        """Nothing: no tag depends on the place."""

    def ascend_resolver(self) -> None:
        """Nothing, likewise."""


def documents_in(text: bytes) -> list[Document]:
    """The documents in a text that has at most one `---`; empty ones are left out. Raises DocumentRefusedError."""
    if len(text) > DOCUMENT_BYTES:
        raise DocumentRefusedError(f"it has {len(text) >> 20} MiB; at most {DOCUMENT_BYTES >> 20} MiB are judged")
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
    """The composed documents of a text. Raises yaml.YAMLError."""
    loader = LeanLoader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            if node is not None:
                yield node
    finally:
        loader.dispose()


def refusal(error: yaml.YAMLError, text: bytes) -> DocumentRefusedError:
    """What a parser's error means for a person; quotes nothing of the text, which may hold a secret."""
    mark = getattr(error, "problem_mark", None)
    what = getattr(error, "problem", None) or getattr(error, "reason", None) or "it is not YAML"
    line = mark.line + 1 if mark is not None else 1
    return DocumentRefusedError(f"it is not YAML: {what}", line, template=_is_template(text, line), syntax=True)


def _refuse_nesting(text: bytes) -> None:
    """Refuses what is nested too deep or has too many values, before the composer, which recurses in C, sees it.

    Two bounds that cost little let nearly every document pass; one that may exceed them is counted, event by event. The composer bears some
    10,000 levels with the usual stack of 8 MiB (PyYAML 6.0.3), the bounds let a fifth of that through.
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
    """From nodes to dicts and lists. What anchors share is built once and counted as often as it is repeated."""

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
        held: dict[str, Any] = {}
        merged: list[dict[str, Any]] = []
        for key_node, value_node in node.value:
            if type(key_node) is not yaml.ScalarNode:
                # {{ .Values.name }} without quotes is, to YAML, a mapping whose key is a mapping.
                raise DocumentRefusedError("a key in it is not text", key_node.start_mark.line + 1, template=self._braces)
            key = key_node.value
            value = self._value(value_node, depth + 1)
            if key == "<<" and key_node.tag == _PLAIN:
                merged += _mappings(value)
                continue
            if key in held:
                self._tell_duplicate(node, key_node)
            held[key] = value
        for each in merged:
            held = {**each, **held}
        return held

    def _tell_duplicate(self, node: yaml.MappingNode, again: yaml.ScalarNode) -> None:
        if len(self._duplicates) < DUPLICATES_TOLD:
            first = next(key for key, _ in node.value if key.value == again.value)
            self._duplicates.append(DuplicateKey(again.value, first.start_mark.line + 1, again.start_mark.line + 1))

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        written = node.value
        if self._placeholders and _is_placeholder(written):
            return FILLED_LATER
        if node.tag == _PLAIN:
            return plain_scalar(written)
        return written if node.tag in {_TEXT, _TEXT_TAG} else plain_scalar(written) if node.tag.startswith("tag:yaml.org") else written


def _is_placeholder(written: str) -> bool:
    """Whether a scalar is a text that somebody or something fills in."""
    if _SIGN.search(written) is None:
        return False
    return (_PLACEHOLDER if len(written) < _SCRIPT_LENGTH else _PLACEHOLDER_SCRIPT).search(written) is not None


def _mappings(value: Any) -> list[dict[str, Any]]:
    """What `<<` merges in: one mapping or several, the first of which counts most."""
    listed = cast("list[Any]", value) if isinstance(value, list) else [value]
    return [cast("dict[str, Any]", each) for each in listed if isinstance(each, dict)]
