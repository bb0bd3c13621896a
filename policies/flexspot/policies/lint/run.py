"""A run of `flexspot lint` without its command line, from paths to a report; and tests of own rules with fixtures."""

from __future__ import annotations

import os
import stat
import sys
import traceback
from collections import Counter
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Final

from flexspot.capacity.values.errors import ExitCode, ExplainedError
from flexspot.capacity.values.verdict import ObjectIdentity, Verdict
from flexspot.policies.core import judge, judge_scopes, of_suppression
from flexspot.policies.inventory.objects import KubernetesObject
from flexspot.policies.inventory.reading.source import from_manifest
from flexspot.policies.judging import Level, Settings
from flexspot.policies.lint.configuration import Configuration, problem_finding
from flexspot.policies.lint.file_reading import FilesRead, InputProblem, Manifest, Problem, Skipped, read_text
from flexspot.policies.lint.places import Comments, Places, Refused
from flexspot.policies.lint.report import LintReport, Placed
from flexspot.policies.lint.scopes import Scope, scopes_of
from flexspot.policies.lint.yaml_reading import FILE_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from flexspot.policies.own_rules import OwnRule
    from flexspot.policies.values.finding import Finding, Suppression


_REPORTED: Final = frozenset({Verdict.FAIL, Verdict.SUPPRESSED, Verdict.UNKNOWN})

_PART_BYTES: Final = 64 * 1024


def judged(
    manifests: Sequence[Manifest], scopes: Sequence[Scope], configuration: Configuration
) -> Iterator[tuple[Manifest, Finding, tuple[str, ...]]]:
    """Yield the findings of all rules about each manifest, with the names of their scopes. Passes have only rule and verdict."""
    sources = [from_manifest(manifest.value, partial=manifest.partial) for manifest in manifests]
    members = [scope.members for scope in scopes]
    pages = {number for number, scope in enumerate(scopes) if scope.excerpt}
    unread = {place for place, manifest in enumerate(manifests) if manifest.unread}
    rules, settings = configuration.rules_of_objects, configuration.running
    findings = judge_scopes(
        sources, rules, settings, members, closed=configuration.closed, excerpts=pages, unjudged=unread, reported=_REPORTED
    )
    names = [scope.name for scope in scopes] if len(scopes) > 1 else [""] * len(scopes)
    for manifest, listed in zip(manifests, findings, strict=True):
        for finding, numbers in listed:
            yield manifest, finding, tuple(names[number] for number in numbers if names[number]) if numbers else ()


def input_finding(problem: Problem, configuration: Configuration) -> tuple[Finding, Suppression | None]:
    """Return the finding about a problem of the input, and the suppression in the configuration that accepts it."""
    finding, settings = problem_finding(problem), configuration.settings
    accepted = (
        each.suppression
        for each in settings.suppressions
        if each.covers(finding.rule, finding.object) and (each.suppression.until is None or each.suppression.until >= settings.today)
    )
    return finding, None if finding.rule in settings.locked else next(accepted, None)


STDIN: Final = "<stdin>"


def lint(paths: Sequence[str], configuration: Configuration, *, details: bool = False) -> LintReport:
    """Judge the files at `paths`: in folders all files with a known ending, and standard input for `-`.

    Undecided findings are placed at the line of their object, and with `details` at the line of their field, which takes longer.

    Raises ExplainedError for a path that does not exist.
    """
    for path in paths:
        if path != "-" and not os.path.exists(path):  # noqa: PTH110 -- the same that the walk does
            raise ExplainedError(
                f"there is no file or folder {path}.", "name one that exists, or `-` to read standard input.", exit_code=ExitCode.BAD_USAGE
            )
    given = {STDIN: sys.stdin.buffer.read(FILE_BYTES + 1)} if "-" in paths else {}
    reading = _read([path for path in paths if path != "-"], given, configuration)
    manifests = _whole(reading)
    scopes = scopes_of(manifests, configuration.cluster_paths(), reading.includes)

    def text_of(path: str) -> bytes:
        return given[path] if path in given else Path(path).read_bytes()

    places, comments = Places(text_of), Comments(text_of, configuration.locked, configuration.settings.today)
    reported: list[Placed] = []
    covered: set[int] = set()
    of_any_kind = {rule.name for rule in configuration.rules_of_objects if KubernetesObject in rule.looks_at}
    own = {rule.name for rule in configuration.own}
    for manifest, finding, of_scopes in judged(manifests, scopes, configuration):
        if finding.rule not in of_any_kind or (finding.rule in own and finding.verdict is not Verdict.NOT_APPLICABLE):
            covered.add(id(manifest))
        if finding.verdict in _REPORTED:
            wanted = details or finding.verdict is not Verdict.UNKNOWN
            line = places.line(manifest, finding.at, finding.message) if wanted else manifest.line
            placed = _placed(finding, manifest.path, line, finding.suppressed, configuration)
            reported += _commented(replace(placed, clusters=of_scopes), comments, configuration, manifest.line)
    for problem in reading.problems:
        finding, accepted = input_finding(problem, configuration)
        reported += _commented(_placed(finding, problem.path, problem.line, accepted, configuration), comments, configuration)
    reported = [each for each in reported if _wanted(each, configuration)]
    for path in {each.path for each in reported if each.finding.verdict is Verdict.FAIL and each.suppressed is None}:
        reported += [_refused(each, path, ObjectIdentity("", "", ""), configuration) for each in comments.misspelt(path)]
    reported.sort(key=lambda each: each.order)
    return LintReport(
        findings=tuple(each for each in reported if each.finding.verdict is not Verdict.UNKNOWN),
        undecided=tuple(each for each in reported if each.finding.verdict is Verdict.UNKNOWN),
        fail_on=configuration.fail_on,
        files=reading.files,
        documents=reading.documents,
        objects=sum(not each.unread for each in manifests),
        # With --select, rules that are not selected may cover them.
        unjudged=_kinds(each for each in manifests if configuration.chosen is None and not each.unread and id(each) not in covered),
        clusters={scope.name: sum(not manifests[place].unread for place in scope.members) for scope in scopes},
        skipped={reason: count for reason, count in reading.skipped.items() if count},
    )


def _commented(placed: Placed, comments: Comments, configuration: Configuration, *others: int) -> Iterator[Placed]:
    """Yield the finding, suppressed if a comment accepts it. Also yield a finding about a comment that must not accept it."""
    if placed.finding.verdict is not Verdict.FAIL or placed.suppressed is not None:
        yield placed
        return
    comment = comments.of(placed.path, placed.finding.rule, placed.line, *others)
    if isinstance(comment, Refused):
        yield placed
        yield replace(_refused(comment, placed.path, placed.finding.object, configuration), clusters=placed.clusters)
    elif comment is not None:
        yield replace(placed, suppressed=replace(comment, in_source=True))
    else:
        yield placed


def _refused(comment: Refused, path: str, about: ObjectIdentity, configuration: Configuration) -> Placed:
    """Return the finding about a comment that must not accept a violation."""
    return _placed(of_suppression(about, comment.reason, at=""), path, comment.line, None, configuration)


def _wanted(placed: Placed, configuration: Configuration) -> bool:
    """Return whether a finding's rule is selected and not disabled at its path."""
    rule = placed.finding.rule
    level = configuration.level(rule, placed.path)
    return level is not Level.DISABLED and (level is None or configuration.chosen is None or rule in configuration.chosen)


def _kinds(manifests: Iterable[Manifest]) -> Counter[str]:
    """Count the objects of each kind. Excludes ConfigMaps, because readers look into them for dashboards and Kueue's configuration."""
    return Counter(kind for each in manifests if (kind := str(each.value["kind"])) != "ConfigMap")


def _whole(reading: FilesRead) -> list[Manifest]:
    """Return the whole objects in order. Objects in files that others declare as patches or assertions are counted as skipped."""
    exactly = {path: reason for path, reason in reading.parts if not set(path) & set("*?[")}
    patterns = [(path, reason) for path, reason in reading.parts if path not in exactly]
    found: list[Manifest] = []
    for each in reading.manifests:
        reason = exactly.get(each.path) or next((reason for pattern, reason in patterns if fnmatchcase(each.path, pattern)), None)
        if reason is None:
            found.append(each)
        else:
            reading.skipped[reason] += 1
    return sorted(found, key=lambda each: (each.path, each.line, each.chunk))


def _read(paths: list[str], given: dict[str, bytes], configuration: Configuration) -> FilesRead:
    skipped: Counter[Skipped] = Counter()
    walk = Walk(skipped, configuration.exclude, str(configuration.folder))
    reading = FilesRead()
    for path in walk.files(paths):
        reading.add(read_file(path))
    for path, text in given.items():
        reading.add(read_text(path, text))
    reading.skipped += skipped
    reading.problems += [_unreadable(folder, f"the folder cannot be listed: {reason}") for folder, reason in walk.unreadable.items()]
    return reading


def _unreadable(path: str, reason: str) -> Problem:
    return Problem(InputProblem.UNREADABLE, path, 1, ("", "", "", ""), reason)


def read_file(path: str) -> FilesRead:
    """Read one file. Never raises: what prevents reading is returned as a problem of the file."""
    try:
        return read_text(path, _bytes_of(path))
    except OSError as error:
        reason = f"it cannot be opened: {error.strerror}"
    except Exception as error:  # noqa: BLE001 -- one file must not stop the others
        last = traceback.extract_tb(error.__traceback__)[-1]
        reason = f"its reader is broken: {type(error).__name__} in {Path(last.filename).name}, line {last.lineno}; report it"
    return FilesRead(problems=[_unreadable(path, reason)], files=1)


def _bytes_of(path: str) -> bytes:
    """Return up to FILE_BYTES + 1 bytes of a file. Reads without a buffer and without a Path, for speed with thousands of small files."""
    opened = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0))
    try:
        wanted = os.fstat(opened).st_size + 1
        parts: list[bytes] = []
        left = FILE_BYTES + 1
        # A file may have grown, and files in /proc report no size.
        while left > 0 and (part := os.read(opened, min(wanted, left))):
            parts.append(part)
            left -= len(part)
            wanted = max(wanted - len(part), _PART_BYTES)
        return parts[0] if len(parts) == 1 else b"".join(parts)
    finally:
        os.close(opened)


def _placed(finding: Finding, path: str, line: int, accepted: Suppression | None, configuration: Configuration) -> Placed:
    configured = any(each.suppression is accepted for each in configuration.settings.suppressions)
    suppressed = accepted and replace(accepted, in_source=not configured)
    shown = replace(finding, page=configuration.page(finding.page)) if configuration.pages else finding
    return Placed(shown, path, line, suppressed, configuration.binding(finding.rule, finding.severity, path))


WORDS: Final = {"passes": Verdict.PASS, "fails": Verdict.FAIL, "ignores": Verdict.NOT_APPLICABLE}
"""First word of a fixture's file name, and the verdict that its objects must get."""

_NEEDED: Final = ("passes", "fails")


@dataclass(frozen=True)
class Tried:
    """An object of a fixture, with its expected and actual verdict."""

    rule: str
    path: str
    line: int
    wanted: Verdict
    """Verdict that the file's name requires."""
    got: Verdict
    message: str

    @property
    def right(self) -> bool:
        """True if the verdict is the one that the file's name requires."""
        return self.got is self.wanted


def tried(rule: OwnRule, folder: Path) -> tuple[list[Tried], list[str]]:
    """Return the results of a rule's fixtures, and the problems of these. A rule needs an object that passes and one that fails.

    A disabled rule is tried, too.
    """
    wrong: list[str] = []
    found = [each for word in WORDS for each in _of_word(rule, folder / rule.fixtures, word, wrong)]
    there = {each.wanted for each in found}
    missing = [word for word in _NEEDED if WORDS[word] not in there]
    wrong += [f"{rule.name}: there is no object in {rule.fixtures}/{word}_*.yaml" for word in missing]
    return found, wrong


def _of_word(rule: OwnRule, folder: Path, word: str, wrong: list[str]) -> Iterator[Tried]:
    on = Settings(levels={rule.name: Level.MANDATORY})
    for path in sorted(folder.glob(f"{word}_*.y*ml")):
        reading = read_file(str(path))
        wrong += [f"{each.path}:{each.line}: {each.message}" for each in reading.problems]
        for manifest in reading.manifests:
            findings = [each for each in judge(from_manifest(manifest.value), [rule], on) if each.rule == rule.name]
            verdict = next((each.verdict for each in findings if each.verdict is not Verdict.NOT_APPLICABLE), Verdict.NOT_APPLICABLE)
            message = next((each.message for each in findings if each.verdict is verdict), "")
            yield Tried(rule.name, str(path), manifest.line, WORDS[word], verdict, message)


ENDINGS: Final = (".yaml", ".yml", ".json", ".md", ".markdown")

_PASSED_OVER: Final = frozenset({"node_modules", "__pycache__"})
"""Folders with third-party code, skipped like folders whose name begins with a dot."""


@dataclass
class Walk:
    """A walk over files and folders that visits each file once, however many links lead to it."""

    skipped: Counter[Skipped]
    excluded: Sequence[str] = ()
    """Patterns of paths relative to `root`, in which * matches any text, including /. They do not apply to files that are named."""
    root: str = "."
    unreadable: dict[str, str] = field(default_factory=dict[str, str])
    """Folders that could not be listed, with the reason."""
    _seen: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])

    def files(self, paths: Sequence[str]) -> Iterator[str]:
        """Yield the files in the order named. A folder's own files come first, by name, then those of its subfolders."""
        for path in paths:
            if os.path.isdir(path):  # noqa: PTH112 -- pathlib takes several times as long over thousands of files
                yield from self._below(path)
            elif self._first_sight(os.stat(path)):  # noqa: PTH116 -- likewise
                yield os.path.normpath(path)

    def _below(self, top: str) -> Iterator[str]:
        # A list instead of recursion, because folders may be nested deeper than Python's recursion limit.
        waiting = [top]
        while waiting:
            folder = waiting.pop()
            try:
                with os.scandir(folder) as listing:
                    entries = sorted(listing, key=lambda entry: entry.name)
            except OSError as error:
                self.unreadable[os.path.normpath(folder)] = error.strerror or type(error).__name__
                continue
            folders = [entry for entry in entries if entry.is_dir(follow_symlinks=False)]
            for entry in entries:
                if entry.name.lower().endswith(ENDINGS) and not entry.is_dir(follow_symlinks=False) and self._wanted(entry):
                    yield os.path.normpath(entry.path)
            waiting += [each.path for each in reversed(folders) if not each.name.startswith(".") and each.name not in _PASSED_OVER]

    def _wanted(self, entry: os.DirEntry[str]) -> bool:
        try:
            found = entry.stat()
        except OSError:
            self.skipped[Skipped.LINK] += 1
            return False
        if not stat.S_ISREG(found.st_mode):
            self.skipped[Skipped.LINK if stat.S_ISDIR(found.st_mode) else Skipped.NOT_A_FILE] += 1
            return False
        if self.excluded and self._is_excluded(entry.path):
            self.skipped[Skipped.EXCLUDED] += 1
            return False
        return self._first_sight(found)

    def _is_excluded(self, path: str) -> bool:
        relative = os.path.relpath(path, self.root).replace(os.sep, "/")
        return any(fnmatchcase(relative, pattern) for pattern in self.excluded)

    def _first_sight(self, found: os.stat_result) -> bool:
        known = (found.st_dev, found.st_ino)
        if known in self._seen:
            return False
        self._seen.add(known)
        return True
