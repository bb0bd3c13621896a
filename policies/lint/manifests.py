"""What a file turned out to hold: Kubernetes objects, things that are wrong with the text itself, and what was passed over."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Skipped(StrEnum):
    """Why something was not judged without that being anybody's fault. The value is how the summary names it."""

    NOT_KUBERNETES = "documents that are no Kubernetes objects"
    TEMPLATE = "templates that have to be rendered first"
    EXAMPLE = "examples in Markdown that are no whole YAML"
    NOT_YAML = "files that are no YAML and name no Kubernetes object"
    PATCH = "patches of Kustomize, to be judged as part of its output"
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
    root of the document to the object, and are empty unless it is an item of a List.
    """

    path: str
    chunk: int
    line: int
    steps: tuple[str, ...]
    value: dict[str, Any]


@dataclass(frozen=True)
class Problem:
    """Something wrong with the text. `named` is apiVersion, kind, namespace and name as far as they could be read."""

    kind: InputProblem
    path: str
    line: int
    named: tuple[str, str, str, str]
    message: str


@dataclass
class Reading:
    """What was read, of one file or of many. `documents` counts those that hold anything, Kubernetes objects or not."""

    manifests: list[Manifest] = field(default_factory=list[Manifest])
    problems: list[Problem] = field(default_factory=list[Problem])
    skipped: Counter[Skipped] = field(default_factory=Counter[Skipped])
    files: int = 0
    documents: int = 0
    patches: list[str] = field(default_factory=list[str])
    """Paths of files that a kustomization names as patches, in the form of Manifest.path."""

    def add(self, other: Reading) -> None:
        """Takes in what another part of the run read."""
        self.manifests += other.manifests
        self.problems += other.problems
        self.skipped += other.skipped
        self.files += other.files
        self.documents += other.documents
        self.patches += other.patches
