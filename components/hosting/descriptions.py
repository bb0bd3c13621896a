"""What the schema says of components and their inputs, which programs in any language show: the docstrings of Python's classes."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from typing import TYPE_CHECKING, is_typeddict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pulumi.provider.experimental.analyzer import Analyzer

_RAISES = re.compile(r"Raises\s+(?:ValueError|WorkloadError)\b,?")
_DEFAULT = re.compile(r"(?<=\bDefault: )(?:True|False|None)\b")
_SNAKE = re.compile(r"\b[a-z0-9]+(?:_[a-z0-9]+)+\b")


def described(typ: type, name: str, analyzer: Analyzer) -> str | None:
    """The text below an argument, in the class that declares it or in one that it extends: the SDK's analyzer asks the first alone."""
    if told := analyzer.get_docstring(typ, name):
        return told
    return next((found for base in _extended(typ) if (found := described(base, name, analyzer))), None)


def _extended(typ: type) -> list[type]:
    """The TypedDicts that one extends. Python 3.11 keeps them nowhere but in the source."""
    [written] = ast.parse(textwrap.dedent(inspect.getsource(typ))).body
    there = vars(sys.modules[typ.__module__])
    named = [each.id for each in getattr(written, "bases", ()) if isinstance(each, ast.Name)]
    return [there[each] for each in named if is_typeddict(there.get(each))]


def in_any_language(text: str | None, names: Mapping[str, str]) -> str | None:
    """A docstring without Python's own: its indentation, its errors, its truth values, and names of arguments, which `names` has those of
    the schema for.

    An indented paragraph would be a block of code to an editor, which takes the text for Markdown. A name is changed only where it cannot
    be a word of English: with an underscore.
    """
    if text is None:
        return None
    text = _RAISES.sub("Is refused", inspect.cleandoc(text))
    text = _DEFAULT.sub(lambda found: found[0].lower(), text)
    return _SNAKE.sub(lambda found: names.get(found[0], found[0]), text)
