"""The project that a command works on: the folder of the nearest Pulumi.yaml, here or above, as Pulumi itself finds it.

Also its stack files without their secrets, for runs that must not read them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import yaml

from flexspot.capacity.values.errors import ExitCode, ExplainedError, nearest

FILE = "Pulumi.yaml"
"""The file that makes a folder a project."""

STACK_CONFIG_DIR = "stackConfigDir"
"""The key in that file with the folder of the stack files."""


@dataclass(frozen=True)
class Project:
    """A folder with a Pulumi.yaml."""

    folder: Path
    name: str
    """Part of each resource's URN and of the path of the state."""
    content: dict[str, Any]
    """Content of Pulumi.yaml."""

    @property
    def stacks(self) -> Path:
        """Folder of its stack files: `stackConfigDir` of Pulumi.yaml, by default the project's folder."""
        return self.folder / str(self.content.get(STACK_CONFIG_DIR) or ".")

    @property
    def labs(self) -> Path:
        """Folder of its labs."""
        return self.folder / ".lab"

    @property
    def tools(self) -> Path:
        """Folder with links to the built programs. The programs themselves are in the user's cache folder."""
        return self.folder / ".tools"

    def stack_names(self) -> list[str]:
        """Return the names of the stacks that have a file."""
        return sorted(each.stem.removeprefix("Pulumi.") for each in self.stacks.glob("Pulumi.*.yaml"))

    def stack_file(self, stack: str) -> Path:
        """Return the file of a stack. Raises ExplainedError if it does not exist."""
        # Only existing names are accepted, so that a name cannot be a path.
        if stack not in self.stack_names():
            remedy = f"name a stack in {self._stacks_in_words}; {nearest(stack, self.stack_names())}."
            raise ExplainedError(f"--stack: there is no stack {stack}.", remedy, exit_code=ExitCode.BAD_USAGE)
        return self.stacks / f"Pulumi.{stack}.yaml"

    @property
    def _stacks_in_words(self) -> str:
        return "the project's folder" if self.stacks == self.folder else self.shown(self.stacks)

    def shown(self, path: Path) -> str:
        """Return a path relative to the project's folder, or as it is if it is outside."""
        return str(path.relative_to(self.folder)) if path.is_relative_to(self.folder) else str(path)


def here() -> Path:
    """Return the current folder. Raises ExplainedError (bad usage) if it has been deleted."""
    try:
        return Path.cwd()
    except OSError as error:
        problem = f"the current folder cannot be read: {error.strerror}."
        raise ExplainedError(problem, "go to an existing folder.", exit_code=ExitCode.BAD_USAGE) from error


def from_the_root(path: Path) -> Path:
    """Return `path` as a normalized absolute path without following links, so that a cycle of links does no harm. Raises as `here` does."""
    return Path(os.path.normpath(path if path.is_absolute() else here() / path))


def project_here(start: Path | None = None) -> Project:
    """Return the project of the current folder or of `start`. Raises ExplainedError (bad usage) if there is none or its file is broken."""
    begin = here() if start is None else start.resolve()
    for folder in (begin, *begin.parents):
        if (folder / FILE).is_file():
            return _read(folder)
    raise ExplainedError(
        f"{begin} is not in a project: neither it nor a folder above it has a {FILE}.",
        "go to the folder of a project, or create one with `flexspot init`.",
        exit_code=ExitCode.BAD_USAGE,
    )


def _read(folder: Path) -> Project:
    path = folder / FILE
    try:
        read: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise _broken(path, "it cannot be read", " ".join(str(error).split())) from error
    if not isinstance(read, dict):
        raise _broken(path, "it has no project settings")
    content = cast("dict[str, Any]", read)
    for key in ("name", STACK_CONFIG_DIR):
        if not isinstance(content.get(key, ""), str):
            raise _broken(path, f"its {key} must be a string, not {content[key]!r}")
    if not content.get("name"):
        raise _broken(path, "it has no name")
    return Project(folder, content["name"], content)


def _broken(path: Path, what: str, *evidence: str) -> ExplainedError:
    remedy = "fix the file; it needs at least `name: my-platform` and `runtime: python`."
    return ExplainedError(f"{path} cannot be used: {what}.", remedy, exit_code=ExitCode.BAD_USAGE, evidence=evidence)


STAND_IN = "(a secret, which an offline preview does not read)"
"""Placeholder for the value of a secret."""

_ENCRYPTION = ("encryptionsalt", "encryptedkey", "secretsprovider")
"""Keys of a stack file about the encryption of its secrets (pulumi/pulumi, sdk/go/common/workspace/project.go, ProjectStack)."""


def without_secrets(written: str) -> tuple[str, tuple[str, ...]]:
    """Return a stack file with STAND_IN for each secret and without encryption keys, and the settings that have secrets.

    The engine then needs neither a passphrase nor a cloud's key. A file without secrets and encryption keys is returned unchanged.
    """
    content: dict[str, Any] = yaml.safe_load(written) or {}
    config: dict[str, Any] = content.get("config") or {}
    replaced = {key: _without(value) for key, value in config.items()}
    secret = tuple(key for key, value in config.items() if replaced[key] != value)
    kept = {key: value for key, value in content.items() if key not in _ENCRYPTION}
    if not secret and kept == content:
        return written, ()
    return yaml.safe_dump(kept | {"config": replaced}, sort_keys=False), secret


def _without(value: Any) -> Any:
    match value:
        case {"secure": str(), **others} if not others:
            return STAND_IN
        case dict():
            return {key: _without(each) for key, each in value.items()}
        case list():
            return [_without(each) for each in value]
        case _:
            return value
