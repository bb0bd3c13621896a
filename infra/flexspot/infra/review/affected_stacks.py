"""Which stacks a change of files can mean anything to: comments mean nothing, a stack file means its stack, all else means every stack."""

from __future__ import annotations

import ast
import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Mapping

    Contents = tuple[bytes | None, bytes | None]

_READ_BY_NO_PROGRAM = (".md", ".gitignore", ".gitattributes", ".editorconfig")
_OF_OTHER_SERVICES = (".github/", ".gitlab/", ".gitlab-ci.yml", ".pre-commit-config.yaml")


@dataclass(frozen=True)
class StackFile:
    """A stack's file by its path in the repository, and the paths that it may name (`prices_file`, `admission.rules_file`)."""

    path: str
    names: frozenset[str] = frozenset()


def stack_file_of(path: str, contents: Contents) -> StackFile:
    """The file, with all that its texts name if they are paths, before the change or after it."""
    folder = posixpath.dirname(path)
    texts = {each for content in contents if content is not None for each in _texts(content)}
    return StackFile(path, frozenset(posixpath.normpath(posixpath.join(folder, each)) for each in texts if each))


def affected(changed: Mapping[str, Contents], stacks: Mapping[str, StackFile]) -> list[str]:
    """The stacks that may be another after the change. `changed` are files by their paths, each before and after.

    A stack's own file, and one that it names, means this stack. Any other means all of them, since their program may read it, unless
    people and other services alone do.
    """
    found: set[str] = set()
    for path, contents in changed.items():
        if not meaningful(path, *contents):
            continue
        of = {stack for stack, file in stacks.items() if path == file.path or path in file.names}
        if not of:
            return sorted(stacks)
        found |= of
    return sorted(found)


def meaningful(path: str, before: bytes | None, after: bytes | None) -> bool:
    """Whether a program may tell both contents of a file apart: comments and the shape of the text go for nothing."""
    if path.endswith(_READ_BY_NO_PROGRAM) or path.startswith(_OF_OTHER_SERVICES):
        return False
    if before is None or after is None:
        return True
    try:
        if path.endswith((".yaml", ".yml")):
            return _events(before) != _events(after)
        if path.endswith(".py"):
            return ast.dump(ast.parse(before)) != ast.dump(ast.parse(after))
    except (yaml.YAMLError, SyntaxError, ValueError, RecursionError, MemoryError):
        return True
    return before != after


def _events(content: bytes) -> list[Any]:
    """What a YAML file says, in order. Nothing is composed: an alias that stands for millions of values is one event."""
    told = ("anchor", "tag", "value", "implicit")
    return [(type(each).__name__, *(getattr(each, name, None) for name in told)) for each in yaml.parse(content, yaml.CSafeLoader)]


def _texts(content: bytes) -> set[str]:
    try:
        return {each.value for each in yaml.parse(content, yaml.CSafeLoader) if isinstance(each, yaml.ScalarEvent)}
    except (yaml.YAMLError, ValueError):
        return set()
