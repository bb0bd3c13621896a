"""What `flexspot lint --fix` changes: for each finding that one addition surely mends, that addition in the file's own text."""

from __future__ import annotations

import codecs
import difflib
import os
import tempfile
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from capacity.values.errors import ExitCode, ExplainedError
from policies.inventory.reading.source import from_manifest
from policies.lint.chunks import yaml_chunks
from policies.lint.file_reading import read_text
from policies.lint.yaml_additions import NotEditableError, with_addition
from policies.rules.missing_owner_labels import RULE as OWNER_RULE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from capacity.values.verdict import Addition, ObjectIdentity
    from policies.judging.settings import Settings
    from policies.lint.manifests import Manifest
    from policies.lint.report import Placed, Report

_ENDINGS: Final = (".yaml", ".yml", ".json")


@dataclass(frozen=True)
class FileChange:
    """A file as it is and as it would be, and how many findings that mends."""

    path: str
    before: str
    after: str
    mended: int

    def diff(self) -> str:
        """The change as a patch."""
        lines = (each.splitlines(keepends=True) for each in (self.before, self.after))
        return "".join(difflib.unified_diff(*lines, fromfile=self.path, tofile=self.path, n=2))

    def write(self) -> None:
        """Replaces the file as a whole, so that a reader sees the one text or the other. Raises ExplainedError."""
        real = Path(self.path).resolve()
        try:
            _replace(real, self.after)
        except OSError as error:
            problem = f"{self.path} cannot be written: {error.strerror}. It is as it was."
            raise ExplainedError(problem, "let this user write there, or use --diff.", exit_code=ExitCode.BAD_USAGE) from error


@dataclass(frozen=True)
class Fixes:
    """What would be changed, and of what can be mended but is not, the reason."""

    changes: tuple[FileChange, ...]
    left: tuple[tuple[Placed, str], ...]


def owner_label(written: str, settings: Settings) -> tuple[str, str]:
    """KEY and VALUE of the option --owner. Raises ExplainedError for a key that is no owner's."""
    key, _, value = written.partition("=")
    allowed = settings.parameters(OWNER_RULE).texts("label-keys")
    if key in allowed and value:
        return key, value
    problem = f"--owner {written} names no owner."
    raise ExplainedError(problem, f"write KEY=VALUE with one of the keys {', '.join(allowed)}.", exit_code=ExitCode.BAD_USAGE)


def fixes_of(report: Report, owner: tuple[str, str] | None) -> Fixes:
    """The changes that fix the open findings of a report; each file is read again. Owners are only those that the person named."""
    by_path: dict[str, list[Placed]] = {}
    for each in report.open:
        if each.finding.adds is not None:
            by_path.setdefault(each.path, []).append(each)
    changes: list[FileChange] = []
    left: list[tuple[Placed, str]] = []
    for path, findings in by_path.items():
        change = _FileFix(path, owner, left).changed(findings)
        if change.mended:
            changes.append(change)
    return Fixes(tuple(changes), tuple(left))


class _FileFix:
    """The additions to one file, from its end to its beginning, so that what is still to be found stays where it was."""

    def __init__(self, path: str, owner: tuple[str, str] | None, left: list[tuple[Placed, str]]) -> None:
        self._path = path
        self._owner = owner
        self._left = left

    def changed(self, findings: Sequence[Placed]) -> FileChange:
        try:
            before = self._text()
        except NotEditableError as error:
            self._left += [(each, str(error)) for each in findings]
            return FileChange(self._path, "", "", 0)
        manifests = read_text(self._path, before.encode()).manifests
        identities = [from_manifest(each.value).identity for each in manifests]
        counted = Counter(identities)
        # One addition may mend several findings, such as the owner of each pod template of an object.
        wanted: dict[tuple[ObjectIdentity, str, str], list[tuple[Placed, Addition]]] = {}
        for placed, addition in self._known(findings):
            if counted[placed.finding.object] == 1:
                wanted.setdefault((placed.finding.object, addition.at, addition.key), []).append((placed, addition))
            else:
                self._left.append((placed, "the file does not hold one object of this name"))
        after, mended = before, 0
        places = {identity: place for place, identity in enumerate(identities)}
        for (identity, _, _), listed in sorted(wanted.items(), key=lambda each: -places[each[0][0]]):
            try:
                after = _added(after, manifests[places[identity]], listed[0][1], is_json=self._path.endswith(".json"))
                mended += len(listed)
            except NotEditableError as error:
                self._left += [(placed, str(error)) for placed, _ in listed]
        return FileChange(self._path, before, after, mended)

    def _text(self) -> str:
        if not self._path.endswith(_ENDINGS):
            raise NotEditableError(f"only files ending in {', '.join(_ENDINGS)} are changed")
        try:
            text = Path(self._path).read_bytes()
        except OSError as error:
            raise NotEditableError(f"it cannot be read: {error.strerror}") from error
        if text.startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise NotEditableError("it begins with a byte order mark")
        try:
            return text.decode()
        except UnicodeDecodeError as error:
            raise NotEditableError("it is not UTF-8") from error

    def _known(self, findings: Sequence[Placed]) -> Iterator[tuple[Placed, Addition]]:
        for each in findings:
            addition = each.finding.adds
            if addition is not None and addition.value is None and self._owner:
                addition = replace(addition, key=self._owner[0], value=self._owner[1])
            if addition is not None and addition.value is not None:
                yield each, addition
            else:
                self._left.append((each, "whose it is, --owner KEY=VALUE must say"))


def _added(text: str, manifest: Manifest, addition: Addition, *, is_json: bool) -> str:
    """The file's text with the addition in the document of the object; the lines before that are as they were when it was read."""
    for chunk in yaml_chunks(text.encode()):
        if chunk.line == manifest.chunk:
            lines = text.split("\n")
            here = chunk.text.decode()
            changed = with_addition(here, manifest.steps, manifest.line - manifest.chunk, addition, is_json=is_json)
            before = "".join(f"{line}\n" for line in lines[: chunk.line])
            return before + changed + text[len(before) + len(here) :]
    raise NotEditableError("its document was not found again")


def _replace(path: Path, text: str) -> None:
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        Path(name).chmod(path.stat().st_mode)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
