"""A checker of the project's English: docstrings, comments, messages, identifiers and Markdown.

Each finding names a pattern of docs/glossary.md. `python tests/english.py PATH...` prints the findings in these files and folders, one per
line, and their number per pattern.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from git_repositories import CHECKOUT, tracked

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

ROOT: Final = CHECKOUT

LONGEST_SENTENCE: Final = 40
"""Most words of a sentence."""

_QUESTION: Final = re.compile(
    r"(What|Whether|How|Who|Whom|Whose|Which|Why|Where|By (how|what|which)|(To|For|Of|In|From|With) (what|whom|which)|So much)\b"
)
_WORDS: Final = {
    "nobody or somebody": re.compile(r"\b(nobody|somebody)\b(?!-)", re.IGNORECASE),  # Names of rules stay.
    "told": re.compile(r"\b((is|are|was|were|be|been|being) told|told (of|apart|about))\b", re.IGNORECASE),
    "is with, is none": re.compile(r"(?<!there )\b(is with|is none)\b"),
}
_IDENTIFIER: Final = re.compile(r"(^|_)(told|homeless|begun|ground|nobody|somebody)(_|$)", re.IGNORECASE)
_CODE: Final = re.compile(r"`[^`]*`|https?://\S+|\[[^\]\s]*/[^\]\s]*\]|\]\([^)]*\)")
"""Code, addresses, paths as the text of a link, and targets of links."""
_END: Final = re.compile(r"(?<=[.!?:;])[\"')*_]*\s+")
_QUOTES_PATTERNS: Final = ("docs/glossary.md", "tests/english.py", "tests/contract/test_english.py")
_MESSAGE_WORDS: Final = 3
_PLACEHOLDER: Final = "X"
"""Stands for code in prose and for a value in an f-string; not counted as a word."""


@dataclass(frozen=True)
class Finding:
    """One place that does not read well.

    `path` is relative to the checkout. `text` is the docstring's, sentence's or identifier's beginning.
    """

    path: str
    line: int
    pattern: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.pattern}: {self.text}"


def findings(paths: Iterable[Path]) -> Iterator[Finding]:
    """Yield the findings in tracked Python and Markdown files, in the order of `paths`."""
    for path in paths:
        name, text = path.relative_to(ROOT).as_posix(), path.read_text()
        check = _python if path.suffix == ".py" else _markdown
        for line, pattern, words in check(text):
            yield Finding(name, line, pattern, " ".join(words.split())[:90])


def checked_files(*places: str) -> list[Path]:
    """Return the Python and Markdown files below `places`, or all. Excludes the changelog, decisions and what quotes patterns."""
    excluded = ("CHANGELOG.md", "docs/decisions/", *_QUOTES_PATTERNS)
    files = [path for path in tracked(*places) if path.suffix in {".py", ".md"}]
    return [path for path in files if not path.relative_to(ROOT).as_posix().startswith(excluded)]


def _python(text: str) -> Iterator[tuple[int, str, str]]:
    tree = ast.parse(text)
    docstrings = {id(node): node for node in _docstrings(tree)}
    for node in docstrings.values():
        yield from _docstring(node.lineno, str(node.value))
    for line, comment in _comments(text):
        yield from _prose(line, comment)
    for node in ast.walk(tree):
        for name in _names(node):
            if _IDENTIFIER.search(name):
                yield getattr(node, "lineno", 1), "identifier", name
    for line, message in _messages(tree, docstrings):
        yield from _prose(line, message)


def _docstrings(tree: ast.Module) -> Iterator[ast.Constant]:
    """Yield docstrings, also those below a constant or a field."""
    for node in ast.walk(tree):
        for statement in getattr(node, "body", []) if not isinstance(node, ast.Lambda | ast.IfExp) else []:
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant) and isinstance(statement.value.value, str):
                yield statement.value


def _docstring(line: int, text: str) -> Iterator[tuple[int, str, str]]:
    if _QUESTION.match(text.strip()):
        yield line, "question word first", text
    paragraphs = [each.strip() for each in text.split("\n\n")]
    for before, after in pairwise(paragraphs):
        if before and after and before[-1].isalnum() and after[0].islower():
            yield line, "broken in mid-sentence", after
    for paragraph in paragraphs:
        yield from _prose(line, paragraph)


def _comments(text: str) -> Iterator[tuple[int, str]]:
    """Yield each block of comment lines as one text, with its first line's number."""
    begin, block, last = 0, "", -1
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT or re.match(r"#( (type|pragma|ruff|noqa)|!)", token.string):
            continue
        words, alone = token.string.lstrip("#").strip(), not token.line[: token.start[1]].strip()
        if alone and token.start[0] == last + 1:
            block += f" {words}"
        else:
            yield begin, block
            begin, block = token.start[0], words
        last = token.start[0] if alone else -1
    yield begin, block


def _names(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
            yield name
        case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
            yield name
        case _:
            pass


def _messages(tree: ast.Module, docstrings: dict[int, ast.Constant]) -> Iterator[tuple[int, str]]:
    """Yield the texts of at least three words, an f-string's values replaced by a placeholder."""
    parts: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts.update(id(each) for each in ast.walk(node))
            words = "".join(str(each.value) if isinstance(each, ast.Constant) else _PLACEHOLDER for each in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings and id(node) not in parts:
            words = node.value
        else:
            continue
        if len(words.split()) >= _MESSAGE_WORDS and "\n" not in words.strip():
            yield node.lineno, words


def _markdown(text: str) -> Iterator[tuple[int, str, str]]:
    fenced, begin, block = False, 0, ""
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if line.startswith("```"):
            fenced = not fenced
        starts = re.match(r"\s*([-*+]|\d+\.|#+|\|)\s?", line)
        if fenced or not line.strip() or starts or line.startswith(("    ", "```")):
            yield from _prose(begin, block)
            begin, block = number, ""
        if line.startswith("#"):
            yield from _prose(number, line)
        elif not fenced and not line.startswith(("    ", "```")) and not line.startswith("|--"):
            if starts and line.lstrip().startswith("|"):
                for cell in line.split("|"):
                    yield from _prose(number, cell.strip())
            else:
                block += f" {line.strip()}"


def _prose(line: int, text: str) -> Iterator[tuple[int, str, str]]:
    plain = _CODE.sub(_PLACEHOLDER, text)
    for pattern, words in _WORDS.items():
        if found := words.search(plain):
            yield line, pattern, plain[max(0, found.start() - 30) : found.end() + 40]
    for sentence in _END.split(plain):
        words = [word for word in re.findall(r"[A-Za-z][\w'-]*", sentence) if word != _PLACEHOLDER]
        if len(words) > LONGEST_SENTENCE:
            yield line, "long sentence", sentence


if __name__ == "__main__":
    unknown = [place for place in sys.argv[1:] if not checked_files(place)]
    if unknown:
        sys.stderr.write(f"{', '.join(unknown)}: no Python or Markdown file of this checkout. Name a file or a folder in it.\n")
        sys.exit(2)
    found = list(findings(checked_files(*sys.argv[1:])))
    counts = [f"{count:6} {pattern}" for pattern, count in Counter(each.pattern for each in found).most_common()]
    sys.stdout.writelines(f"{each}\n" for each in [*found, *counts])
    sys.exit(bool(found))
