"""The project that a command works on: the folder of the nearest Pulumi.yaml, here or above, as Pulumi itself finds it.

And its stack files without their secrets, for runs that are to know none.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import yaml

from flexspot.capacity.values.errors import ExitCode, ExplainedError, nearest

FILE = "Pulumi.yaml"
"""What makes a folder a project."""

STACK_CONFIG_DIR = "stackConfigDir"
"""The key of that file that says where the stack files are."""


@dataclass(frozen=True)
class Project:
    """A folder with a Pulumi.yaml. `content` is what that file says, `name` is part of each resource's URN and of where state is."""

    folder: Path
    name: str
    content: dict[str, Any]

    @property
    def stacks(self) -> Path:
        """Where its stack files are: `stackConfigDir` of Pulumi.yaml, the project's folder where that names none."""
        return self.folder / str(self.content.get(STACK_CONFIG_DIR) or ".")

    @property
    def labs(self) -> Path:
        """Where its labs are kept."""
        return self.folder / ".lab"

    @property
    def tools(self) -> Path:
        """Where links to the built programs are, which themselves are in the user's cache folder."""
        return self.folder / ".tools"

    def stack_names(self) -> list[str]:
        """The stacks that have a file."""
        return sorted(each.stem.removeprefix("Pulumi.") for each in self.stacks.glob("Pulumi.*.yaml"))

    def stack_file(self, stack: str) -> Path:
        """The file of a stack. Raises ExplainedError for one that is not there."""
        # Looked for by its name among those that are there: a name is no path.
        if stack not in self.stack_names():
            known = nearest(stack, self.stack_names())
            raise ExplainedError(f"there is no stack {stack}.", f"{known}, in {self._stacks_in_words}.", exit_code=ExitCode.BAD_USAGE)
        return self.stacks / f"Pulumi.{stack}.yaml"

    @property
    def _stacks_in_words(self) -> str:
        return "the project's folder" if self.stacks == self.folder else self.shown(self.stacks)

    def shown(self, path: Path) -> str:
        """A path as the project's people write it: from the project's folder."""
        return str(path.relative_to(self.folder)) if path.is_relative_to(self.folder) else str(path)


def here() -> Path:
    """The current folder. Raises ExplainedError (bad usage) where somebody has deleted it."""
    try:
        return Path.cwd()
    except OSError as error:
        problem = f"the current folder cannot be read: {error.strerror}."
        raise ExplainedError(problem, "go to an existing folder.", exit_code=ExitCode.BAD_USAGE) from error


def from_the_root(path: Path) -> Path:
    """`path` from the root, by its words alone: no link is followed, so that none can lead in a circle. Raises what `here` does."""
    return Path(os.path.normpath(path if path.is_absolute() else here() / path))


def project_here(start: Path | None = None) -> Project:
    """The project of the current folder, or of `start`. Raises ExplainedError (bad usage) where there is none, or its file is broken."""
    begun = here() if start is None else start.resolve()
    for folder in (begun, *begun.parents):
        if (folder / FILE).is_file():
            return _read(folder)
    raise ExplainedError(
        f"{begun} is not in a project: neither it nor a folder above it has a {FILE}.",
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
            raise _broken(path, f"its {key} is {content[key]!r} and must be a text")
    if not content.get("name"):
        raise _broken(path, "it has no name")
    return Project(folder, content["name"], content)


def _broken(path: Path, what: str, *evidence: str) -> ExplainedError:
    remedy = "fix it; it needs at least `name: my-platform` and `runtime: python`."
    return ExplainedError(f"{path} cannot be used: {what}.", remedy, exit_code=ExitCode.BAD_USAGE, evidence=evidence)


STAND_IN = "(a secret, which an offline preview is not told)"
"""What stands in the place of a secret's value."""

_ENCRYPTION = ("encryptionsalt", "encryptedkey", "secretsprovider")
"""What a stack file says of how its secrets are encrypted (pulumi/pulumi, sdk/go/common/workspace/project.go, ProjectStack)."""


def without_secrets(written: str) -> tuple[str, tuple[str, ...]]:
    """A stack file with STAND_IN for each secret and without what they are encrypted by; and the keys that have some.

    An engine then needs no passphrase and no key of a cloud. A file without any of it comes back as it is.
    """
    content: dict[str, Any] = yaml.safe_load(written) or {}
    config: dict[str, Any] = content.get("config") or {}
    told = {key: _without(value) for key, value in config.items()}
    secret = tuple(key for key, value in config.items() if told[key] != value)
    kept = {key: value for key, value in content.items() if key not in _ENCRYPTION}
    if not secret and kept == content:
        return written, ()
    return yaml.safe_dump(kept | {"config": told}, sort_keys=False), secret


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
