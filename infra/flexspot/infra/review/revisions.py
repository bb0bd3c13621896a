"""Revisions of a repository: copies of one in a folder, files that differ between two, and the stacks that these can affect."""

from __future__ import annotations

import ast
import os
import posixpath
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from flexspot.capacity.values.errors import ExitCode, ExplainedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    Contents = tuple[bytes | None, bytes | None]

_EVIDENCE_LINES = 5


@dataclass(frozen=True)
class Repository:
    """A Git repository, read with the `git` on PATH."""

    root: Path
    """Folder of its working tree."""

    def commit(self, revision: str) -> str:
        """Return the commit that `revision` names. Raises ExplainedError (bad usage) if there is no such commit."""
        return self._named(
            f"{revision!r} is not a revision of {self.root}.",
            "name a branch, tag or commit of this clone. A shallow clone lacks most: run `git fetch origin BRANCH`, or set fetch-depth: 0.",
            *("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"),
        )

    def common(self, one: str, other: str) -> str:
        """Return the last commit in both histories. Raises ExplainedError (bad usage) if they have none in common."""
        return self._named(
            f"{one[:12]} and {other[:12]} have no common commit in this clone.",
            "fetch the history of both: a shallow clone lacks it (fetch-depth: 0).",
            *("merge-base", one, other),
        )

    def changed(self, base: str, head: str | None) -> list[str]:
        """Return the paths, relative to the root, of files that differ; both names of a renamed one. None: the working tree."""
        ends = [base] if head is None else [base, head]
        found = _paths(_git(self.root, "diff", "--name-only", "-z", "--no-renames", *ends, "--"))
        if head is None:
            found += _paths(_git(self.root, "ls-files", "--others", "--exclude-standard", "-z"))
        return sorted(set(found))

    def content(self, commit: str | None, path: str) -> bytes | None:
        """Return a file's content at a commit or in the working tree. None if it does not exist or is a link."""
        if commit is None:
            file = self.root / path
            return file.read_bytes() if file.is_file() and not file.is_symlink() else None
        listed = _git(self.root, "ls-tree", "-z", commit, "--", path).stdout
        if not listed.startswith(b"100"):
            return None
        return _git(self.root, "cat-file", "blob", f"{commit}:{path}").stdout

    def files(self, commit: str | None, folder: Path) -> list[str]:
        """Return the files of a folder at a commit or in the working tree. All paths are relative to the root."""
        if commit is None:
            there = self.root / folder
            return sorted(each.relative_to(self.root).as_posix() for each in there.iterdir()) if there.is_dir() else []
        listed = _git(self.root, "ls-tree", "--name-only", "-z", commit, "--", f"{folder.as_posix()}/" if folder.parts else ".")
        return sorted(_paths(listed))

    def _named(self, problem: str, remedy: str, *question: str) -> str:
        """Return the commit that Git prints. Raises ExplainedError (bad usage) if it fails."""
        found = _git(self.root, *question, check=False)
        if found.returncode != 0:
            raise ExplainedError(problem, remedy, exit_code=ExitCode.BAD_USAGE)
        return found.stdout.decode().strip()

    def written_to(self, folder: Path, commit: str) -> None:
        """Write all files of a commit into `folder`, including those that archives exclude."""
        index = {"GIT_INDEX_FILE": str(folder.with_name(f"{folder.name}.index"))}
        _git(self.root, "read-tree", commit, environment=index)
        _git(self.root, "checkout-index", "--all", "--force", f"--prefix={folder}{os.sep}", environment=index)


def repository_of(folder: Path) -> Repository:
    """Return the repository that contains a folder. Raises ExplainedError (bad usage) if there is none or `git` is missing."""
    found = _git(folder, "rev-parse", "--show-toplevel", check=False)
    if found.returncode != 0:
        raise ExplainedError(
            f"{folder} is not in a Git repository.",
            "go to a clone of the repository whose changes you want to review.",
            exit_code=ExitCode.BAD_USAGE,
            evidence=tuple(found.stderr.decode(errors="replace").splitlines()[:_EVIDENCE_LINES]),
        )
    return Repository(Path(os.fsdecode(found.stdout.rstrip(b"\n"))))


def _paths(found: subprocess.CompletedProcess[bytes]) -> list[str]:
    return [os.fsdecode(each) for each in found.stdout.split(b"\0") if each]


def _git(
    folder: Path, *arguments: str, check: bool = True, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    # Without --literal-pathspecs git would interpret characters in paths, such as `*` and `:`.
    command = ["git", "--literal-pathspecs", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(  # noqa: S603 -- git of the PATH
            command, capture_output=True, check=False, stdin=subprocess.DEVNULL, env={**os.environ, **(environment or {})}
        )
    except OSError as error:
        raise ExplainedError(
            f"git cannot be started: {error.strerror}.", "install git, which reads the revisions.", exit_code=ExitCode.BAD_USAGE
        ) from error
    if check and done.returncode != 0:
        raise ExplainedError(
            f"`git {arguments[0]}` failed in {folder}.",
            "fix the problem in the lines above, and run the same command again.",
            evidence=tuple(done.stderr.decode(errors="replace").splitlines()[-_EVIDENCE_LINES:]),
        )
    return done


_NOT_READ_BY_PROGRAMS = (".md", ".gitignore", ".gitattributes", ".editorconfig")
_OF_OTHER_SERVICES = (".github/", ".gitlab/", ".gitlab-ci.yml", ".pre-commit-config.yaml")


@dataclass(frozen=True)
class StackFile:
    """A stack's file in the repository."""

    path: str
    names: frozenset[str] = frozenset()
    """Paths that it may name (`prices_file`, `admission.rules_file`)."""


def stack_file_of(path: str, contents: Contents) -> StackFile:
    """Return the stack file with every text in it as a possible path, before and after the change."""
    folder = posixpath.dirname(path)
    texts = {each for content in contents if content is not None for each in _texts(content)}
    return StackFile(path, frozenset(posixpath.normpath(posixpath.join(folder, each)) for each in texts if each))


def affected(changed: Mapping[str, Contents], stacks: Mapping[str, StackFile]) -> list[str]:
    """Return the stacks that a change may affect. `changed` has the contents of files before and after, by path.

    A stack's own file, and a file that it names, affects this stack. Any other file affects all stacks, since their program may read it,
    unless only people and other services read it.
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
    """Return whether a program may behave differently with the new content. Comments and layout are ignored."""
    if path.endswith(_NOT_READ_BY_PROGRAMS) or path.startswith(_OF_OTHER_SERVICES):
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
    """Return the events of a YAML file in order. Nothing is composed: an alias for millions of values is one event."""
    attributes = ("anchor", "tag", "value", "implicit")
    return [(type(each).__name__, *(getattr(each, name, None) for name in attributes)) for each in yaml.parse(content, yaml.CSafeLoader)]


def _texts(content: bytes) -> set[str]:
    try:
        return {each.value for each in yaml.parse(content, yaml.CSafeLoader) if isinstance(each, yaml.ScalarEvent)}
    except (yaml.YAMLError, ValueError):
        return set()
