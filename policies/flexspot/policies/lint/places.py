"""Lines of the fields that findings are about, and comments in files that accept violations.

Lines are found by composing the document again for each finding: storing the lines of all values of all documents would cost more than the
rest of the run. Comments are spelled like the annotation: `# flexspot.dev/ignore-RULE: REASON; until=2027-03-31; by=team-a`.
"""

from __future__ import annotations

import posixpath
import re
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

import yaml

from flexspot.policies.lint.yaml_reading import markdown_chunks, nodes_in, yaml_chunks
from flexspot.policies.values.finding import PREFIX, Suppression, check_suppression, read_annotation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import date

    from flexspot.policies.lint.file_reading import Manifest


# spec.limits["nvidia.com/gpu"], spec.replicatedJobs[0].template.spec, resources.limits.
_PATH: Final = re.compile(r'\b[A-Za-z][\w-]*(?:\.[A-Za-z][\w-]*|\[(?:"[^"\]]*"|[^\]\s]*)\])+')
_STEP: Final = re.compile(r'\["?(?P<bracketed>[^"\]]*)"?\]|(?P<plain>[\w-]+)')
_CONTAINER: Final = re.compile(r"\bcontainer (?P<name>[a-z0-9-]+)")
_CONTAINER_LISTS: Final = ("containers", "initContainers", "ephemeralContainers")


class Places:
    """Finds lines. `text_of` returns a file's text by the path in its manifests."""

    def __init__(self, text_of: Callable[[str], bytes]) -> None:
        def roots(path: str, chunk: int) -> tuple[yaml.Node, ...]:
            return _roots(path, text_of(path), chunk)

        self._roots = cache(roots)

    def line(self, manifest: Manifest, at: str, message: str) -> int:
        """Return the line of the field `at`, or of a field that the message names.

        If a field is missing, return that of its nearest parent.

        Without such a field, return the line of the object.
        """
        root = self._object(manifest)
        if root is None:
            return manifest.line
        start = root.start_mark.line
        best = (0, start)
        for steps in [steps_of(at), *_paths_in(message)]:
            depth, node_line, node = walk(root, steps)
            if depth > best[0]:
                best = (depth, _container_line(node, message) or node_line)
            if at and depth:
                break
        return manifest.chunk + best[1] + 1

    def _object(self, manifest: Manifest) -> yaml.Node | None:
        for root in self._roots(manifest.path, manifest.chunk):
            if root.start_mark.line + 1 + manifest.chunk == manifest.line:
                depth, _, node = walk(root, manifest.steps)
                return node if depth == len(manifest.steps) else root
        return None


def _roots(path: str, text: bytes, line: int) -> tuple[yaml.Node, ...]:
    chunks = markdown_chunks(text) if posixpath.splitext(path)[1].lower() in {".md", ".markdown"} else yaml_chunks(text)
    for chunk in chunks:
        if chunk.line == line:
            try:
                return tuple(nodes_in(chunk.text.replace(b"\t", b" ") if path.endswith(".json") else chunk.text))
            except yaml.YAMLError:
                return ()
    return ()


def _paths_in(message: str) -> Iterator[list[str]]:
    for match in _PATH.finditer(message):
        yield steps_of(match[0])


def steps_of(path: str) -> list[str]:
    """Return the steps of a path such as spec.replicatedJobs[0].template.spec."""
    return [step["bracketed"] or step["plain"] or "" for step in _STEP.finditer(path)]


def walk(root: yaml.Node, steps: Sequence[str]) -> tuple[int, int, yaml.Node]:
    """Follow `steps` from `root`. Return the number of steps that exist, the line of the last of them, and its node."""
    node, line = root, root.start_mark.line
    for depth, step in enumerate(steps):
        found = _member(node, step)
        if found is None:
            return depth, line, node
        line, node = found
    return len(steps), line, node


def _member(node: yaml.Node, step: str) -> tuple[int, yaml.Node] | None:
    """Return line and value of a key, or of an element by its index."""
    if isinstance(node, yaml.MappingNode):
        return next(((key.start_mark.line, value) for key, value in node.value if key.value == step), None)
    if isinstance(node, yaml.SequenceNode) and step.isdecimal() and int(step) < len(node.value):
        element: yaml.Node = node.value[int(step)]
        return element.start_mark.line, element
    return None


def _container_line(pod: yaml.Node, message: str) -> int | None:
    """Return the line of the pod's container that the message names."""
    named = _CONTAINER.search(message)
    if named is None:
        return None
    for field in _CONTAINER_LISTS:
        listed = _member(pod, field)
        for container in listed[1].value if listed and isinstance(listed[1], yaml.SequenceNode) else ():
            name = _member(container, "name")
            if name and name[1].value == named["name"]:
                return container.start_mark.line
    return None


_COMMENT: Final = re.compile(rf"(?:^|\s)#\s*{re.escape(PREFIX)}(?P<rule>[\w-]+)\s*:?(?P<text>.*)$")
_ONLY_COMMENT: Final = re.compile(r"\s*#")


class Refused(NamedTuple):
    """A comment that must not accept a violation."""

    line: int
    reason: str
    """Explanation for users."""


class Comments:
    """Comments that accept violations, read only in files with findings. `text_of` returns a file's text by the path in its manifests.

    `locked` says for every known rule whether it must not be suppressed. Comments that expired before `today` do not count.
    """

    def __init__(self, text_of: Callable[[str], bytes], locked: Mapping[str, bool], today: date) -> None:
        self._locked, self._today = locked, today

        def lines(path: str) -> list[str]:
            try:
                text = text_of(path)
            except OSError:
                return []
            return text.decode(errors="replace").splitlines() if PREFIX.encode() in text else []

        self._lines = cache(lines)

    def of(self, path: str, rule: str, *places: int) -> Suppression | Refused | None:
        """Return the comment about a rule on one of these lines or directly above it. The first line is that of the finding."""
        lines = self._lines(path)
        refused: Refused | None = None
        for place in places if lines else ():
            for number in _around(lines, place):
                match = _COMMENT.search(lines[number - 1])
                if match is None or match["rule"] != rule:
                    continue
                try:
                    suppression = read_annotation(match["text"])
                    check_suppression(rule, suppression, self._locked, self._today)
                except ValueError as error:
                    refused = refused or Refused(number, f"comment {PREFIX}{rule}: {error}")
                else:
                    return suppression
        return refused

    def misspelt(self, path: str) -> list[Refused]:
        """Return the comments of a file that name an unknown rule."""
        found: list[Refused] = []
        for number, line in enumerate(self._lines(path), start=1):
            match = _COMMENT.search(line)
            if match and match["rule"] not in self._locked:
                try:
                    check_suppression(match["rule"], Suppression("any"), self._locked, self._today)
                except ValueError as error:
                    found.append(Refused(number, f"comment {PREFIX}{match['rule']}: {error}"))
        return found


def _around(lines: list[str], place: int) -> list[int]:
    """Return the numbers of a line and of the comment lines directly above it."""
    if not 0 < place <= len(lines):
        return []
    found = [place]
    while found[-1] > 1 and _ONLY_COMMENT.match(lines[found[-1] - 2]):
        found.append(found[-1] - 1)
    return found
